import Base

/// Estimates how much a publisher without transport-wide feedback may send.
///
/// A cap, not a model of the network: it grows while almost nothing is lost, stays while a little is, and falls
/// below the arriving bitrate when much is. The publisher's own loss-based control works below it.
/// - Source: draft-alvestrand-rmcat-remb-03; the thresholds are those of draft-ietf-rmcat-gcc-02 §6.
package struct REMBEstimator: Sendable {
    /// The range of the estimate, and how fast it grows.
    package struct Limits: Equatable, Sendable {
        /// In bits per second, like all rates here; enough for a good picture from the first second.
        package var start = 1_500_000
        /// Lowest value reported, whatever the loss.
        package var minimum = 150_000
        /// Highest value reported.
        package var maximum = 8_000_000
        /// Percent of growth per second without loss.
        package var growthPercent = 25

        package init() {}
    }

    // Time between two estimates that are sent.
    private static let interval = Duration.seconds(1)
    /// Too few packets to judge loss; they count in the next judgement.
    private static let leastExpected = 20
    /// Loss within a shorter time is not congestion yet.
    private static let judgementInterval = Duration.milliseconds(200)
    /// How long the network needs to show the effect of a decrease.
    private static let decreasePause = Duration.milliseconds(500)

    private let limits: Limits
    private var rate = RateMeter()
    /// Loss since the last judgement, for a quick decrease, and since the last estimate, for growth.
    private var recent = Tally()
    private var whole = Tally()
    private var lastJudgement: MonotonicTime?
    private var lastDecrease: MonotonicTime?
    private var hasDecreased = false

    private struct Tally {
        private(set) var expected = 0
        private var lost = 0

        var lossPercent: Int { expected > 0 ? lost * 100 / expected : 0 }

        mutating func add(_ loss: ReceiveStream.LossInterval) {
            // More than any client sends between two judgements; keeps the arithmetic far from overflow.
            let expected = min(max(loss.expected, 0), 1_000_000)
            guard self.expected < 1 << 40 else { return }
            self.expected += expected
            lost += min(max(loss.lost, 0), expected)
        }
    }

    /// Bits per second over all SSRCs of the session.
    package private(set) var bitrate: Int
    /// When `estimateDue` must be called next; nil before the first packet.
    package private(set) var deadline: MonotonicTime?

    package init(limits: Limits = Limits()) {
        self.limits = limits
        bitrate = min(max(limits.start, limits.minimum), limits.maximum)
    }

    /// Counts a packet of any of the session's SSRCs.
    package mutating func receive(size: Int, at now: MonotonicTime) {
        rate.add(size, at: now)
        if deadline == nil { deadline = now }
    }

    /// Adds packets expected and lost, before repair, since the last call; a few times a second at most.
    package mutating func observe(_ loss: ReceiveStream.LossInterval, at now: MonotonicTime) {
        whole.add(loss)
        recent.add(loss)
        guard recent.expected >= Self.leastExpected else { return }
        if let lastJudgement, now < lastJudgement + Self.judgementInterval { return }
        let lossPercent = recent.lossPercent
        recent = Tally()
        lastJudgement = now
        if lossPercent > 10 { decrease(lossPercent: lossPercent, at: now) }
    }

    private mutating func decrease(lossPercent: Int, at now: MonotonicTime) {
        if let lastDecrease, now < lastDecrease + Self.decreasePause { return }
        let arrived = rate.bitrate(at: now)
        let target = max(arrived - arrived * lossPercent / 200, limits.minimum)
        guard target < bitrate else { return }
        bitrate = target
        lastDecrease = now
        hasDecreased = true
        deadline = now
    }

    /// Returns the bitrate to report to the publisher now, if it is time; what is returned counts as sent.
    package mutating func estimateDue(at now: MonotonicTime) -> Int? {
        guard let deadline, now >= deadline else { return nil }
        self.deadline = now + Self.interval
        if !hasDecreased, whole.lossPercent <= 2 { grow(at: now) }
        hasDecreased = false
        whole = Tally()
        return bitrate
    }

    /// Raises the estimate, but not beyond twice what arrives: a cap far above all that was tried is no estimate.
    private mutating func grow(at now: MonotonicTime) {
        let proven = max(rate.bitrate(at: now) * 2, limits.start)
        let grown = bitrate + bitrate * limits.growthPercent / 100
        bitrate = max(bitrate, min(grown, proven, limits.maximum))
    }
}
