import Base
import Peer
import TestSupport
import Testing

/// What the estimator reaches on virtual links; each with several seeds.
@Suite struct `A bandwidth estimator` {
    private typealias World = EstimatorWorld
    private static let ladder = EstimatorWorld.Source.layers([150_000, 500_000, 2_000_000])

    @Test(arguments: 1...3) func `finds the top layer at once on a fast link`(seed: UInt64) throws {
        var world = World(.init(10e6), source: .layers([150_000, 500_000, 2_500_000]), seed: seed)
        world.wanted = 2_800_000
        world.run(until: 2_000)
        #expect(try #require(world.first(from: 0) { $0.bitrate > 2.7e6 }) < 300)
    }

    @Test(arguments: 1...3) func `follows a fall of the capacity within 400 ms and a round trip`(seed: UInt64)
        throws
    {
        var world = World(.init([(0, 2.5e6), (8_000, 0.6e6)]), source: Self.ladder, seed: seed)
        world.wanted = 3e6
        world.run(until: 16_000)
        #expect(try #require(world.first(from: 8_000) { $0.bitrate < 0.7e6 }) <= 8_450)
        #expect(try #require(world.first(from: 8_300) { $0.queue < 20 }) < 9_500)
        #expect(world.longest(below: 0.7, 9_000..<16_000) < 1_000)
        #expect(world.shares(9_000..<16_000).most < 1.15)
        #expect(world.estimator.cause != .loss)
    }

    @Test(arguments: 1...3) func `follows it under a source that does not follow, too`(seed: UInt64) throws {
        var world = World(.init([(0, 2.5e6), (8_000, 0.6e6)]), source: .fixed(2e6), seed: seed)
        world.run(until: 16_000)
        #expect(try #require(world.first(from: 8_000) { $0.bitrate < 0.7e6 }) <= 8_450)
        #expect(world.shares(10_000..<16_000).least > 0.7)
        #expect(world.samples(9_000..<16_000).filter(\.isOverused).count > 600)
    }

    @Test(arguments: 1...3, [20_000, 60_000]) func `finds a rise of the capacity within 3 s`(
        seed: UInt64, rise: Int
    )
        throws
    {
        var world = World(.init([(0, 0.6e6), (rise, 2.5e6)]), source: Self.ladder, seed: seed)
        world.wanted = 2e6
        world.run(until: rise + 8_000)
        #expect(world.shares(5_000..<rise).most < 1.2)
        #expect(try #require(world.first(from: rise) { $0.bitrate > 2e6 }) - rise < 1_500)
        #expect(world.shares((rise + 3_000)..<(rise + 8_000)).least > 0.8)
    }

    @Test(arguments: 1...3, [10, 100, 300]) func `does so with any round trip`(seed: UInt64, roundTrip: Int)
        throws
    {
        var path = World.Path([(0, 2.5e6), (8_000, 0.6e6), (20_000, 2.5e6)])
        path.oneWay = roundTrip / 2
        var world = World(path, source: Self.ladder, seed: seed)
        world.wanted = 2.4e6
        world.run(until: 26_000)
        #expect(world.shares(4_000..<8_000).least > 0.9)
        #expect(try #require(world.first(from: 8_000) { $0.bitrate < 0.7e6 }) - 8_000 < 400 + roundTrip)
        #expect(world.longest(below: 0.7, 9_000..<20_000) < 1_000)
        #expect(try #require(world.first(from: 20_000) { $0.bitrate > 2e6 }) - 20_000 < 2_500)
    }

    @Test(arguments: 1...3) func `uses the link of RFC 8867's first case`(seed: UInt64) {
        var path = World.Path([(0, 1e6), (40_000, 2.5e6), (60_000, 0.6e6), (80_000, 1e6)])
        path.oneWay = 50
        path.feedback = 100
        var world = World(path, source: .adaptive(atMost: 4e6), seed: seed)
        world.wanted = 4e6
        world.run(until: 100_000)
        #expect(world.use(0..<100_000) > 0.9)
        for part in [2_000..<40_000, 40_000..<60_000, 60_000..<80_000, 80_000..<100_000] {
            #expect(world.use(part) > 0.85)
        }
        // A frame alone takes up to 33 ms.
        #expect(world.queue(percentile: 50, 0..<100_000) < 35)
        #expect(world.queue(percentile: 95, 0..<100_000) < 120)
    }

    @Test(arguments: 1...3, [nil, 4e6]) func `bears a source of one size just below the capacity`(
        seed: UInt64, wanted: Double?
    ) {
        // Key frames of ten times the size each 2 s stand in the queue for 250 ms.
        var world = World(.init(2.28e6), source: .fixed(2e6), seed: seed)
        world.wanted = wanted
        world.run(until: 40_000)
        #expect(world.longest(below: 0.7, 2_000..<40_000) < 1_000)
        #expect(world.longest(below: 0.88, 5_000..<40_000) < 1_000)
        #expect(world.shares(5_000..<40_000).most < 1.2)
        let overused = world.samples(5_000..<40_000).filter(\.isOverused).count
        #expect(overused < 80, "of 3,500 samples")
    }

    @Test(arguments: 1...3) func `keeps the little that comes while others burst`(seed: UInt64) {
        var path = World.Path(4e6)
        for second in 2..<20 { path.cross += [(second * 1_000, 12e6), (second * 1_000 + 100, 0)] }
        var world = World(path, source: .fixed(450_000, keyFrame: 1), seed: seed)
        world.wanted = 800_000
        world.run(until: 20_000)
        let least = world.samples(2_000..<20_000).map(\.bitrate).min() ?? 0
        #expect(least > 350_000, "\(least)")
    }

    @Test(arguments: 1...3, [0.05, 0.1]) func `uses four fifths of a link that loses a tenth`(
        seed: UInt64, loss: Double
    ) {
        var path = World.Path(2.5e6)
        path.loss = loss
        var world = World(path, source: .adaptive(atMost: 4e6), seed: seed)
        world.wanted = 4e6
        world.run(until: 40_000)
        #expect(world.use(5_000..<40_000) > 0.8 * (1 - loss) - 0.02)
        #expect(world.longest(below: 0.7, 5_000..<40_000) < 1_000)
    }

    @Test(arguments: 1...3) func `takes the loss of a policer for a limit`(seed: UInt64) throws {
        var path = World.Path([(0, 3e6), (8_000, 1e6)])
        path.policer = 100
        var world = World(path, source: Self.ladder, seed: seed)
        world.wanted = 2.3e6
        world.run(until: 30_000)
        // The layer of 2 Mbit/s does not fit any more.
        #expect(try #require(world.first(from: 8_000) { $0.bitrate < 2.17e6 }) < 8_700)
        // Probes pass through the policer's bucket: it is tried, and found wanting, less and less often.
        let above = world.samples(10_000..<30_000).filter { $0.bitrate > 2.1e6 }
        #expect(above.count < 300)
        #expect(world.longest(below: 0.7, 9_000..<30_000) < 1_000)
    }

    @Test(arguments: 1...3) func `finds what a policer lets through, from a source that does not follow`(
        seed: UInt64
    ) {
        var path = World.Path([(0, 3e6), (8_000, 1e6)])
        path.policer = 100
        var world = World(path, source: .fixed(2e6, keyFrame: 2), seed: seed)
        world.run(until: 20_000)
        #expect(world.shares(9_500..<20_000).least > 0.7)
        #expect(world.shares(9_500..<20_000).most < 1.3)
        #expect(world.estimator.cause == .loss)
    }

    @Test(arguments: 1...3, [true, false]) func `returns from an outage in which nothing came through`(
        seed: UInt64, hasSound: Bool
    ) throws {
        var path = World.Path(2.5e6)
        path.outage = 5_000..<15_000
        var world = World(path, source: Self.ladder, seed: seed)
        world.wanted = 2.4e6
        world.hasSound = hasSound
        world.run(until: 22_000)
        #expect(world.samples(14_900..<15_000).allSatisfy { $0.bitrate == 50_000 })
        #expect(try #require(world.first(from: 15_000) { $0.bitrate > 2.2e6 }) < 19_000)
    }

    @Test(arguments: 1...3) func `returns soon when feedback does`(seed: UInt64) throws {
        var path = World.Path(2.5e6)
        path.silence = 8_000..<14_000
        var world = World(path, source: Self.ladder, seed: seed)
        world.wanted = 2.4e6
        world.run(until: 18_000)
        #expect(world.samples(9_900..<10_000).allSatisfy { $0.bitrate > 2e6 })
        #expect(world.samples(13_900..<14_000).allSatisfy { $0.bitrate < 0.4e6 })
        #expect(try #require(world.first(from: 14_000) { $0.bitrate > 2.2e6 }) < 15_500)
    }

    @Test(arguments: [nil, 500_000.0])
    func `neither rises nor falls while little is sent, and rises when asked`(
        rate: Double?
    ) throws {
        var world = World(.init(10e6), source: rate.map { .fixed($0) } ?? .none)
        world.run(until: 60_000)
        #expect(world.samples.allSatisfy { $0.bitrate == 1_000_000 })
        #expect(world.estimator.cause == .application)
        #expect(world.probes.isEmpty)
        world.wanted = 3e6
        world.run(until: 63_000)
        #expect(try #require(world.first(from: 60_000) { $0.bitrate > 2.9e6 }) < 60_400)
    }

    @Test(arguments: 1...3) func `does not take jitter for a queue`(seed: UInt64) {
        var path = World.Path(2.5e6)
        path.jitter = 30
        var world = World(path, source: .fixed(1.5e6), seed: seed)
        world.wanted = 2.4e6
        world.run(until: 40_000)
        #expect(world.shares(3_000..<40_000).least > 0.7)
        #expect(world.samples(3_000..<40_000).filter(\.isOverused).count < 100, "of 3,700 samples")
    }

    @Test(arguments: 1...3) func `still follows the capacity with jitter`(seed: UInt64) throws {
        var path = World.Path([(0, 2.5e6), (8_000, 0.6e6)])
        path.jitter = 30
        var world = World(path, source: Self.ladder, seed: seed)
        world.wanted = 2.2e6
        world.run(until: 16_000)
        #expect(try #require(world.first(from: 8_000) { $0.bitrate < 0.7e6 }) <= 8_700)
        #expect(world.longest(below: 0.7, 9_000..<16_000) < 1_000)
    }

    @Test(arguments: 1...3, [100, 300]) func `does not take a pause of the link for a slower one`(
        seed: UInt64, pause: Int
    ) {
        var path = World.Path(5e6)
        path.pause = pause
        path.pauseEach = 2_000
        var world = World(path, source: .fixed(1.5e6), seed: seed)
        world.wanted = 3e6
        world.run(until: 30_000)
        #expect(world.shares(3_000..<30_000).least > 0.5)
    }

    @Test(arguments: 1...3) func `leaves other traffic what it takes`(seed: UInt64) {
        var path = World.Path(3e6)
        path.cross = [(10_000, 1.5e6), (30_000, 0)]
        var world = World(path, source: .adaptive(atMost: 4e6), seed: seed)
        world.wanted = 4e6
        world.run(until: 45_000)
        // Half of the link is left.
        #expect((0.42...0.53).contains(world.shares(12_000..<30_000).mean))
        #expect(world.queue(percentile: 95, 12_000..<30_000) < 120)
        #expect(world.shares(38_000..<45_000).mean > 0.75)
    }

    @Test(arguments: [120_000, 200_000, 300_000]) func `works at the speed of a bad mobile link`(
        capacity: Int
    ) {
        var world = World(
            .init(Double(capacity)), source: .layers([20_000, 50_000, 100_000, 200_000, 400_000]))
        world.wanted = 450_000
        world.run(until: 30_000)
        #expect(world.longest(below: 0.7, 5_000..<30_000) < 1_000)
        #expect(world.shares(5_000..<30_000).most < 1.25)
        #expect(world.queue(percentile: 95, 5_000..<30_000) < 250)
    }

    @Test func `spends next to nothing on probes that fail, and nothing on who has all there is`() {
        var world = World(.init(600_000), source: Self.ladder)
        world.wanted = 2e6
        world.run(until: 120_000)
        let bytes = world.probes.reduce(0) { $0 + $1.probe.bytes }
        #expect(Double(bytes * 8) < 0.03 * 600_000 * 120)
        let before = world.probes.count
        world.wanted = nil
        world.run(until: 150_000)
        #expect(world.probes.count == before)
    }

    @Test func `fits into 2.5 kB`() {
        #expect(MemoryLayout<BandwidthEstimator>.size <= 2_500)
    }
}

@Suite struct `A bandwidth estimator under hostile feedback` {
    private static let extremes: [Int64] = [
        .min, .min + 1, -1, 0, 1, 1 << 40, 1 << 62, .max - 1, .max,
    ]

    private func check(_ estimator: BandwidthEstimator) {
        #expect((50_000...50_000_000).contains(estimator.bitrate))
    }

    @Test(arguments: 0..<20) func `keeps its limits`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var estimator = BandwidthEstimator()
        var now: Int64 = 0
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...50, using: &random)
            estimator.sent(Int.random(in: -10...100_000, using: &random), at: at(now))
            let outcomes = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                PacketOutcome(
                    sent: at(now - Int64.random(in: -500...5_000, using: &random)),
                    size: Bool.random(using: &random)
                        ? Int.random(in: 0...1_500, using: &random)
                        : Self.extremes.randomElement(using: &random).map { Int($0) } ?? 0,
                    arrival: Bool.random(using: &random)
                        ? Self.extremes.randomElement(using: &random)
                        : Int64.random(in: .min ... .max, using: &random),
                    probe: Bool.random(using: &random) ? nil : UInt8.random(in: 0...3, using: &random),
                    isLate: Bool.random(using: &random))
            }
            let roundTrip: Duration? =
                Bool.random(using: &random) ? nil : .seconds(Int64.random(in: -5...1 << 40, using: &random))
            estimator.receive(outcomes, roundTrip: roundTrip, at: at(now))
            estimator.want(Self.extremes.randomElement(using: &random).map { Int($0) }, at: at(now))
            estimator.advance(to: at(now))
            if let probe = estimator.probeDue(at: at(now)) {
                #expect(probe.bytes >= 6_000 && probe.bytes < 1_000_000 && probe.bitrate > 0)
            }
            if let deadline = estimator.deadline { #expect(deadline > at(now)) }
            check(estimator)
        }
    }

    @Test(arguments: 0..<20) func `does not trap at the ends of time`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var limits = BandwidthEstimator.Limits()
        limits.start = .max
        limits.maximum = .max
        limits.minimum = .min
        var estimator = BandwidthEstimator(limits: limits)
        for _ in 0..<500 {
            func any() -> Int64 { Self.extremes.randomElement(using: &random) ?? 0 }
            let now = MonotonicTime(nanoseconds: any())
            estimator.sent(Int(any()), at: now)
            estimator.receive(
                (0..<5).map { _ in
                    PacketOutcome(
                        sent: MonotonicTime(nanoseconds: any()), size: Int(any()), arrival: any(),
                        probe: UInt8(truncatingIfNeeded: any()))
                },
                roundTrip: .nanoseconds(any()), at: now)
            estimator.want(Int(any()), at: now)
            estimator.advance(to: now)
            _ = estimator.probeDue(at: now)
            #expect(estimator.bitrate >= 1)
        }
    }

    @Test func `a thousand feedbacks a second change nothing`() {
        var estimator = BandwidthEstimator()
        for time in Int64(0)..<20_000 {
            estimator.sent(125, at: at(time))
            estimator.receive(
                [PacketOutcome(sent: at(time), size: 125, arrival: time * 1_000_000)],
                roundTrip: .milliseconds(1), at: at(time))
            estimator.receive([], roundTrip: nil, at: at(time))
        }
        #expect((950_000...1_300_000).contains(estimator.bitrate))
    }

    @Test func `a viewer who claims that all is lost gets the least`() {
        var estimator = BandwidthEstimator()
        for time in Int64(0)..<1_000 {
            estimator.sent(12_500, at: at(time * 100))
            estimator.receive(
                (0..<10).map { _ in PacketOutcome(sent: at(time * 100), size: 1_250, arrival: nil) },
                roundTrip: nil, at: at(time * 100))
        }
        #expect(estimator.bitrate == 50_000)
    }

    @Test func `a viewer of whom nothing is heard gets half each second`() {
        var estimator = BandwidthEstimator()
        #expect(estimator.deadline == nil)
        estimator.sent(1_000, at: at(0))
        #expect(estimator.deadline == at(2_000))
        estimator.advance(to: at(1_999))
        #expect(estimator.bitrate == 1_000_000)
        for (time, bitrate) in [(Int64(2_000), 500_000), (3_000, 250_000), (4_000, 125_000)] {
            estimator.advance(to: at(time))
            #expect(estimator.bitrate == bitrate)
        }
        for time in Int64(5)..<60 { estimator.advance(to: at(time * 1_000)) }
        #expect(estimator.bitrate == 50_000)
    }
}
