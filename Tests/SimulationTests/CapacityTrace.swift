import Base
import TestSupport

/// What a link takes over time.
struct CapacityCurve {
    struct Step {
        /// Seconds from the beginning.
        let start: Double
        /// Bits a second; 0 while nothing gets through.
        let capacity: Int
    }

    /// The first begins at 0; the last one goes on for ever.
    private var steps: [Step]

    init(_ steps: [Step]) {
        self.steps = steps
    }

    /// The step that goes on at a time.
    private func index(at time: Double) -> Int {
        var (low, high) = (0, steps.count)
        while low < high {
            let middle = (low + high) / 2
            if steps[middle].start <= time { low = middle + 1 } else { high = middle }
        }
        return max(low - 1, 0)
    }

    /// When a step ends.
    private func end(of index: Int) -> Double { index + 1 < steps.count ? steps[index + 1].start : .infinity }

    func capacity(at time: Double) -> Int { steps[index(at: time)].capacity }

    /// Bits a second over a while, on the average.
    func mean(from start: Double, to end: Double) -> Double {
        guard end > start else { return 0 }
        var bits = 0.0
        for index in index(at: start)...index(at: end) {
            let length = min(self.end(of: index), end) - max(steps[index].start, start)
            bits += max(length, 0) * Double(steps[index].capacity)
        }
        return bits / (end - start)
    }

    /// When so many bytes have passed that begin to at some time; long after all where they never do.
    func end(of bytes: Int, from start: Double) -> Double {
        var bits = Double(bytes) * 8
        var time = start
        for index in index(at: start)..<steps.count {
            let next = end(of: index)
            let capacity = Double(steps[index].capacity)
            if capacity > 0, time + bits / capacity <= next { return time + bits / capacity }
            bits -= max(min(next, 1e6) - time, 0) * capacity
            time = max(time, min(next, 1e6))
        }
        return time
    }

    /// Lets nothing through for a while.
    mutating func pause(from start: Double, for length: Double) {
        limit(from: start, for: length) { _ in 0 }
    }

    /// Lets less through for a while.
    mutating func limit(from start: Double, for length: Double, _ change: (Int) -> Int) {
        let after = Step(start: start + length, capacity: capacity(at: start + length))
        let within = steps.filter { $0.start > start && $0.start < after.start }
        let first = Step(start: start, capacity: capacity(at: start))
        let changed = ([first] + within).map { Step(start: $0.start, capacity: change($0.capacity)) }
        let before = steps.filter { $0.start < start }
        steps = before + changed + [after] + steps.filter { $0.start > after.start }
    }
}

/// A network as a viewer meets it for half a minute, made up from a seed.
struct CapacityTrace {
    enum Kind: String, CaseIterable {
        /// A line that others use now and then.
        case wired
        /// A phone that walks through a cell.
        case mobile
        /// A phone on a train: nothing gets through for a second or more, now and then.
        case train
        /// Wi-Fi that many share: it is somebody else's turn every now and then, for long where they send much.
        case hotel
        /// A line that loses packets whatever is sent over it.
        case lossy
    }

    static let seconds = 32.0

    private(set) var curve: CapacityCurve
    /// When nothing gets through for a second and more.
    private(set) var outages: [Range<Double>] = []
    /// Probability, 0 to 1.
    private(set) var loss = 0.0
    private(set) var queue = Duration.milliseconds(300)
    /// One way.
    private(set) var delay: Duration

    init(_ kind: Kind, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        delay = .milliseconds(Int64.random(in: 10...60, using: &random))
        switch kind {
        case .wired: curve = Self.steps(between: 500_000...4_000_000, every: 4...15, using: &random)
        case .mobile:
            curve = Self.walk(using: &random)
            queue = .milliseconds(500)
        case .train:
            curve = Self.steps(between: 700_000...4_000_000, every: 5...12, using: &random)
            // Some networks keep what does not get through, others do not.
            queue = .milliseconds(Bool.random(using: &random) ? 300 : 1_500)
            var start = Double.random(in: 6...10, using: &random)
            while start < Self.seconds - 6 {
                let length = Double.random(in: 1...2.5, using: &random)
                curve.pause(from: start, for: length)
                outages.append(start..<(start + length))
                start += length + Double.random(in: 8...14, using: &random)
            }
        case .hotel:
            let capacity = Int.random(in: 1_500_000...6_000_000, using: &random)
            curve = CapacityCurve([.init(start: 0, capacity: capacity)])
            var start = Double.random(in: 5...8, using: &random)
            while start < Self.seconds - 2 {
                let share = Int.random(in: 10...40, using: &random)
                curve.limit(from: start, for: .random(in: 0.2...0.5, using: &random)) { $0 / 100 * share }
                start += Double.random(in: 5...10, using: &random)
            }
            start = 0.1
            while start < Self.seconds {
                curve.pause(from: start, for: .random(in: 0.003...0.025, using: &random))
                start += Double.random(in: 0.05...0.2, using: &random)
            }
        case .lossy:
            curve = Self.steps(between: 700_000...5_000_000, every: 12...30, using: &random)
            loss = .random(in: 0.005...0.06, using: &random)
        }
    }

    /// Capacities that have nothing to do with the one before.
    private static func steps(
        between bounds: ClosedRange<Int>, every pause: ClosedRange<Double>,
        using random: inout SeededGenerator
    ) -> CapacityCurve {
        var steps: [CapacityCurve.Step] = []
        var start = 0.0
        while start < seconds {
            steps.append(.init(start: start, capacity: .random(in: bounds, using: &random)))
            start += .random(in: pause, using: &random)
        }
        return CapacityCurve(steps)
    }

    /// Each a little more or less than the one before.
    private static func walk(using random: inout SeededGenerator) -> CapacityCurve {
        var steps: [CapacityCurve.Step] = []
        var start = 0.0
        var capacity = Double.random(in: 1_000_000...5_000_000, using: &random)
        while start < seconds {
            steps.append(.init(start: start, capacity: Int(capacity)))
            capacity *= .random(in: 0.8...1.25, using: &random)
            capacity = min(max(capacity, 600_000), 8_000_000)
            start += .random(in: 0.3...1, using: &random)
        }
        return CapacityCurve(steps)
    }

    /// Whether nothing gets through for long.
    func isOut(at time: Double) -> Bool {
        outages.contains { time >= $0.lowerBound && time < $0.upperBound }
    }

    /// Bits a second that arrive in the two seconds around, where anything gets through.
    func sustained(at time: Double) -> Double {
        let (start, end) = (max(time - 1, 0), time + 1)
        let out = outages.reduce(0) { $0 + max(min($1.upperBound, end) - max($1.lowerBound, start), 0) }
        guard out < end - start else { return 0 }
        return curve.mean(from: start, to: end) * (end - start) / (end - start - out)
    }
}
