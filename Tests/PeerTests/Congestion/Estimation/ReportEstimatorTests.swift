import Base
import Peer
import TestSupport
import Testing

/// A receiver that says how much it can take in, behind a link with a queue of 300 ms; a step is 5 ms.
private struct ReportWorld {
    var estimator = ReportEstimator()
    var receiver = EstimatingReceiver()
    /// Bits a second that the link takes, and that are sent besides probes.
    var capacity: Double
    var source: Double
    /// Share of packets that are lost before the link.
    var loss = 0.0
    var canProbe = true
    private(set) var probes: [Probe] = []
    private var random = SeededGenerator(seed: 5)
    private var milliseconds = 1_000
    private var total: UInt64 = 0
    private var owed = 0.0
    private var free = 0.0
    private var onTheWay: [(arrival: Int, sent: Int, size: Int)] = []
    private var probe: (rate: Double, left: Double)?
    private var told = LossResponse.Interval()

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
        owed += source * 0.005 / 8
        if var run = probe {
            let part = min(run.rate * 0.005 / 8, run.left)
            owed += part
            run.left -= part
            probe = run.left > 0 ? run : nil
        }
        while owed >= 1_000 {
            owed -= 1_000
            send(1_000)
        }
        while let first = onTheWay.first, first.arrival <= milliseconds {
            onTheWay.removeFirst()
            let fraction = UInt32(first.sent % 1_000) << 18 / 1_000
            let stamp = UInt32(first.sent / 1_000 & 0x3F) << 18 | fraction
            if let said = receiver.receive(first.size, sent: stamp, at: now) {
                _ = estimator.receive(
                    said, of: 1, sent: total, roundTrip: .milliseconds(60), at: now + .milliseconds(30))
            }
        }
        if milliseconds % 1_000 == 0 {
            estimator.receive(told, sent: total, at: now)
            told = LossResponse.Interval()
        }
        _ = estimator.advance(to: now)
        guard let due = estimator.probeDue(at: now) else { return }
        probes.append(due)
        if canProbe {
            probe = (Double(due.bitrate), Double(due.bytes))
        } else {
            estimator.trustProbe(at: now)
        }
    }

    private mutating func send(_ size: Int) {
        total += UInt64(size)
        told.expected += 1
        let start = max(free, Double(milliseconds))
        guard start <= Double(milliseconds) + 300, Double.random(in: 0..<1, using: &random) >= loss else {
            return told.lost += 1
        }
        free = start + Double(size) * 8_000 / capacity
        onTheWay.append((Int(free) + 30, milliseconds, size))
    }
}

@Suite struct `A report estimator` {
    @Test func `sets no limit on a path that carries all that is sent`() {
        var world = ReportWorld(capacity: 5_000_000, source: 900_000)
        world.run(20)
        #expect(world.estimator.cause == .application)
        #expect(!world.estimator.isOverused)
        #expect(world.estimator.bitrate >= 900_000)
        #expect(world.estimator.bitrate <= 1_400_000, "no more than is proven")
        #expect(world.probes.isEmpty)
    }

    @Test(arguments: [300_000, 600_000, 1_500_000, 8_000_000])
    func `trusts a receiver that reports less than is sent`(capacity: Double) {
        var world = ReportWorld(capacity: capacity, source: 1.6 * capacity)
        world.run(5)
        #expect(world.estimator.cause != .application)
        let share = Double(world.estimator.bitrate) / capacity
        #expect(share > 0.5 && share <= 1, "\(share)")
        // From here on less is sent than the path carries, which must not lower the estimate.
        world.source = 0.3 * capacity
        world.run(3)
        let before = world.estimator.bitrate
        world.run(20)
        #expect(!world.estimator.isOverused)
        #expect(world.estimator.bitrate >= before)
    }

    @Test func `lowers the estimate within a second`() {
        var world = ReportWorld(capacity: 3_000_000, source: 2_000_000)
        world.run(10)
        world.capacity = 600_000
        world.run(1)
        #expect(world.estimator.isOverused)
        #expect(world.estimator.bitrate < 1_900_000)
        world.run(2)
        #expect(world.estimator.bitrate < 700_000)
    }

    @Test func `finds more by probes, and no more than there is`() {
        var world = ReportWorld(capacity: 600_000, source: 1_000_000)
        world.run(5)
        world.source = 250_000
        world.run(4)
        world.estimator.want(1_900_000)
        world.run(40)
        #expect(world.estimator.bitrate < 900_000, "\(world.estimator.bitrate)")
        #expect(world.probes.count < 15, "\(world.probes.count)")
        world.capacity = 4_000_000
        world.run(40)
        #expect(world.estimator.bitrate > 1_800_000, "\(world.estimator.bitrate)")
        #expect(world.estimator.cause == .application)
    }

    /// A receiver's report on a queue that a probe made must not lower the rate below that before the probe.
    @Test func `is not lowered by its own probes`() {
        var world = ReportWorld(capacity: 600_000, source: 1_000_000)
        world.run(5)
        world.source = 500_000
        world.run(5)
        world.estimator.want(1_900_000)
        for _ in 0..<60 {
            world.run(1)
            #expect(world.estimator.bitrate >= 500_000)
        }
        #expect(world.probes.count > 2 && world.probes.count < 15, "\(world.probes.count)")
    }

    /// It takes a while until a receiver's estimate is as high as what it gets.
    @Test func `a receiver that has not caught up is no limit`() {
        var world = ReportWorld(capacity: 600_000, source: 1_000_000)
        world.run(5)
        world.source = 200_000
        world.run(3)
        world.capacity = 5_000_000
        world.estimator.want(700_000)
        world.run(20)
        #expect(world.estimator.bitrate >= 700_000)
        world.source = 700_000
        world.estimator.want(nil)
        for _ in 0..<20 {
            world.run(1)
            #expect(world.estimator.bitrate >= 600_000)
        }
    }

    @Test func `sends no probes when nothing more is wanted`() {
        var world = ReportWorld(capacity: 600_000, source: 1_000_000)
        world.run(3)
        world.source = 400_000
        world.run(60)
        #expect(world.probes.isEmpty)
    }

    @Test func `is not lowered by what radio links lose`() {
        var world = ReportWorld(capacity: 8_000_000, source: 1_500_000)
        world.run(5)
        world.loss = 0.1
        world.run(60)
        #expect(world.estimator.cause == .application)
        #expect(world.estimator.bitrate > 1_400_000)
    }

    @Test func `is lowered by more loss than that`() {
        var world = ReportWorld(capacity: 8_000_000, source: 1_500_000)
        world.run(5)
        world.loss = 0.3
        world.run(5)
        #expect(world.estimator.cause == .loss)
        #expect(world.estimator.bitrate < 1_200_000)
    }

    /// A rate that cannot be probed is tried, later after each failure.
    @Test func `trusts a rate that cannot be probed until the receiver reports less`() {
        var world = ReportWorld(capacity: 600_000, source: 1_000_000)
        world.canProbe = false
        world.run(5)
        world.source = 250_000
        world.run(3)
        world.estimator.want(900_000)
        var tries = 0
        for _ in 0..<120 {
            let isTried = world.estimator.bitrate > 880_000
            if isTried, world.source < 600_000 { tries += 1 }
            // A source that expects room for more sends more.
            world.source = isTried ? 800_000 : 250_000
            world.run(0.5)
        }
        #expect(tries > 1 && tries < 8, "\(tries)")
        world.capacity = 2_000_000
        world.run(125)
        #expect(world.estimator.bitrate > 880_000)
    }

    @Test func `stays at what a receiver keeps saying`() {
        var estimator = ReportEstimator()
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var sent: UInt64 = 0
        for _ in 0..<20 {
            now = now + .milliseconds(500)
            sent += 125_000
            _ = estimator.receive(1_000_000, of: 1, sent: sent, roundTrip: nil, at: now)
        }
        #expect(estimator.bitrate == 1_000_000)
        #expect(estimator.cause == .delay)
    }

    @Test func `adds up the reports of all streams`() {
        var estimator = ReportEstimator()
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var sent: UInt64 = 0
        for _ in 0..<20 {
            now = now + .milliseconds(500)
            sent += 125_000
            _ = estimator.receive(1_100_000, of: 1, sent: sent, roundTrip: nil, at: now)
            _ = estimator.receive(
                1_100_000, of: 3, sent: sent, roundTrip: nil, at: now + .milliseconds(30))
        }
        #expect(estimator.cause == .application)
        #expect(estimator.bitrate > 2_000_000)
    }

    /// Whatever a receiver may say: nothing traps, and the estimate stays within its limits.
    @Test(arguments: 0..<40 as Range<UInt64>) func `keeps its limits for any numbers`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var estimator = ReportEstimator()
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        for _ in 0..<500 {
            let isWild = Bool.random(using: &random)
            now = now.advanced(byNanoseconds: .random(in: 0...2_000_000_000, using: &random))
            _ = estimator.receive(
                [0, 1 << 63, .max, random.next(), 400_000].randomElement(using: &random) ?? 0,
                of: isWild ? Int(truncatingIfNeeded: random.next()) : .random(in: 0..<4, using: &random),
                sent: isWild ? random.next() : .random(in: 0...1_000_000, using: &random),
                roundTrip: Bool.random(using: &random)
                    ? nil : .nanoseconds(Int64(truncatingIfNeeded: random.next() >> 2)), at: now)
            estimator.receive(
                LossResponse.Interval(
                    expected: .random(in: 0...(1 << 20), using: &random),
                    lost: .random(in: 0...(1 << 20), using: &random)),
                sent: random.next(), at: now)
            estimator.want(Bool.random(using: &random) ? nil : Int(truncatingIfNeeded: random.next()))
            if estimator.probeDue(at: now) != nil, Bool.random(using: &random) {
                estimator.trustProbe(at: now)
            }
            _ = estimator.advance(to: now)
            #expect(estimator.bitrate >= 50_000 && estimator.bitrate <= 50_000_000)
        }
    }
}

/// Receivers that say nothing of what they can take in, and report once a second what they lost.
@Suite struct `An estimate by loss alone` {
    private var estimator = ReportEstimator(arrived: 600_000, at: at(0))
    private var now: Int64 = 0
    private var total: UInt64 = 0

    /// A second in which 100 packets were sent at a rate.
    private mutating func report(_ lost: Int, at bitrate: Int = 500_000, hasBurst: Bool = false) {
        now += 1_000
        total += UInt64(bitrate / 8)
        estimator.receive(.init(expected: 100, lost: lost, hasBurst: hasBurst), sent: total, at: at(now))
    }

    private mutating func advance() -> Bool {
        let probe = estimator.probeDue(at: at(now))
        #expect(probe == nil, "of a short probe reports tell too little")
        return estimator.advance(to: at(now))
    }

    @Test mutating func `begins with what arrived`() {
        #expect(estimator.bitrate == 600_000 && estimator.cause == .loss && estimator.goesByLossAlone)
        #expect(estimator.deadline == nil, "nothing is wanted")
    }

    @Test mutating func `falls to what arrives, after two reports each time`() {
        report(0, at: 2_000_000)
        report(40, at: 1_000_000)
        #expect(estimator.bitrate == 600_000)
        report(50, at: 1_000_000)
        #expect((450_000...550_000).contains(estimator.bitrate), "\(estimator.bitrate)")
        let before = estimator.bitrate
        report(60, at: 500_000)
        #expect(estimator.bitrate == before, "it tells of what was sent before, too")
        report(60, at: 500_000)
        #expect(estimator.bitrate < before)
        #expect(estimator.cause == .loss)
    }

    @Test mutating func `is not lowered by little, nor by a burst`() {
        for _ in 0..<10 { report(15) }
        for _ in 0..<10 { report(60, hasBurst: true) }
        for _ in 0..<10 {
            report(60)
            report(0)
        }
        #expect(estimator.bitrate == 600_000)
    }

    /// How long it takes until what is wanted is tried.
    private mutating func wait() -> Int {
        for second in 1...200 {
            report(0)
            if advance() { return second }
        }
        return .max
    }

    @Test mutating func `tries the wanted rate after a while, and later each time that it fails`() {
        estimator.want(1_000_000)
        #expect(estimator.deadline == at(10_000))
        let first = wait()
        #expect(first == 10)
        #expect(estimator.bitrate == 1_100_000 && estimator.cause == .application)
        var waits: [Int] = []
        for _ in 0..<5 {
            // One report is enough of what is only tried.
            report(40, at: 1_000_000)
            #expect((400_000...700_000).contains(estimator.bitrate), "\(estimator.bitrate)")
            waits.append(wait())
        }
        #expect(waits == [20, 40, 80, 120, 120])
        // It has held: the next fall is another one.
        for _ in 0..<20 { report(0, at: 1_000_000) }
        report(40, at: 1_000_000)
        report(40, at: 1_000_000)
        let last = wait()
        #expect(last == 10)
    }

    @Test mutating func `tries nothing more while much is lost anyway`() {
        estimator.want(1_000_000)
        for _ in 0..<60 {
            report(30)
            let isTried = advance()
            #expect(!isTried)
            if let deadline = estimator.deadline { #expect(deadline > at(now)) }
        }
    }

    @Test mutating func `a receiver's own estimate replaces it`() {
        _ = estimator.receive(900_000, of: 0, sent: total, roundTrip: nil, at: at(now))
        #expect(!estimator.goesByLossAlone)
    }
}
