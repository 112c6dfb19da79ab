import Base

/// What the path did not take although it was thought to: about as much is not tried again for a while, longer each
/// time.
struct FailedSteps {
    private struct Step {
        /// Bits a second of all pictures.
        var cost: Int
        var hold: Duration
        var until: MonotonicTime
        /// Bits a second at which the path passed on what left at once; nil where that was not known.
        var burstRate: Int?
    }

    /// More is forgotten, what failed longest ago first.
    private static let most = 4
    /// Percent of what failed that may well not fail.
    private static let less = 80
    /// Percent of its speed from which on a path is another one.
    private static let faster = 200

    private let shortest: Duration
    private let longest: Duration
    private var steps: [Step] = []

    /// - Parameters:
    ///   - shortest: until what has failed once is tried again.
    ///   - longest: until what fails again and again is.
    init(shortest: Duration, longest: Duration) {
        self.shortest = shortest
        self.longest = longest
    }

    /// For how long what failed last waits; nil where nothing has failed.
    var latestHold: Duration? { steps.last?.hold }

    /// Whether something is not tried yet because it has failed.
    func isHolding(at now: MonotonicTime) -> Bool { steps.contains { now < $0.until } }

    /// Bits a second of all pictures that are too much to be tried now; `Int.max` where nothing is.
    func ceiling(at now: MonotonicTime) -> Int {
        let least = steps.filter { now < $0.until }.map(\.cost).min()
        return least.map { $0 / 100 * Self.less } ?? .max
    }

    /// Takes in that so many bits a second were too much.
    /// - Parameter burstRate: bits a second at which the path passed on what left at once, whoever else sent over it;
    ///   nil where that is not known.
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

    /// Has everything that failed wait as long as before: nobody knows yet whether the path takes it now.
    mutating func extend(at now: MonotonicTime) {
        for index in steps.indices { steps[index].until = now + steps[index].hold }
    }

    /// Takes in how fast the path is: what failed while it was much slower says nothing any more.
    mutating func forgetSlower(than burstRate: Int) {
        steps.removeAll { step in step.burstRate.map { burstRate / Self.faster * 100 > $0 } ?? false }
    }

    /// The path is another one now.
    mutating func forget() {
        steps = []
    }
}
