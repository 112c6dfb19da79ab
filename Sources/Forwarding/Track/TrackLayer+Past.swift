import Base
import Peer
import Wire

/// The layer's cached packets, for new viewers, taps and other workers.
extension TrackLayer {
    /// How far pictures may go back unnoticed when a viewer changes layers: a few of them.
    private static let unnoticedLeap = Duration.milliseconds(250)
    /// How far they may go back at most, if a key frame can be requested from the publisher.
    private static let longestLeap = Duration.seconds(1)

    /// The packets with which a viewer would begin now, and their size in bytes; nil if there is no such group.
    func group(at now: MonotonicTime) -> (range: ClosedRange<Int64>, bytes: Int)? {
        guard isVideo, let newest = history.newest,
            let start = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now), start <= newest
        else { return nil }
        return (start...newest, bytes(of: start...newest))
    }

    /// Whether a viewer who is sent the cached packets from `start` on reaches the live edge soon.
    func mayCatchUp(_ slot: Slot, from start: Int64, at now: MonotonicTime) -> Bool {
        guard let rate = slot.session.knownReplayRate, let newest = history.newest, start <= newest else {
            return true
        }
        let (taken, all) = (bitrate(for: slot, at: now), bitrate(at: now))
        var bytes = bytes(of: start...newest)
        // Packets that are dropped for this viewer need not be sent.
        if taken < all { bytes = bytes / 100 * (taken * 100 / all) }
        return Replay.catchesUp(bytes: bytes, of: taken, at: rate)
    }

    /// Whether there is a cached group, but replaying it to this viewer would take too long.
    func isTooFarBack(for slot: Slot, at now: MonotonicTime) -> Bool {
        guard slot.session.knownReplayRate != nil,
            let start = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now)
        else { return false }
        return !mayCatchUp(slot, from: start, at: now)
    }

    private func bytes(of range: ClosedRange<Int64>) -> Int {
        var bytes = 0
        for number in range { bytes += history.range(of: number)?.count ?? 0 }
        return bytes
    }

    /// Sends cached packets to a worker that keeps a copy from now on.
    func relayPast(_ range: ClosedRange<Int64>, isLast: Bool, to worker: Int, over links: WorkerLinks) {
        guard let track else { return }
        let storage = history.storage
        for number in range {
            guard let place = history.range(of: number), let arrival = history.arrival(of: number) else {
                continue
            }
            var packet = RelayedPacket(
                track: track.key.track, layer: index, epoch: epoch, sequenceNumber: number,
                captured: number == cache.edge?.sequenceNumber ? cache.edge?.captured : nil)
            packet.past = RelayedPacket.Past(arrival: arrival, isLast: isLast && number == range.upperBound)
            links.relay(packet, storage.span.extracting(place), to: worker)
        }
    }

    /// Requests a key frame for a viewer whom the cache cannot serve.
    func demandKeyFrame(at now: MonotonicTime) {
        let isCached = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now) != nil
        demandKeyFrame(isCached ? .repetition : .beginning, at: now)
    }

    /// Whether a slot that changes to this layer should wait for a key frame instead of beginning with the cache.
    ///
    /// A viewer who sees another layer of the track would see the cached pictures as a leap back. So the slot keeps
    /// its present layer until the key frame comes, unless that takes long and the leap is short.
    func isWorthWaiting(for slot: Slot, at now: MonotonicTime) -> Bool {
        guard let track, slot.showsPresent(of: track, at: now), let age = cache.age(at: now),
            age > Self.unnoticedLeap
        else { return false }
        return answersAtOnce(at: now) || age > Self.longestLeap && plan.answersKeyFrameRequests
    }

    /// Whether a key frame can be requested immediately, because the last one is old enough.
    func answersAtOnce(at now: MonotonicTime) -> Bool {
        guard isActive(at: now) else { return false }
        if stream != nil { return keyFrames.asksAtOnce(for: .beginning, at: now) }
        // The times of requests on another worker are unknown.
        guard let start = cache.start, let arrival = history.arrival(of: start) else { return true }
        return now >= arrival + KeyFrameRequester.Limits().maximumWait
    }

    /// The first packet of the cached group of pictures; nil if there is none.
    var cachedStart: Int64? { cache.start }

    /// The cached packets for a tap that begins now; nil if the group is so old that waiting for a key frame is
    /// better.
    func cachedGroup(at now: MonotonicTime) -> ClosedRange<Int64>? {
        guard let edge = cache.edge,
            let start = cache.entry(in: history, isRepaired: true, upTo: GOPCache.usualAge, at: now),
            start <= edge.sequenceNumber
        else { return nil }
        return start...edge.sequenceNumber
    }
}
