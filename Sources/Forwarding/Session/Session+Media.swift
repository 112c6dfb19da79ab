import Base
import Crypto
import Peer
import Wire

extension Session {
    /// Hot path: decrypts one SRTP packet and forwards it.
    func receiveMedia(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        do {
            let length = try connection.unprotect(&datagram, from: source, at: now)
            let header = try RTPHeader(parsing: datagram.span.extracting(0..<length))
            noteArrival(of: header, in: datagram.span, size: length, at: now)
            // Chromium probes the link with SSRC 0 before it has media.
            guard header.ssrc != 0 else { return }
            guard let route = route(for: header, in: datagram.span, at: now) else {
                return counters.drops.noRoute &+= 1
            }
            switch route.kind {
            case .media:
                if let blocks = route.layer.reader.blockPayloadType(ofRedundancy: header.payloadType) {
                    try acceptRedundant(
                        &datagram, header, length: length, blocks: blocks, on: route, at: now, into: &sink)
                } else {
                    try accept(
                        datagram.span.extracting(0..<length), header, on: route, origin: .original, at: now,
                        into: &sink)
                }
            case .repair:
                guard let start = try restoreOriginal(&datagram, header, on: route) else { return }
                let original = datagram.span.extracting(start..<length)
                try accept(
                    original, RTPHeader(parsing: original), on: route, origin: .retransmission, at: now,
                    into: &sink)
            }
        } catch {
            noteRefusal(error)
        }
    }

    /// Counts a packet that was refused, by reason.
    func noteRefusal(_ error: any Error) {
        switch error as? SRTPError {
        case .replayed: counters.drops.replayed &+= 1
        case .authenticationFailed: counters.drops.unauthentic &+= 1
        default: counters.drops.undecodable &+= 1
        }
    }

    /// Accepts a decrypted packet of a known source: statistics, history, forwarding.
    func accept(
        _ bytes: Span<UInt8>, _ header: RTPHeader, on route: Route, origin: ReceiveStream.Origin,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(WireError) {
        let layer = route.layer
        guard
            let packet = try layer.receive(
                bytes, header, origin: origin, clock: isPublisherClockKnown ? publisherClock : nil,
                at: now)
        else { return }
        noteAccepted(route.track.kind, size: bytes.count, origin)
        // A packet recovered from a later one has no audio level, and its track did not count as silent before it.
        if monitor != nil, origin != .redundancy { watch(packet, bytes, of: route.track, at: now) }
        pass(packet, bytes, of: layer, route.track, at: now, into: &sink)
    }

    /// Accepts unencrypted packets from a publisher without a peer connection.
    func receive(
        _ packets: InjectedPackets, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        requestWake()
        for item in packets.items {
            let bytes = packets.bytes.span.extracting(item.range)
            counters.received.add(bytes.count)
            guard let track = sources.indices.contains(item.source) ? sources[item.source].track : nil,
                let layer = track.layer(rid: nil, at: now),
                let packet = try? layer.receiveInjected(bytes, captured: item.captured, at: now)
            else {
                counters.drops.undecodable &+= 1
                continue
            }
            noteAccepted(track.kind, size: bytes.count, .original)
            if monitor != nil { watch(packet, bytes, of: track, at: now) }
            pass(packet, bytes, of: layer, track, at: now, into: &sink)
        }
    }

    /// Hands an accepted packet to other workers, slots and taps.
    private func pass(
        _ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, _ track: Track,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        track.relay(packet, bytes, of: layer, over: links)
        layer.forward(packet, at: now, into: &sink)
        track.tap(packet, bytes, of: layer, at: now)
        track.retargetIfDue(at: now)
    }

    private func noteAccepted(_ kind: MediaKind, size: Int, _ origin: ReceiveStream.Origin) {
        if kind == .audio { counters.audioReceived.add(size) } else { counters.videoReceived.add(size) }
        switch origin {
        case .original: break
        case .retransmission: counters.packetsRepaired &+= 1
        case .redundancy: counters.packetsRecovered &+= 1
        }
    }

    /// Notes for control that a source is active, and how loud it is.
    private func watch(
        _ packet: MediaPacket, _ bytes: Span<UInt8>, of track: Track, at now: MonotonicTime
    ) {
        guard let index = sources.firstIndex(where: { $0.track === track }) else { return }
        var level = packet.passedOn.audioLevel.flatMap { try? bytes.uint8(at: $0.lowerBound) }
        // Encoders that send no level (OBS, GStreamer) count as a quiet voice: heard unless another participant
        // speaks.
        if level == nil, track.kind == .audio { level = SourceMonitor.unknownLevel }
        monitor?.note(source: index, level: level, at: now)
    }

    /// Turns an RTX packet back into the packet it repeats, in place.
    ///
    /// The header moves over the original sequence number, which lies between it and the payload (RFC 4588 §4).
    /// - Returns: where the original packet starts; nil for padding, which repeats nothing.
    private func restoreOriginal(
        _ packet: inout MutableSpan<UInt8>, _ header: RTPHeader, on route: Route
    ) throws(WireError) -> Int? {
        guard let payloadType = route.layer.reader.originalPayloadType(ofRepair: header.payloadType),
            let ssrc = route.layer.ssrc,
            let original = try Retransmission.original(
                of: header, in: packet.span, payloadType: payloadType, ssrc: ssrc)
        else { return nil }
        let prefix = try packet.moveHeader(
            endingAt: header.payloadRange.lowerBound, forwardBy: Retransmission.prefixLength)
        let flags = try packet.span.uint8(at: prefix + 1)
        try packet.store(flags & 0x80 | original.payloadType, at: prefix + 1)
        try packet.store(original.sequenceNumber, at: prefix + 2)
        try packet.store(original.ssrc, at: prefix + 8)
        return prefix
    }

    /// Records everything received on this connection, for congestion feedback: media, retransmissions and probes
    /// alike.
    private func noteArrival(of header: RTPHeader, in packet: Span<UInt8>, size: Int, at now: MonotonicTime) {
        counters.received.add(size)
        requestWake()
        estimator?.receive(size: size, at: now)
        guard feedback != nil, let id = plan.publishedExtensions.transportSequenceNumber,
            let range = header.extensionRange(id: id, in: packet), range.count >= 2,
            let number = try? packet.uint16(at: range.lowerBound)
        else { return }
        // libwebrtc drops feedback that names none of its own streams.
        if feedback?.mediaSSRC == 0 { feedback?.mediaSSRC = header.ssrc }
        feedback?.record(number, at: now)
    }
}
