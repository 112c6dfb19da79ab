import Base
import Peer
import TestSupport
import Testing

/// A TCP connection over a path that takes so much, looked at each 20 ms; a step is 5 ms.
private struct StreamWorld {
    var estimator = BacklogEstimator()
    /// Bits a second that the path takes, and that are sent besides probes.
    var capacity: Double
    var source: Double
    var roundTrip = 40
    /// Milliseconds after which the path takes what it could have taken before: how a small window opens.
    var window = 5
    /// Whether there is anything to probe with.
    var canProbe = true
    private(set) var probes: [Probe] = []
    private var milliseconds = 1_000
    private var given = 0.0
    private var taken = 0.0
    private var credit = 0.0
    private var acknowledgements: [(time: Int, total: Double)] = []
    private var acknowledged = 0.0
    private var probe: (rate: Double, left: Double)?
    private var wasWaiting = false

    init(capacity: Double, source: Double) {
        self.capacity = capacity
        self.source = source
    }

    var now: MonotonicTime { MonotonicTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    mutating func run(_ seconds: Double) {
        let end = milliseconds + Int(seconds * 1_000)
        while milliseconds < end { step() }
    }

    private mutating func step() {
        milliseconds += 5
        // A frame each 33 ms or so.
        if milliseconds % 35 == 0 { given += source * 0.035 / 8 }
        if var run = probe {
            let part = min(run.rate * 0.005 / 8, run.left)
            given += part
            run.left -= part
            probe = run.left > 0 ? run : nil
        }
        credit = min(credit + capacity * 0.005 / 8, max(given - taken, capacity * Double(window) / 8_000))
        if milliseconds % window < 5, taken < given {
            let part = min(credit, given - taken)
            taken += part
            credit -= part
            acknowledgements.append((milliseconds + roundTrip, taken))
        }
        while let first = acknowledgements.first, first.time <= milliseconds {
            acknowledged = first.total
            acknowledgements.removeFirst()
        }
        guard milliseconds % 20 == 0 else { return }
        let waiting = Int(given) - Int(acknowledged)
        if waiting > 0 || wasWaiting {
            estimator.receive(
                StreamBacklog(
                    acknowledged: UInt64(acknowledged), waiting: waiting,
                    roundTrip: .milliseconds(Int64(roundTrip))),
                at: now)
        }
        wasWaiting = waiting > 0
        if !estimator.isProbing { probe = nil }
        guard let due = estimator.probeDue(at: now) else { return }
        probes.append(due)
        if canProbe {
            probe = (Double(due.bitrate), Double(due.bytes))
        } else {
            estimator.trustProbe(at: now)
        }
    }
}

@Suite struct `A backlog estimator` {
    @Test func `sets no limit on a path that carries all that is sent`() {
        var world = StreamWorld(capacity: 5_000_000, source: 900_000)
        world.run(20)
        #expect(world.estimator.cause == .application)
        #expect(!world.estimator.isOverused)
        #expect(world.estimator.bitrate >= 900_000)
        #expect(world.probes.isEmpty)
    }

    @Test(arguments: [100_000, 300_000, 600_000, 1_500_000, 8_000_000])
    func `measures a path that carries less than is sent`(capacity: Double) {
        var world = StreamWorld(capacity: capacity, source: 1.6 * capacity)
        world.run(4)
        #expect(world.estimator.isOverused)
        #expect(world.estimator.cause == .delay)
        let share = Double(world.estimator.bitrate) / capacity
        #expect(share > 0.75 && share < 1, "\(share)")
        // From here on less is sent than the path carries.
        world.source = 0.8 * capacity
        world.run(20)
        #expect(!world.estimator.isOverused)
        let later = Double(world.estimator.bitrate) / capacity
        #expect(later > 0.8 && later < 1.1, "\(later)")
    }

    @Test func `notices within half a second that the path carries less`() {
        var world = StreamWorld(capacity: 3_000_000, source: 2_500_000)
        world.run(10)
        world.capacity = 600_000
        world.run(0.5)
        #expect(world.estimator.isOverused)
        #expect(world.estimator.bitrate < 700_000)
    }

    /// A reader with a small buffer takes much at once, and then nothing.
    @Test(arguments: [40, 100, 200, 300])
    func `measures a window that opens in steps`(window: Int) {
        var world = StreamWorld(capacity: 400_000, source: 700_000)
        world.window = window
        world.run(8)
        let share = Double(world.estimator.bitrate) / 400_000
        #expect(share > 0.6 && share < 1.15, "\(share)")
    }

    @Test func `finds more by probes, and no more than there is`() {
        var world = StreamWorld(capacity: 600_000, source: 1_000_000)
        world.run(3)
        world.source = 400_000
        world.run(4)
        world.estimator.want(2_500_000)
        world.run(20)
        #expect(world.estimator.bitrate < 750_000)
        #expect(world.probes.count < 12, "\(world.probes.count)")
        world.capacity = 4_000_000
        world.run(20)
        #expect(world.estimator.bitrate > 2_400_000, "\(world.estimator.bitrate)")
        #expect(world.estimator.cause == .application)
    }

    @Test func `sends no probes when nothing more is wanted`() {
        var world = StreamWorld(capacity: 600_000, source: 1_000_000)
        world.run(3)
        world.source = 400_000
        world.run(60)
        #expect(world.probes.isEmpty)
    }

    /// A rate that cannot be probed is tried, later after each failure.
    @Test func `trusts a rate that cannot be probed until data has to wait`() {
        var world = StreamWorld(capacity: 600_000, source: 1_000_000)
        world.canProbe = false
        world.run(3)
        world.source = 400_000
        world.run(2)
        world.estimator.want(900_000)
        var tries = 0
        for _ in 0..<120 {
            // A source that expects room for more sends more.
            world.source = world.estimator.bitrate > 880_000 ? 800_000 : 400_000
            if world.source > 600_000 { tries += 1 }
            world.run(0.5)
        }
        #expect(tries > 1 && tries < 12, "\(tries)")
        world.capacity = 2_000_000
        world.run(125)
        #expect(world.estimator.bitrate > 880_000)
    }

    @Test func `learns nothing from a reader that reads nothing`() {
        var world = StreamWorld(capacity: 3_000_000, source: 900_000)
        world.run(5)
        let before = world.estimator.bitrate
        world.capacity = 0
        world.run(10)
        #expect(world.estimator.isOverused)
        world.capacity = 30_000_000
        world.run(1)
        #expect(!world.estimator.isOverused)
        #expect(world.estimator.bitrate >= before)
    }

    /// Whatever a kernel may tell: nothing traps, and the estimate stays within its limits.
    @Test(arguments: 0..<40 as Range<UInt64>) func `keeps its limits for any numbers`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var estimator = BacklogEstimator()
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        for _ in 0..<500 {
            let isWild = Bool.random(using: &random)
            now = now.advanced(byNanoseconds: .random(in: 0...2_000_000_000, using: &random))
            estimator.receive(
                StreamBacklog(
                    acknowledged: isWild ? random.next() : .random(in: 0...1_000_000, using: &random),
                    waiting: isWild
                        ? Int(truncatingIfNeeded: random.next()) : .random(in: 0...9_999, using: &random),
                    roundTrip: Bool.random(using: &random)
                        ? nil : .nanoseconds(Int64(truncatingIfNeeded: random.next() >> 2))),
                at: now)
            estimator.want(Bool.random(using: &random) ? nil : Int(truncatingIfNeeded: random.next()))
            if estimator.probeDue(at: now) != nil, Bool.random(using: &random) {
                estimator.trustProbe(at: now)
            }
            #expect(estimator.bitrate >= 50_000 && estimator.bitrate <= 50_000_000)
            #expect(estimator.wait >= .zero)
        }
    }
}
