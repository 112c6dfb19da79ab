import Base
import Peer
import Wire

/// What a layer has of its past, for those who come now: viewers, taps and other workers.
extension TrackLayer {
    /// By how much pictures may go back at a change of layers without being noticed: a few of them.
    private static let unnoticedLeap = Duration.milliseconds(250)
    /// And at most, where the publisher can be asked for a key frame.
    private static let longestLeap = Duration.seconds(1)

    /// The packets that a viewer would begin with now, and how many bytes that is; nil if there is no such group.
    func group(at now: MonotonicTime) -> (range: ClosedRange<Int64>, bytes: Int)? {
        guard isVideo, let newest = history.newest,
            let start = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now), start <= newest
        else { return nil }
        return (start...newest, bytes(of: start...newest))
    }

    /// Whether a viewer who is shown the past from `start` on sees the present soon.
    func mayCatchUp(_ slot: Slot, from start: Int64, at now: MonotonicTime) -> Bool {
        guard let rate = slot.session.knownReplayRate, let newest = history.newest, start <= newest else {
            return true
        }
        let (taken, all) = (bitrate(for: slot, at: now), bitrate(at: now))
        var bytes = bytes(of: start...newest)
        // What is left out for a viewer need not get there.
        if taken < all { bytes = bytes / 100 * (taken * 100 / all) }
        return Replay.catchesUp(bytes: bytes, of: taken, at: rate)
    }

    /// Whether there is a group to begin with that would take a viewer too long.
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

    /// Sends packets that came before to a worker that has a copy from now on.
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

    /// A viewer needs a key frame that the cache cannot supply.
    func demandKeyFrame(at now: MonotonicTime) {
        let isCached = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now) != nil
        demandKeyFrame(isCached ? .repetition : .beginning, at: now)
    }

    /// Whether a slot that changes to this layer rather waits for a key frame than begins with what the cache holds.
    ///
    /// Who sees another layer of the track would be shown once more what was there before, as a leap back. It goes on
    /// with what it has until the key frame comes, unless that takes long and the leap is a short one.
    func isWorthWaiting(for slot: Slot, at now: MonotonicTime) -> Bool {
        guard let track, slot.showsPresent(of: track, at: now), let age = cache.age(at: now),
            age > Self.unnoticedLeap
        else { return false }
        return answersAtOnce(at: now) || age > Self.longestLeap && plan.answersKeyFrameRequests
    }

    /// Whether a key frame comes as soon as it is asked for: the last one is not so recent that the next has to wait.
    func answersAtOnce(at now: MonotonicTime) -> Bool {
        guard isActive(at: now) else { return false }
        if stream != nil { return keyFrames.asksAtOnce(for: .beginning, at: now) }
        // Of what another worker receives it is not known when it was asked for one.
        guard let start = cache.start, let arrival = history.arrival(of: start) else { return true }
        return now >= arrival + KeyFrameRequester.Limits().maximumWait
    }

    /// The first packet of the group of pictures that the cache holds.
    var cachedStart: Int64? { cache.start }

    /// The packets that the cache holds, for somebody who begins now and would rather wait than decode a long past.
    func cachedGroup(at now: MonotonicTime) -> ClosedRange<Int64>? {
        guard let edge = cache.edge,
            let start = cache.entry(in: history, isRepaired: true, upTo: GOPCache.usualAge, at: now),
            start <= edge.sequenceNumber
        else { return nil }
        return start...edge.sequenceNumber
    }
}
