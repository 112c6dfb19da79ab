import Base

/// Tells a publisher without transport-wide feedback how much it may send.
///
/// A cap, not a model of the network: it grows while next to nothing is lost, stays while a little is, and falls
/// below what arrived when much is. The publisher's own loss-based control works below it.
/// - Source: draft-alvestrand-rmcat-remb-03; the thresholds are those of draft-ietf-rmcat-gcc-02 §6.
package struct REMBEstimator: Sendable {
    /// Between which rates the estimate stays.
    package struct Limits: Equatable, Sendable {
        /// In bits per second, like all rates here; enough for a good picture from the first second.
        package var start = 1_500_000
        /// Reported whatever the loss.
        package var minimum = 150_000
        /// Nothing more is ever asked for.
        package var maximum = 8_000_000
        /// Growth in a second without loss.
        package var growthPercent = 25

        package init() {}
    }

    private static let interval = Duration.seconds(1)
    /// Fewer packets say nothing about loss; they are kept for the next look.
    private static let leastExpected = 20
    /// A burst of loss within less is not yet congestion.
    private static let judgementInterval = Duration.milliseconds(200)
    /// After a decrease the network needs so long to show its effect.
    private static let decreasePause = Duration.milliseconds(500)

    private let limits: Limits
    private var rate = RateMeter()
    /// Since the last judgement, for a quick decrease; and since the last estimate, for growth.
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
            // More than anybody sends between two looks; keeps the arithmetic far from overflow.
            let expected = min(max(loss.expected, 0), 1_000_000)
            guard self.expected < 1 << 40 else { return }
            self.expected += expected
            lost += min(max(loss.lost, 0), expected)
        }
    }

    /// Bits per second over all SSRCs of the session.
    package private(set) var bitrate: Int
    /// When `estimateDue` has to be called next; nil before the first packet.
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

    /// Takes in how much was lost, before repair, since the last call; a few times a second at most.
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

    /// The bit rate to tell the publisher now, if it is time; once returned it counts as sent.
    package mutating func estimateDue(at now: MonotonicTime) -> Int? {
        guard let deadline, now >= deadline else { return nil }
        self.deadline = now + Self.interval
        if !hasDecreased, whole.lossPercent <= 2 { grow(at: now) }
        hasDecreased = false
        whole = Tally()
        return bitrate
    }

    /// Never beyond twice what arrives: a cap far above what was ever tried is no estimate.
    private mutating func grow(at now: MonotonicTime) {
        let proven = max(rate.bitrate(at: now) * 2, limits.start)
        let grown = bitrate + bitrate * limits.growthPercent / 100
        bitrate = max(bitrate, min(grown, proven, limits.maximum))
    }
}
