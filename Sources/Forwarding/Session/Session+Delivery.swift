import Base
import Peer

/// Sends less to a viewer whose path cannot carry everything; audio has priority.
///
/// The decision follows feedback on each packet, the client's estimate, or the progress of a TCP connection where
/// there is one. Otherwise reported loss decides: on lower layers, if there are any, or on whether pictures are sent.
extension Session {
    /// Time until a burst's loss has been reported: at least a second of cached media, the queue that it filled, and
    /// a report.
    private static let burst = Duration.seconds(3)
    /// The next report after a step down still covers what was sent before it; the one after that begins later than
    /// this.
    private static let leftover = Duration.milliseconds(500)
    /// Percentage of the usual retransmission budget while the path's queue grows.
    private static let overusedShare = 25

    /// The path, once there is any measurement of it.
    private var knownPath: OutgoingPath? { path.flatMap { $0.isKnown ? $0 : nil } }

    /// Whether pictures are sent.
    var sendsPictures: Bool { !preferences.isAudioOnly && (knownPath != nil || delivery.sendsPictures) }

    /// Percentage of the usual budget for retransmissions.
    var repairShare: Int {
        guard let knownPath else { return delivery.repairShare }
        guard isPathFull else { return 100 }
        // Over TCP the only missing packets are those left out because they did not fit.
        return knownPath.backlog == nil ? Self.overusedShare : 0
    }

    /// Whether the path's queue grows, or loses much of what is sent.
    var isPathFull: Bool { knownPath.map { $0.isOverused || $0.isLossy } ?? false }

    /// How long a retransmitted packet may be on its way; nil where that is unknown.
    ///
    /// This is the minimum round-trip time so far. A longer one caused by a busy machine does not show whether a
    /// retransmission is still on its way, and a receiver that is refused gives the packet up after a few more tries.
    /// But packets in a full queue are on their way, and repeating them would only make the queue longer.
    var answerTime: Duration? {
        guard let minimum = roundTrip.minimum, let knownPath, isPathFull else { return roundTrip.minimum }
        return minimum + knownPath.queueDelay
    }

    /// Upper limit for retransmissions, in bytes a second: half of the path's capacity.
    var repairCeiling: Int { knownPath.map { $0.bitrate / 16 } ?? .max }

    /// Whether pictures were sent recently and did not get through.
    func hasFailed(at now: MonotonicTime) -> Bool {
        knownPath.map { $0.allocator.hasFailed(at: now) } ?? delivery.hasFailed
    }

    /// Processes the loss in a report on everything that the client receives.
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

    /// Bytes sent in all slots, which reports cover.
    private var allSent: UInt64 { slots.reduce(0) { $0 &+ $1.counters.bytesSent } }

    /// Lets reported loss decide on layers, if there is something lower than what is sent.
    /// - Parameter percent: percentage of the sent packets that did not arrive.
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

    /// Sends pictures again when it is time for another trial.
    func advanceDelivery(at now: MonotonicTime) {
        guard let due = delivery.deadline, due <= now else { return }
        let before = delivery.sendsPictures
        let isWaiting = slots.contains { $0.plan.kind == .video && $0.awaited != nil }
        delivery.advance(to: now, isWaiting: isWaiting)
        if delivery.sendsPictures != before { aimPictures(at: now) }
    }

    /// Whether a slot may be sent cached pictures.
    ///
    /// With a measured path it may while the path is not full. By reports alone, a slot that begins with a layer may,
    /// and any other slot only without notable loss; neither may while pictures are sent on trial.
    /// - Parameter isBeginning: whether the slot was sent another layer before, or none.
    func mayReplay(isBeginning: Bool) -> Bool {
        if knownPath != nil { return !isPathFull }
        return delivery.mayReplay || isBeginning && !delivery.isTrying
    }

    /// Excuses loss for a while, because a slot begins with a burst, which may lose packets on a path that can carry
    /// the stream.
    func noteBeginning(at now: MonotonicTime) {
        excused = now + Self.burst
    }

    /// Points all video slots at their layers again after pictures were switched on or off.
    func aimPictures(at now: MonotonicTime) {
        for slot in slots where slot.plan.kind == .video { slot.track?.retarget(slot, at: now) }
        requestWake()
    }
}
