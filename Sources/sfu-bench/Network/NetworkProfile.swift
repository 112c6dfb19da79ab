/// A network between server and viewer: its capacity over time, its delay, and its loss.
struct NetworkProfile: Equatable, Sendable {
    /// A change of the link's capacity.
    struct Step: Equatable, Sendable {
        /// In seconds from the beginning.
        var start: Double
        /// In bits a second; 0 if nothing passes.
        var capacity: Int
    }

    /// As in `--profile`.
    let name: String
    let summary: String
    /// How long a viewer watches over it.
    let seconds: Double
    /// In ascending order; the first one starts at 0.
    var steps: [Step]
    /// Round trip without the queue, in milliseconds; all of it is added on the way to the viewer.
    var roundTrip = 100.0
    /// The most by which a packet is delayed at random, in milliseconds; packets do not overtake each other.
    var jitter = 0.0
    /// Probability, 0 to 1, that a packet is lost by chance.
    var loss = 0.0
    /// The longest wait in front of the link, in milliseconds; a packet that would wait longer is dropped.
    var queue = 300.0

    /// Bits a second, at a number of seconds from the beginning.
    func capacity(at time: Double) -> Int {
        steps.last { $0.start <= time }?.capacity ?? 0
    }

    static func named(_ name: String) -> NetworkProfile? { all.first { $0.name == name } }

    /// All profiles that `--profile` accepts.
    ///
    /// The tool has one viewer, so those of RFC 8867 with several flows have the capacity that is left to one flow when
    /// the others take their fair share.
    static let all = rfc8867 + [lte, train, hotel, loss]

    /// Steps from pairs of a start in seconds and a capacity in kbit/s.
    private static func curve(_ steps: [(Double, Int)]) -> [Step] {
        steps.map { Step(start: $0.0, capacity: $0.1 * 1_000) }
    }

    /// - Source: RFC 8867 §5.1 to §5.8; a one-way delay of 50 ms (§4.2), a queue of 300 ms (§4.4).
    private static let rfc8867 = [
        NetworkProfile(
            name: "rfc8867-5.1", summary: "variable capacity, one flow", seconds: 100,
            steps: curve([(0, 1_000), (40, 2_500), (60, 600), (80, 1_000)])),
        NetworkProfile(
            name: "rfc8867-5.2", summary: "variable capacity, half as much", seconds: 125,
            steps: curve([(0, 2_000), (25, 1_000), (50, 1_750), (75, 500), (100, 1_000)])),
        NetworkProfile(
            name: "rfc8867-5.3", summary: "the forward path of congested feedback", seconds: 100,
            steps: curve([(0, 2_000), (20, 1_000), (40, 500), (60, 2_000)])),
        NetworkProfile(
            name: "rfc8867-5.4", summary: "a second and a third flow join", seconds: 120,
            steps: curve([(0, 3_500), (20, 1_750), (40, 1_167)])),
        NetworkProfile(
            name: "rfc8867-5.5", summary: "the longest of five round trips, as others join", seconds: 100,
            steps: curve([(0, 4_000), (10, 2_000), (20, 1_333), (30, 1_000), (40, 800)]), roundTrip: 300),
        NetworkProfile(
            name: "rfc8867-5.6", summary: "beside one long TCP flow", seconds: 120,
            steps: curve([(0, 1_000), (119, 2_000)])),
        NetworkProfile(
            name: "rfc8867-5.7", summary: "beside short TCP flows", seconds: 120,
            steps: wandering(
                seed: 57, seconds: 120, between: 700_000...2_000_000, every: 2...12, holding: 0)),
        NetworkProfile(
            name: "rfc8867-5.8", summary: "one of three flows pauses", seconds: 120,
            steps: curve([(0, 1_167), (40, 1_750), (60, 1_167)])),
    ]

    private static let lte = NetworkProfile(
        name: "lte", summary: "a phone moving through a cell", seconds: 60,
        steps: wandering(
            seed: 4, seconds: 60, between: 600_000...6_000_000, every: 0.5...2, holding: 0.6),
        roundTrip: 60, jitter: 8, queue: 500)

    private static let train = NetworkProfile(
        name: "train", summary: "a phone on a train, with gaps of up to two seconds", seconds: 60,
        steps: withGaps(
            wandering(
                seed: 9, seconds: 60, between: 200_000...3_000_000, every: 0.5...3, holding: 0.5),
            at: [(12, 1), (27, 2), (44, 1.5)]),
        roundTrip: 90, jitter: 15, queue: 1_000)

    private static let hotel = NetworkProfile(
        name: "hotel", summary: "Wi-Fi shared by many, with a long queue", seconds: 60,
        steps: wandering(
            seed: 12, seconds: 60, between: 400_000...2_500_000, every: 1...6, holding: 0.3),
        roundTrip: 40, jitter: 12, loss: 0.02, queue: 1_000)

    private static let loss = NetworkProfile(
        name: "loss-10", summary: "a tenth of all packets lost at random", seconds: 60,
        steps: [Step(start: 0, capacity: 5_000_000)], roundTrip: 60, loss: 0.1)

    /// Capacities that vary at random, but identically in each run.
    /// - Parameters:
    ///   - pause: the range of a step's length, in seconds.
    ///   - holding: the share of the previous capacity in the next one, 0 to 1; larger values make smoother changes.
    private static func wandering(
        seed: UInt64, seconds: Double, between bounds: ClosedRange<Int>, every pause: ClosedRange<Double>,
        holding: Double
    ) -> [Step] {
        var random = SplitMix64(seed: seed)
        var steps: [Step] = []
        var start = 0.0
        var last = Double(bounds.upperBound) / 2
        while start < seconds {
            let drawn = Double(Int.random(in: bounds, using: &random))
            last = holding * last + (1 - holding) * drawn
            steps.append(Step(start: start, capacity: Int(last)))
            start += Double.random(in: pause, using: &random)
        }
        return steps
    }

    /// Inserts gaps without any capacity; steps that would start within a gap take effect at its end.
    private static func withGaps(_ steps: [Step], at gaps: [(start: Double, seconds: Double)]) -> [Step] {
        var all = steps.filter { step in
            !gaps.contains { step.start >= $0.start && step.start < $0.start + $0.seconds }
        }
        for gap in gaps {
            let after = steps.last { $0.start <= gap.start + gap.seconds }?.capacity ?? 0
            all.append(Step(start: gap.start, capacity: 0))
            all.append(Step(start: gap.start + gap.seconds, capacity: after))
        }
        return all.sorted { $0.start < $1.start }
    }
}
