import Base

/// Remembers the bit rates that failed on a path, so that similar rates are not tried again for a while, longer each
/// time.
struct FailedSteps {
    /// A bit rate that failed.
    private struct Step {
        /// Total bit rate of all pictures, in bits a second.
        var cost: Int
        var hold: Duration
        var until: MonotonicTime
        /// Rate at which the path delivered bursts then, in bits a second; nil where it was unknown.
        var burstRate: Int?
    }

    /// Maximum number of remembered steps; the oldest is dropped first.
    private static let most = 4
    /// Percentage of a failed rate that may succeed.
    private static let less = 80
    /// A path that is faster by this factor, in percent, counts as a different one.
    private static let faster = 200

    private let shortest: Duration
    private let longest: Duration
    private var steps: [Step] = []

    /// - Parameters:
    ///   - shortest: how long a rate that failed once is not tried again.
    ///   - longest: the same for a rate that fails repeatedly, because the time doubles with each failure.
    init(shortest: Duration, longest: Duration) {
        self.shortest = shortest
        self.longest = longest
    }

    /// How long the latest failed rate is not tried again; nil if none has failed.
    var latestHold: Duration? { steps.last?.hold }

    /// Whether some rate is not tried now because it has failed.
    func isHolding(at now: MonotonicTime) -> Bool { steps.contains { now < $0.until } }

    /// The lowest total bit rate not to be tried now, in bits a second; `Int.max` if there is none.
    func ceiling(at now: MonotonicTime) -> Int {
        let least = steps.filter { now < $0.until }.map(\.cost).min()
        return least.map { $0 / 100 * Self.less } ?? .max
    }

    /// Records that a total bit rate failed.
    /// - Parameters:
    ///   - cost: in bits a second.
    ///   - burstRate: rate at which the path delivered bursts, whoever else used it, in bits a second; nil if
    ///     unknown.
    mutating func fail(with cost: Int, burstRate: Int? = nil, at now: MonotonicTime) {
        var step = Step(cost: cost, hold: shortest, until: now, burstRate: burstRate)
        if let index = steps.firstIndex(where: { Self.areAlike($0.cost, cost) }) {
            let before = steps.remove(at: index)
            step.cost = min(cost, before.cost)
            step.hold = min(before.hold * 2, longest)
        }
        step.until = now + step.hold
        if steps.count >= Self.most { steps.removeFirst() }
        steps.append(step)
    }

    private static func areAlike(_ one: Int, _ other: Int) -> Bool {
        one >= other / 100 * less && other >= one / 100 * less
    }

    /// Restarts the waiting time of every failed rate, because it was not found out whether the path can carry it
    /// now.
    mutating func extend(at now: MonotonicTime) {
        for index in steps.indices { steps[index].until = now + steps[index].hold }
    }

    /// Forgets rates that failed while the path was less than half as fast as now, because they say nothing about it.
    mutating func forgetSlower(than burstRate: Int) {
        steps.removeAll { step in step.burstRate.map { burstRate / Self.faster * 100 > $0 } ?? false }
    }

    /// Forgets all failures.
    mutating func forget() {
        steps = []
    }
}
