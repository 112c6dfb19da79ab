import Base

/// Estimates how much the path to one viewer takes, from what became of the packets that were sent to them.
///
/// Delay, loss and probes each say what they can: a queue that grows lowers the estimate to what the full link served,
/// loss that goes with the rate sets a limit, probes raise the estimate at once where more could be used. Without
/// probes it grows slowly, and never beyond what is proven by what is sent: who sends little keeps the estimate
/// that they had.
///
/// Holds no clock and does no I/O. Takes what strangers send: arrival times may be anything.
/// - Source: draft-ietf-rmcat-gcc-02; constants and loss-based part as browsers have them.
package struct BandwidthEstimator: Sendable {
    /// Between which rates the estimate stays, in bits a second.
    package struct Limits: Equatable, Sendable {
        /// Where it begins: enough for a middle layer from the first second; the first probe comes at once.
        package var start = 1_000_000
        /// Sound alone needs as much.
        package var minimum = 50_000
        package var maximum = 50_000_000

        package init() {}
    }

    /// Why the estimate is not higher.
    package enum Cause: Equatable, Sendable {
        case delay, loss
        /// Nothing was sent yet that would show more.
        case application
    }

    /// Without feedback for so long, although something was sent, the estimate falls.
    private static let silence = Duration.seconds(2)
    private static let halving = Duration.seconds(1)
    /// Milliseconds over which packets that left together come in, enough to tell the rate of the link by them alone.
    private static let longTrain = 100.0
    /// Milliseconds of queue beyond which the estimate does not grow.
    private static let longQueue = 40.0
    /// Milliseconds after which what was seen of the queue is of the past.
    private static let pause = 1_000.0
    /// Bits a second up to which what came in the last second counts, and not a moment in which somebody else's burst
    /// held it up.
    ///
    /// Of more that would tell too late that a link has become slower.
    private static let small = 600_000.0
    /// Before a probe that cannot be sent now is thought of again.
    private static let look = Duration.milliseconds(100)

    /// Bytes between two packets that are told of; no feedback is so far from the one before.
    private static let mostUntold = 10_000_000
    /// Above every path, and far from overflow.
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
    /// Bits a second that are sent, over about three seconds.
    private var usualRate = 0.0
    private var lastFeedback: MonotonicTime?
    private var roundTrip = Duration.milliseconds(100)
    /// When the estimate is halved, for there is no feedback; nil while nothing sent waits for any.
    private var silentAt: MonotonicTime?
    private var isSilent = false
    /// The group that is coming in shows a link that is slower than was thought.
    private var isCrawling = false

    /// Bits a second that the path takes, by all that is known: IP packets, sound and repairs included.
    package private(set) var bitrate: Int
    /// Why `bitrate` is not higher.
    package private(set) var cause = Cause.application

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

    /// True while the queue of the path is growing or full right now.
    package var isOverused: Bool { detector.usage == .over || isCrawling }

    /// How long what was last told of waited in the path's queue; 400 ms at most.
    package var queueDelay: Duration { .microseconds(Int64(min(max(queue.total, 0), 400) * 1_000)) }

    /// Bits a second at which bursts came lately, which says what the slowest link passes on; nil without any.
    package var burstRate: Int? {
        trains.bitrate.map { Int(min(max($0, 0), Double(limits.maximum) * 100)) }
    }

    /// When `advance` and `probeDue` want to be called; nil for not before the next feedback.
    package var deadline: MonotonicTime? {
        let probing = probes.deadline(estimate: Double(bitrate))
        guard let silentAt else { return probing }
        return min(silentAt, probing ?? silentAt)
    }

    /// Takes in one feedback.
    /// - Parameters:
    ///   - outcomes: in the order in which the packets were sent.
    ///   - roundTrip: the last one measured, nil where none is known.
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
            // What was lost in an outage was not lost for the rate.
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
            // A queue of our own is none of the path, but more than enough.
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

    /// Tells what could be used.
    /// - Parameter bitrate: bits a second of the next better choice; nil while the viewer has all there is, when
    ///   nothing is probed.
    package mutating func want(_ bitrate: Int?, at now: MonotonicTime) {
        probes.want(bitrate.map { Double(min(max($0, 0), limits.maximum)) })
    }

    /// The probe to send now, if it is time; counts as sent.
    ///
    /// To be asked for after each feedback and at `deadline`.
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

    /// Lets time pass: without feedback, although something was sent, the estimate halves each second.
    package mutating func advance(to now: MonotonicTime) {
        guard let silentAt, now >= silentAt else { return }
        let before = Double(bitrate)
        delayBased.lower(to: before / 2)
        settle(from: before, at: now)
        isSilent = true
        self.silentAt = now + Self.halving
    }

    /// Notes that something was sent; once a batch is enough.
    package mutating func sent(_ bytes: Int, at now: MonotonicTime) {
        sending.add(bytes, at: now)
        if silentAt == nil { silentAt = now + Self.silence }
    }
}
