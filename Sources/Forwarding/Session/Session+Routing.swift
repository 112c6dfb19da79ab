import Base
import Peer
import Wire

extension Session {
    /// The destination of packets with one received SSRC.
    struct Route {
        enum Kind { case media, repair }
        let ssrc: UInt32
        let kind: Kind
        let track: Track
        let layer: TrackLayer
    }

    /// Finds the route of a packet; for a new SSRC, learns it from the packet's header extensions.
    ///
    /// Senders that use simulcast announce no SSRCs and put MID and RID only into their first packets, so what was
    /// learned is kept (RFC 8852 §3, RFC 9143 §9.2).
    func route(for header: RTPHeader, in packet: Span<UInt8>, at now: MonotonicTime) -> Route? {
        if let route = routes[header.ssrc] { return route }
        guard let route = learnRoute(for: header, in: packet, at: now) else { return nil }
        routes.add(route)
        return route
    }

    private func learnRoute(
        for header: RTPHeader, in packet: Span<UInt8>, at now: MonotonicTime
    ) -> Route? {
        let ids = plan.publishedExtensions
        let mid = text(ids.mid, of: header, in: packet)
        let rid = text(ids.rtpStreamID, of: header, in: packet)
        let repairedRID = text(ids.repairedRTPStreamID, of: header, in: packet)
        guard let source = source(ofMID: mid, header: header) else { return nil }
        let isRepair = source.reader.originalPayloadType(ofRepair: header.payloadType) != nil
        let isMedia =
            source.reader.codec(ofPayloadType: header.payloadType) != nil
            || source.reader.blockPayloadType(ofRedundancy: header.payloadType) != nil
        guard isRepair || isMedia else { return nil }
        let name = source.plan.rids.isEmpty ? nil : (repairedRID ?? rid)
        // With simulcast, a packet without a RID cannot be assigned, and one with a RID that was not offered is
        // unwanted.
        if !source.plan.rids.isEmpty {
            guard let name, source.plan.rids.contains(name) else { return nil }
        }
        guard let layer = source.track.layer(rid: name, at: now) else { return nil }
        guard isRepair || adopt(header.ssrc, for: layer, at: now) else { return nil }
        return Route(ssrc: header.ssrc, kind: isRepair ? .repair : .media, track: source.track, layer: layer)
    }

    /// Accepts a layer's first SSRC, or a new one: Firefox changes it when a track is switched off and on.
    ///
    /// - Returns: whether the layer has this SSRC now; false if it changed too often recently.
    private func adopt(_ ssrc: UInt32, for layer: TrackLayer, at now: MonotonicTime) -> Bool {
        layer.ssrc == ssrc || layer.restart(ssrc: ssrc, at: now)
    }

    private func source(ofMID mid: String?, header: RTPHeader) -> Source? {
        if let mid { return sources.first { $0.plan.mid == mid } }
        let announced = sources.first { source in
            source.plan.announced.contains { $0.ssrc == header.ssrc || $0.repairSSRC == header.ssrc }
        }
        if let announced { return announced }
        let takers = sources.filter { source in
            source.plan.formats.contains {
                $0.payloadType == header.payloadType || $0.repairPayloadType == header.payloadType
                    || $0.redundancyPayloadType == header.payloadType
            }
        }
        return takers.count == 1 ? takers.first : nil
    }

    private func text(_ id: UInt8?, of header: RTPHeader, in packet: Span<UInt8>) -> String? {
        guard let id, let range = header.extensionRange(id: id, in: packet),
            let bytes = try? packet.bytes(range)
        else {
            return nil
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
