import Base

/// The limit that loss sets; there is none while the loss does not depend on the rate.
///
/// A limit is set if it explains the loss clearly better than loss inherent in the path, and is held for a time
/// that doubles each time a limit is needed again. If it proves wrong, because as much is lost below it, it is
/// withdrawn.
package struct LossBasedRate: Sendable {
    /// What follows from an observation.
    package enum Verdict: Equatable, Sendable {
        case unchanged
        /// Send at most this many bits per second.
        case limit(Double)
        /// The limit was wrong: the rate from before it may be sent again.
        case restore(Double)
    }

    // Nanoseconds of an observation, and of one that ends early because much is lost.
    private static let interval: Int64 = 250_000_000
    private static let shortInterval: Int64 = 100_000_000
    /// Lost packets within the short interval that end an observation early.
    private static let manyLost = 12.0
    // Lost packets in the latest observations that justify a limit.
    private static let fewestLost = 6.0
    /// How much better the log-likelihood of a limit must be before it is believed.
    private static let evidence = 3.0
    /// Fewest observations that a limit has to explain; those before the first loss may be from another path.
    private static let recent = 4
    /// Lowest and highest share of packets that is accepted as inherent loss.
    private static let leastInherent = 0.005
    private static let mostInherent = 0.25
    /// Sending this factor above a limit without loss, this many times in a row, refutes the limit.
    private static let excess = 1.05
    private static let enoughExceeded = 2
    // How long a limit holds: at first, and at most.
    private static let minimumHold = Duration.seconds(2)
    private static let maximumHold = Duration.seconds(30)
    /// A limit that ended longer ago than this has no effect on the next one.
    private static let memory = Duration.seconds(30)

    /// A limit in force; rates are in bits per second.
    private struct Limit {
        var rate: Double
        /// The rate from before the limit, to which `restore` returns.
        var before: Double
        /// Observations since the limit was first imposed.
        var age = 0
        /// Consecutive observations above the limit without loss.
        var exceeded = 0
        var until: MonotonicTime
    }

    private var model = LossModel()
    /// The observation under way, and when its first packet left.
    private var bytes = 0
    private var packets = 0
    private var lost = 0
    private var lostBytes = 0
    private var start: MonotonicTime?
    /// Share of packets that was lost at low rates as well.
    private var confirmed = 0.01
    private var limit: Limit?
    private var hold = Self.minimumHold
    private var lastEnd: MonotonicTime?

    package init() {}

    /// Bits per second that loss allows; nil without a limit.
    package var rate: Double? { limit?.rate }

    /// Share of packets that the path is known to lose at any rate.
    package var inherentLoss: Double { model.knownLoss }

    /// Counts a packet.
    /// - Returns: whether it completed an observation, so that `judge` must be called.
    package mutating func add(_ outcome: PacketOutcome, size: Int) -> Bool {
        if outcome.isLate {
            guard outcome.arrival != nil else { return false }
            if lost > 0 {
                lost -= 1
                lostBytes = max(lostBytes - size, 0)
            } else {
                model.restoreOne()
            }
            return false
        }
        let begin = start ?? outcome.sent
        start = begin
        let elapsed = outcome.sent.nanoseconds(since: begin)
        var isComplete = false
        if elapsed >= Self.interval || elapsed >= Self.shortInterval && Double(lost) >= Self.manyLost {
            model.add(
                LossModel.Observation(
                    rate: Double(bytes) * 8e9 / Double(max(elapsed, 1)), packets: Double(packets),
                    // Weighted by bytes: a full queue still has room for small packets where it drops large ones.
                    lost: Double(packets) * Double(lostBytes) / Double(max(bytes, 1))))
            isComplete = true
            (bytes, packets, lost, lostBytes) = (0, 0, 0, 0)
            start = outcome.sent
        }
        bytes += size
        packets += 1
        if outcome.arrival == nil {
            lost += 1
            lostBytes += size
        }
        return isComplete
    }

    /// Discards observations that were of an outage, but keeps what is known about the path.
    package mutating func forget() {
        let known = model.knownLoss
        model = LossModel()
        model.knownLoss = known
        (bytes, packets, lost, lostBytes) = (0, 0, 0, 0)
        start = nil
        limit = nil
    }

    /// Ends a limit whose time has passed.
    package mutating func advance(to now: MonotonicTime) {
        guard let limit, now >= limit.until else { return }
        self.limit = nil
        lastEnd = now
    }

    /// Judges after an observation.
    /// - Parameters:
    ///   - estimate: bits per second considered possible now.
    ///   - isQueueing: whether a growing queue already shows, and more precisely, what the path takes.
    package mutating func judge(estimate: Double, isQueueing: Bool, at now: MonotonicTime) -> Verdict {
        learn(estimate: limit?.before ?? estimate)
        if limit != nil { limit?.age += 1 }
        if let verdict = refute() { return verdict }
        if let limit, let verdict = retract(limit) { return verdict }
        guard !isQueueing, model.lost(newest: Self.recent) >= Self.fewestLost,
            let newest = model.observation(back: 0), newest.lost > 0
        else { return .unchanged }
        let number = sinceOnset
        let free = model.fit(limit: .infinity, newest: number)
        guard let best = bestLimit(below: estimate, against: free, newest: number) else { return .unchanged }
        return impose(best, estimate: estimate, at: now)
    }

    /// Learns the inherent loss: loss at a rate far below the estimate is not caused by the rate.
    private mutating func learn(estimate: Double) {
        guard let newest = model.observation(back: 0), newest.packets >= 10 else { return }
        let share = min(newest.lost / newest.packets, Self.mostInherent)
        if newest.rate < 0.7 * estimate {
            model.knownLoss += 0.1 * (share - model.knownLoss)
            confirmed = max(confirmed, model.knownLoss)
        } else {
            model.knownLoss += 0.02 * (share - model.knownLoss)
            // Only lower rates may confirm a larger share; otherwise a policer's loss would be accepted little by
            // little.
            model.knownLoss = min(model.knownLoss, confirmed)
        }
        model.knownLoss = max(model.knownLoss, Self.leastInherent)
        confirmed = max(confirmed + 0.01 * min(1.3 * model.knownLoss - confirmed, 0), Self.leastInherent)
    }

    /// How many of the latest observations belong to the time since loss began.
    private var sinceOnset: Int {
        var number = 0
        while let observation = model.observation(back: number), observation.lost > 0 { number += 1 }
        return max(number, Self.recent)
    }

    /// Withdraws the limit if a higher rate came through: what seemed lost was late.
    private mutating func refute() -> Verdict? {
        guard var limit, let newest = model.observation(back: 0) else { return nil }
        let isExceeded =
            newest.rate > Self.excess * limit.rate && newest.lost <= newest.packets * model.knownLoss
        limit.exceeded = isExceeded ? limit.exceeded + 1 : 0
        self.limit = limit
        guard limit.exceeded >= Self.enoughExceeded else { return nil }
        self.limit = nil
        hold = Self.minimumHold
        return .restore(min(limit.before, newest.rate))
    }

    /// Withdraws the limit if as much is lost below it as above it.
    private mutating func retract(_ limit: Limit) -> Verdict? {
        guard let newest = model.observation(back: 0), newest.rate < 1.05 * limit.rate else { return nil }
        let number = limit.age + sinceOnset
        let free = model.fit(limit: .infinity, newest: number)
        guard free.likelihood > model.fit(limit: limit.rate, newest: number).likelihood + 1 else {
            return nil
        }
        model.knownLoss = max(model.knownLoss, min(free.inherentLoss, Self.mostInherent))
        confirmed = max(confirmed, 1.1 * model.knownLoss)
        self.limit = nil
        hold = Self.minimumHold
        return .restore(limit.before)
    }

    /// The highest limit among those that explain the loss about equally well; nil if none is clearly better than
    /// no limit.
    private func bestLimit(below estimate: Double, against free: LossModel.Fit, newest number: Int) -> Double?
    {
        var delivered = 0.0
        for back in 0..<2 {
            guard let observation = model.observation(back: back) else { continue }
            delivered += observation.rate * (1 - observation.lost / observation.packets) / 2
        }
        var best: (rate: Double, likelihood: Double)?
        func consider(_ rate: Double) {
            // A limit must not lie below what was delivered.
            let rate = max(rate, 0.95 * delivered)
            guard rate < 0.98 * estimate else { return }
            let likelihood = model.fit(limit: rate, newest: number).likelihood
            guard let known = best else { return best = (rate, likelihood) }
            let isBetter = likelihood > known.likelihood + 0.5
            let isAsGood = likelihood > known.likelihood - 0.5 && rate > known.rate
            if isBetter || isAsGood { best = (rate, likelihood) }
        }
        for factor in [0.95, 0.9, 0.85, 0.75] { consider(estimate * factor) }
        for back in 0..<4 {
            guard let observation = model.observation(back: back), observation.lost > 0 else { continue }
            consider(observation.rate * (1 - observation.lost / observation.packets))
        }
        guard let best, best.likelihood > free.likelihood + Self.evidence else { return nil }
        return best.rate
    }

    /// Puts a limit in force, for twice the previous time if the previous one ended recently.
    private mutating func impose(_ rate: Double, estimate: Double, at now: MonotonicTime) -> Verdict {
        if limit == nil {
            if let lastEnd, now < lastEnd + Self.memory {
                hold = min(hold * 2, Self.maximumHold)
            } else {
                hold = Self.minimumHold
            }
        }
        limit = Limit(
            rate: rate, before: limit?.before ?? estimate, age: limit?.age ?? 0, until: now + hold)
        return .limit(rate)
    }
}
