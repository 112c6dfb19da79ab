import Base

/// Estimates how much the path to one viewer can carry, from the fate of the packets sent to that viewer.
///
/// Delay, loss and probes each contribute: a growing queue lowers the estimate to what the full link served, loss
/// that depends on the rate sets a limit, probes raise the estimate immediately where more could be used. Without
/// probes it grows slowly, and never beyond what the traffic proves: a sender of little traffic keeps its estimate.
///
/// Holds no clock and does no I/O. The input is untrusted: arrival times may have any value.
/// - Source: draft-ietf-rmcat-gcc-02; constants and loss-based part as browsers have them.
package struct BandwidthEstimator: Sendable {
    /// The range of the estimate, in bits per second.
    package struct Limits: Equatable, Sendable {
        /// Initial estimate: enough for a middle layer from the first second; the first probe leaves immediately.
        package var start = 1_000_000
        /// Audio alone needs this much.
        package var minimum = 50_000
        package var maximum = 50_000_000

        package init() {}
    }

    /// What keeps the estimate from being higher.
    package enum Cause: Equatable, Sendable {
        case delay, loss
        /// Nothing was sent yet that would prove more.
        case application
    }

    /// If packets are sent and no feedback arrives for this long, the estimate falls.
    private static let silence = Duration.seconds(2)
    /// Interval at which the estimate halves while feedback is missing.
    private static let halving = Duration.seconds(1)
    /// Milliseconds over which one burst arrives that are enough to measure the rate of the link by that burst
    /// alone.
    private static let longTrain = 100.0
    /// Milliseconds of queue above which the estimate does not grow.
    private static let longQueue = 40.0
    /// Milliseconds after which observations of the queue are outdated.
    private static let pause = 1_000.0
    /// Bits per second up to which the rate of the last second outweighs a lower service rate.
    ///
    /// A burst of other traffic can depress the service rate for a moment. Above this value, an average over a
    /// second would show a slower link too late.
    private static let small = 600_000.0
    /// Delay before a probe that cannot be sent now is considered again.
    private static let look = Duration.milliseconds(100)

    /// Bound for the bytes without feedback between two reported packets; real gaps are far below it.
    private static let mostUntold = 10_000_000
    /// Above every real path, and far from overflow.
    private static let most = 1_000_000_000_000

    private let limits: Limits
    private var groups = PacketGroups()
    private var queue = QueueDelay()
    private var detector = OveruseDetector()
    private var service = ServiceRate()
    private var trains = TrainRate()
    private var delayBased: DelayBasedRate
    private var lossBased = LossBasedRate()
    private var probes: ProbeController
    private var acknowledged = RateMeter()
    private var sending = RateMeter()
    /// Bits per second sent, averaged over about three seconds.
    private var usualRate = 0.0
    private var lastFeedback: MonotonicTime?
    private var roundTrip = Duration.milliseconds(100)
    /// When the estimate is halved for lack of feedback; nil while no packet waits for feedback.
    private var silentAt: MonotonicTime?
    private var isSilent = false
    /// Whether the burst that is arriving shows a link that is slower than estimated.
    private var isCrawling = false

    /// Bits per second that the path can carry, as IP packets: audio and retransmissions included.
    package private(set) var bitrate: Int
    /// What keeps `bitrate` from being higher.
    package private(set) var cause = Cause.application

    /// Brings the limits into a valid order first.
    package init(limits: Limits = Limits()) {
        var limits = limits
        limits.minimum = min(max(limits.minimum, 1), Self.most)
        limits.maximum = min(max(limits.maximum, limits.minimum), Self.most)
        limits.start = min(max(limits.start, limits.minimum), limits.maximum)
        self.limits = limits
        delayBased = DelayBasedRate(
            start: Double(limits.start), minimum: Double(limits.minimum), maximum: Double(limits.maximum))
        probes = ProbeController(maximum: Double(limits.maximum))
        bitrate = limits.start
    }

    /// Whether the path's queue is growing or full right now.
    package var isOverused: Bool { detector.usage == .over || isCrawling }

    /// How long the packets reported last waited in the path's queue; at most 400 ms.
    package var queueDelay: Duration { .microseconds(Int64(min(max(queue.total, 0), 400) * 1_000)) }

    /// Bits per second at which bursts arrived lately, a measure of the slowest link; nil without any.
    package var burstRate: Int? {
        trains.bitrate.map { Int(min(max($0, 0), Double(limits.maximum) * 100)) }
    }

    /// When `advance` and `probeDue` must be called next; nil for not before the next feedback.
    package var deadline: MonotonicTime? {
        let probing = probes.deadline(estimate: Double(bitrate))
        guard let silentAt else { return probing }
        return min(silentAt, probing ?? silentAt)
    }

    /// Processes one feedback.
    /// - Parameters:
    ///   - outcomes: in the order in which the packets were sent.
    ///   - roundTrip: the latest measurement; nil if there is none.
    package mutating func receive(
        _ outcomes: [PacketOutcome], roundTrip: Duration?, at now: MonotonicTime
    ) {
        if let roundTrip { self.roundTrip = min(max(roundTrip, .zero), .seconds(3)) }
        silentAt = nil
        let wasSilent = isSilent
        if isSilent {
            isSilent = false
            lossBased.forget()
            probes.startAfresh(at: now)
        }
        lossBased.advance(to: now)
        let before = Double(bitrate)
        noteUsualRate(at: now)
        let own = max(before, 1.05 * usualRate)
        var isJudged = false
        var untold = 0
        let outages = Outages(in: outcomes)
        for (place, outcome) in outcomes.enumerated() {
            let size = min(max(outcome.size, 0), 65_535)
            // Packets lost in an outage are no sign of too high a rate.
            let isOutage = outcome.arrival == nil && (wasSilent || outages.contains(place))
            if !isOutage, lossBased.add(outcome, size: size) { isJudged = true }
            probes.receive(outcome, size: size, at: now)
            untold += min(max(outcome.untold, 0), Self.mostUntold)
            guard let arrival = outcome.arrival else { continue }
            acknowledged.add(size, at: outcome.sent)
            guard !outcome.isLate else { continue }
            let head = groups.add(sent: outcome.sent, size: size, arrival: arrival, untold: untold)
            untold = 0
            if let train = groups.train { trains.receive(train) }
            if let head { receive(head, ownRate: own) }
        }
        adjustForDelay(at: now)
        if isJudged { adjustForLoss(at: now) }
        adjustForProbe(at: now)
        settle(from: before, at: now)
    }

    private mutating func noteUsualRate(at now: MonotonicTime) {
        let elapsed = Double(now.nanoseconds(since: lastFeedback ?? now)) / 3e9
        lastFeedback = now
        usualRate += min(max(elapsed, 0), 1) * (Double(sending.bitrate(at: now)) - usualRate)
    }

    private mutating func receive(_ head: PacketGroups.Head, ownRate: Double) {
        if head.sentGap > Self.pause { detector = OveruseDetector() }
        guard queue.receive(head, rate: ownRate) else {
            groups.reset()
            queue = QueueDelay()
            detector = OveruseDetector()
            service = ServiceRate()
            return
        }
        service.receive(head, isBusy: queue.isBusy, noise: queue.noise)
        detector.receive(
            sent: head.sent, arrival: head.arrival, queue: queue.excess, noise: queue.noise)
    }

    private mutating func adjustForDelay(at now: MonotonicTime) {
        isCrawling = false
        if let train = groups.incoming, train.spread > Self.longTrain + 10 * queue.noise {
            let rate = Double(train.bytes) * 8_000 / train.spread
            isCrawling = rate < 0.75 * delayBased.rate
            if isCrawling { return delayBased.decrease(served: rate, queue: 0, at: now) }
        }
        switch detector.usage {
        case .over:
            guard let served = service.bitrate else { return }
            let arrived = Double(acknowledged.bitrate(at: now))
            delayBased.decrease(
                served: max(served, min(arrived, Self.small)), queue: detector.standing, at: now)
        case .normal:
            // A queue made by our own bursts is no sign of a slow path, but long enough to stop growth.
            guard lossBased.rate == nil, queue.total < queue.usual + Self.longQueue else { return }
            delayBased.grow(
                acknowledged: Double(acknowledged.bitrate(at: now)),
                isDrained: queue.excess < 5 + queue.noise,
                isEmpty: queue.total < queue.usual + queue.noise + 10, roundTrip: roundTrip, at: now)
        case .under: break
        }
    }

    private mutating func adjustForLoss(at now: MonotonicTime) {
        switch lossBased.judge(estimate: delayBased.rate, isQueueing: isOverused, at: now) {
        case .unchanged: break
        case .limit(let rate): delayBased.lower(to: rate)
        case .restore(let rate):
            guard !isOverused else { return }
            delayBased.raise(to: rate)
        }
    }

    private mutating func adjustForProbe(at now: MonotonicTime) {
        if let result = probes.takeResult() {
            switch result {
            case .passed(let rate), .saturated(let rate):
                if !isOverused, lossBased.rate == nil { delayBased.raise(to: rate) }
            case .invalid: break
            }
            if case .passed = result {} else { trains.mark() }
        }
        if trains.hasRisen() { probes.startAfresh(at: now) }
    }

    private mutating func settle(from before: Double, at now: MonotonicTime) {
        let rate = min(delayBased.rate, lossBased.rate ?? .infinity)
        bitrate = min(max(Int(rate), limits.minimum), limits.maximum)
        if rate < 0.97 * before { probes.fell(from: before, to: rate, at: now) }
        cause = lossBased.rate != nil ? .loss : delayBased.isLimited ? .delay : .application
    }

    /// Notes which bitrate could be used.
    /// - Parameter bitrate: bits per second of the next better choice; nil while the viewer has the best there is,
    ///   when nothing is probed.
    package mutating func want(_ bitrate: Int?, at now: MonotonicTime) {
        probes.want(bitrate.map { Double(min(max($0, 0), limits.maximum)) })
    }

    /// Returns the probe to send now, if it is time; it counts as sent.
    ///
    /// Must be called after each feedback and at `deadline`.
    package mutating func probeDue(at now: MonotonicTime) -> Probe? {
        lossBased.advance(to: now)
        if let lastFeedback, now > lastFeedback + .milliseconds(Int64(Self.pause)) {
            detector = OveruseDetector()
        }
        if isOverused || lossBased.rate != nil || detector.standing > 20 + 2 * queue.noise {
            probes.postpone(until: now + Self.look)
        }
        return probes.due(
            estimate: Double(bitrate), sending: Double(sending.bitrate(at: now)),
            spread: queue.noise / 1_000, roundTrip: roundTrip, isSilent: isSilent, at: now)
    }

    /// Advances the time: if packets are sent and feedback is missing, the estimate halves each second.
    package mutating func advance(to now: MonotonicTime) {
        guard let silentAt, now >= silentAt else { return }
        let before = Double(bitrate)
        delayBased.lower(to: before / 2)
        settle(from: before, at: now)
        isSilent = true
        self.silentAt = now + Self.halving
    }

    /// Notes bytes that were sent; once per batch is enough.
    package mutating func sent(_ bytes: Int, at now: MonotonicTime) {
        sending.add(bytes, at: now)
        if silentAt == nil { silentAt = now + Self.silence }
    }
}
