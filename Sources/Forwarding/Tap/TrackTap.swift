import Base
import Peer
import Wire

/// One tap on a track, with the layer it receives and the one it awaits.
final class TrackTap {
    let id: TapID
    let mode: TapOpening.Mode
    var maximumHeight: Int?
    private let isAlongside: Bool
    private let sink: any TapSink
    /// The layer whose packets the tap receives.
    private(set) weak var current: TrackLayer?
    /// The layer that takes over at its next entry point.
    private(set) weak var awaited: TrackLayer?
    private(set) var isFinished = false
    /// Checks whether the latest key frame is complete.
    private var walk = FrameWalk()

    init(_ opening: TapOpening) {
        id = opening.id
        mode = opening.mode
        maximumHeight = opening.maximumHeight
        isAlongside = opening.isAlongside
        sink = opening.sink
    }

    /// Whether a layer is requested for its sake: it receives all packets, and not only those sent for others.
    var isDemanding: Bool { if case .whole = mode { !isAlongside } else { false } }

    /// Whether this layer is requested for its sake: it is the current or the awaited one.
    func takes(_ layer: TrackLayer) -> Bool { isDemanding && (current === layer || awaited === layer) }

    /// Ends the tap; further calls do nothing.
    func finish() {
        guard !isFinished else { return }
        isFinished = true
        sink.finish()
    }

    // MARK: Layers

    /// Changes to a layer now, or at its next entry point.
    func aim(at layer: TrackLayer, at now: MonotonicTime) {
        switch mode {
        case .keyFrame(_, let mayAsk):
            guard current !== layer else { return }
            current = layer
            if !takeKeyFrame(of: layer, at: now), mayAsk { demandKeyFrame(at: now) }
        case .whole:
            guard current !== layer else { return awaited = nil }
            guard awaited !== layer else { return }
            guard layer.isVideo else { return current = layer }
            if takeCache(of: layer, at: now) { return }
            awaited = layer
            layer.demandKeyFrame(.beginning, at: now)
        }
    }

    /// Requests a key frame, without which the tap cannot go on.
    func demandKeyFrame(at now: MonotonicTime) {
        (awaited ?? current)?.demandKeyFrame(reason, at: now)
    }

    /// A tap that has received a key frame before can wait longer for the next.
    private var reason: KeyFrameRequester.Reason {
        if case .keyFrame(.some, _) = mode { .renewal } else { .beginning }
    }

    // MARK: Packets

    /// Handles a packet of `layer` that has just been stored.
    func note(_ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, at now: MonotonicTime) {
        switch mode {
        case .keyFrame:
            // A key frame may be completed by the last packet of a frame: its own, or a later one's.
            guard layer === current, packet.header.marker else { return }
            _ = takeKeyFrame(of: layer, at: now)
        case .whole:
            if layer === awaited, packet.isEntryPoint {
                if takeRest(behind: packet, of: layer, at: now) { return }
                awaited = nil
                current = layer
            }
            guard layer === current else { return }
            sink.take(
                TappedPacket(ForwardedPacket(packet, at: now), bytes, epoch: layer.tapEpoch), bytes)
        }
    }

    /// Passes the latest key frame to the sink, if it is complete and not the one received before.
    /// - Returns: whether it did, which ends the tap.
    private func takeKeyFrame(of layer: TrackLayer, at now: MonotonicTime) -> Bool {
        guard !isFinished, case .keyFrame(let last, _) = mode, let start = layer.cachedStart else {
            return false
        }
        let mark = TapMark(epoch: layer.tapEpoch, sequenceNumber: start)
        guard mark != last, let end = walk.end(of: mark, { layer.step(at: $0) }), end >= start else {
            return false
        }
        hand(out: start...end, of: layer, at: now)
        finish()
        return true
    }

    /// Begins with the cached group of pictures, if there is one.
    private func takeCache(of layer: TrackLayer, at now: MonotonicTime) -> Bool {
        guard let range = layer.cachedGroup(at: now) else { return false }
        awaited = nil
        current = layer
        hand(out: range, of: layer, at: now)
        return true
    }

    /// Begins with a key frame whose first packet arrived after others, which are in the history only.
    /// - Returns: whether there were any.
    private func takeRest(behind packet: MediaPacket, of layer: TrackLayer, at now: MonotonicTime) -> Bool {
        guard let range = layer.cachedGroup(at: now), range.contains(packet.sequenceNumber),
            range.upperBound > packet.sequenceNumber
        else { return false }
        return takeCache(of: layer, at: now)
    }

    private func hand(out numbers: ClosedRange<Int64>, of layer: TrackLayer, at now: MonotonicTime) {
        let storage = layer.history.storage
        for number in numbers {
            guard let range = layer.history.range(of: number),
                var packet = layer.packet(at: range, sequenceNumber: number)
            else { continue }
            packet.arrival = now
            let bytes = storage.span.extracting(range)
            sink.take(TappedPacket(packet, bytes, epoch: layer.tapEpoch), bytes)
        }
    }
}

extension TrackLayer {
    /// Identifies the layer within its track, and its source among earlier ones.
    var tapEpoch: UInt32 {
        UInt32(truncatingIfNeeded: epoch) &* UInt32(Track.layerLimit) &+ UInt32(truncatingIfNeeded: index)
    }

    /// The properties of a packet for `FrameWalk`; nil if it is missing.
    fileprivate func step(at number: Int64) -> FrameWalk.Step? {
        guard let range = history.range(of: number) else { return nil }
        let storage = history.storage
        guard let header = try? RTPHeader(parsing: storage.span.extracting(range)) else { return nil }
        return FrameWalk.Step(timestamp: header.timestamp, marker: header.marker)
    }
}

extension Worker {
    /// Puts a tap on a track that is published here.
    func openTap(_ opening: TapOpening, at now: MonotonicTime) {
        guard let track = track(of: opening.target), track.taps.count < Track.tapLimit else {
            return opening.sink.finish()
        }
        taps[opening.id] = track
        track.open(TrackTap(opening), at: now)
    }

    func closeTap(_ id: TapID) {
        taps.removeValue(forKey: id)?.closeTap(id)
    }

    func demandKeyFrame(forTap id: TapID, at now: MonotonicTime) {
        taps[id]?.taps.first { $0.id == id }?.demandKeyFrame(at: now)
    }

    /// Ends the taps of a track that has ended.
    func closeTaps(of track: Track) {
        for tap in track.taps { taps[tap.id] = nil }
        track.closeTaps()
    }

    private func track(of target: TapOpening.Target) -> Track? {
        switch target {
        case .source(let session, let mid):
            sessions[session]?.sources.first { $0.plan.mid == mid }?.track
        case .track(let track): published[track.key.track]
        }
    }
}
