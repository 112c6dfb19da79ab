import Base
import Peer
import Wire

/// Sends less to a viewer who cannot take it all. Sound goes first.
///
/// Where the client tells of each packet when it came, or how much it can take in, or is connected by TCP, that
/// decides; else what its reports tell of loss: of lower layers, where there are any, or of whether pictures are sent.
extension Session {
    /// What a burst loses is told within this time: a second at least of the past, the queue that it filled, a report.
    private static let burst = Duration.seconds(3)
    /// After a step down the next report speaks of what was sent before, too; the one after it begins later than this.
    private static let leftover = Duration.milliseconds(500)
    /// Percent of the usual budget for repairs while the path's queue grows.
    private static let overusedShare = 25

    /// The path, once it tells anything.
    private var knownPath: OutgoingPath? { path.flatMap { $0.isKnown ? $0 : nil } }

    /// Whether pictures are sent at all.
    var sendsPictures: Bool { !preferences.isAudioOnly && (knownPath != nil || delivery.sendsPictures) }

    /// Percent of the usual budget for packets that are sent again.
    var repairShare: Int {
        guard let knownPath else { return delivery.repairShare }
        guard isPathFull else { return 100 }
        // Over TCP nothing is missing but what was left out because it did not fit.
        return knownPath.backlog == nil ? Self.overusedShare : 0
    }

    /// Whether the path's queue grows, or loses much of what is sent.
    var isPathFull: Bool { knownPath.map { $0.isOverused || $0.isLossy } ?? false }

    /// For how long a packet that is sent again may be on its way; nil where that is not known.
    ///
    /// The least that a round trip ever took: one held up by a busy machine says nothing of whether an answer is still
    /// on its way, and a receiver that is refused gives the packet up after a few more tries. But what waits in a full
    /// queue is on its way, and would only make that longer.
    var answerTime: Duration? {
        guard let minimum = roundTrip.minimum, let knownPath, isPathFull else { return roundTrip.minimum }
        return minimum + knownPath.queueDelay
    }

    /// Bytes a second that repairs never exceed: half of what the path takes.
    var repairCeiling: Int { knownPath.map { $0.bitrate / 16 } ?? .max }

    /// Whether pictures were sent before and did not get through.
    func hasFailed(at now: MonotonicTime) -> Bool {
        knownPath.map { $0.allocator.hasFailed(at: now) } ?? delivery.hasFailed
    }

    /// Takes in what a report told of everything that the client gets.
    func noteLoss(_ told: LossResponse.Interval, at now: MonotonicTime) {
        guard told.expected > 0, knownPath.map(\.isReported) ?? true else { return }
        var interval = told
        interval.hasBurst = lastReception < excused
        lastReception = now
        if let knownPath {
            let before = counters.stepsDown
            let sent = knownPath.goesByLossAlone ? allSent : picturesSent
            knownPath.receive(interval, sent: sent, at: now)
            allocate(at: now)
            if knownPath.goesByLossAlone, counters.stepsDown != before {
                excused = max(excused, now + Self.leftover)
            }
            return requestWake()
        }
        let before = sendsPictures
        delivery.receive(interval, at: now)
        if let loss = delivery.excessiveLoss { followLoss(of: loss, at: now) }
        if sendsPictures != before { aimPictures(at: now) }
    }

    /// Bytes that were sent of everything that reports speak of.
    private var allSent: UInt64 { slots.reduce(0) { $0 &+ $1.counters.bytesSent } }

    /// Has the choice of layers follow what reports tell of loss, if there is less to choose than what is sent.
    /// - Parameter percent: of what is sent that does not arrive.
    private func followLoss(of percent: Int, at now: MonotonicTime) {
        guard connection.remoteAddress?.transport != .tcp, !plan.slots.contains(where: \.tellsOfPackets)
        else {
            return
        }
        var arrived = 0
        var hasLess = false
        for slot in slots where !slot.isStopped {
            guard let track = slot.track, let layer = slot.current else { continue }
            let sent = layer.bitrate(upTo: slot.servedSpatialLayer(of: layer), at: now)
            let rest = PictureChoices.withHeaders(sent) / 100 * (100 - percent)
            arrived += rest
            guard slot.plan.kind == .video else { continue }
            let choices = PictureChoices(of: slot, track, at: now)
            guard !choices.steps.isEmpty else { continue }
            let isLeast = choices.index(of: slot.grant) == 0
            hasLess = hasLess || !isLeast || choices.needRendition(at: 0, in: rest)
        }
        guard hasLess else { return }
        let path = path ?? OutgoingPath()
        self.path = path
        path.followLoss(arrived: arrived, at: now)
        excused = max(excused, now + Self.leftover)
        allocate(at: now)
        requestWake()
    }

    /// Tries pictures again when it is time.
    func advanceDelivery(at now: MonotonicTime) {
        guard let due = delivery.deadline, due <= now else { return }
        let before = delivery.sendsPictures
        let isWaiting = slots.contains { $0.plan.kind == .video && $0.awaited != nil }
        delivery.advance(to: now, isWaiting: isWaiting)
        if delivery.sendsPictures != before { aimPictures(at: now) }
    }

    /// Whether a slot may be shown the past: always what it was not sent before, unless pictures are tried again.
    func mayReplay(isBeginning: Bool) -> Bool {
        if knownPath != nil { return !isPathFull }
        return delivery.mayReplay || isBeginning && !delivery.isTrying
    }

    /// A slot begins with a burst, which may lose packets on a link that takes the stream.
    func noteBeginning(at now: MonotonicTime) {
        excused = now + Self.burst
    }

    /// Pictures begin to be sent, or stop.
    func aimPictures(at now: MonotonicTime) {
        for slot in slots where slot.plan.kind == .video { slot.track?.retarget(slot, at: now) }
        requestWake()
    }
}
