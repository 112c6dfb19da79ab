import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What a viewer sees while the capacity of the link changes, as RFC 8867 has it for those who send.
///
/// An encoder follows a link closely; a server chooses among layers. So what counts is how long the viewer had the best
/// layer that the link took, and how long the picture stood.
@Suite struct Capacity {
    /// 720p, 480p and 360p.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(2_000_000, 720), (800_000, 480), (400_000, 360)])

    private struct Step {
        /// Seconds from the beginning.
        let start: Double
        /// Bits a second.
        let capacity: Int
    }

    private struct Outcome {
        /// Shares of the time, 0 to 1.
        var best = 0.0
        var frozen = 0.0
        var sound = 0.0
        var changes = 0
    }

    /// What the link takes with sound and headers, and with a tenth to spare for key frames.
    private static func bestHeight(at capacity: Int) -> Int? {
        ladder.first { $0.bitrate * 105 / 100 + 46_000 <= capacity * 10 / 11 }?.height
    }

    private func play(
        _ steps: [Step], for seconds: Double, seed: UInt64, delay: Duration = .milliseconds(50),
        loss: Double = 0
    ) throws -> Outcome {
        let simulation = try Simulation(seed: seed, conditions: .init(delay: delay, jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: Self.ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(2))
        let (viewer, session) = try simulation.add(.viewer)
        simulation.cap(viewer, steps.first.map { CappedLink(bitrate: $0.capacity) })
        #expect(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        simulation.conditions.loss = loss
        let slots = simulation.workers[0].sessions[session]?.slots ?? []
        let slot = try #require(slots.first { $0.plan.kind == .video })

        let tick = 0.02
        var outcome = Outcome()
        var capacity = 0
        var best = 0.0
        var frozen = 0.0
        var lastFrames = viewer.decoder.framesDecoded
        var lastPicture = 0.0
        var lastHeight: Int?
        let sound = viewer.audioPackets
        for turn in 0..<Int(seconds / tick) {
            let now = Double(turn) * tick
            if let step = steps.last(where: { $0.start <= now }), step.capacity != capacity {
                capacity = step.capacity
                simulation.cap(viewer, CappedLink(bitrate: capacity))
            }
            simulation.run(for: .milliseconds(20))
            let height = slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) }
            if height == Self.bestHeight(at: capacity) { best += tick }
            if height != lastHeight { outcome.changes += 1 }
            lastHeight = height
            if viewer.decoder.framesDecoded > lastFrames {
                if now - lastPicture > 0.2 { frozen += now - lastPicture }
                lastPicture = now
            }
            lastFrames = viewer.decoder.framesDecoded
        }
        if seconds - lastPicture > 0.2 { frozen += seconds - lastPicture }
        outcome.best = best / seconds
        outcome.frozen = frozen / seconds
        outcome.sound = Double(viewer.audioPackets - sound) / (50 * seconds)
        return outcome
    }

    /// RFC 8867 §5.1.
    ///
    /// At most 1 % frozen is wanted. Each of three steps up takes 0.24 s, in which a key frame of eight usual pictures
    /// passes a link that it fills, and the step down takes 0.5 to 0.65 s.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a viewer's picture follows a capacity that changes`(seed: UInt64) throws {
        let steps = [
            Step(start: 0, capacity: 1_000_000), Step(start: 40, capacity: 2_500_000),
            Step(start: 60, capacity: 600_000), Step(start: 80, capacity: 1_000_000),
        ]
        for delay in [Duration.milliseconds(50), .milliseconds(100)] {
            let outcome = try play(steps, for: 100, seed: seed, delay: delay)
            #expect(outcome.best >= 0.9, "\(outcome)")
            #expect(outcome.frozen <= 0.018, "\(outcome)")
            #expect(outcome.sound >= 0.995, "\(outcome)")
        }
    }

    /// RFC 8867 §5.1's last part for long: what fits is found once, and kept.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a constant capacity leads to one constant layer`(seed: UInt64) throws {
        for capacity in [600_000, 1_000_000, 1_500_000, 3_000_000] {
            let outcome = try play(
                [Step(start: 0, capacity: 3_000_000), Step(start: 2, capacity: capacity)], for: 120,
                seed: seed)
            #expect(outcome.changes <= 6, "\(capacity) bit/s: \(outcome)")
            #expect(outcome.best >= 0.9, "\(capacity) bit/s: \(outcome)")
            #expect(outcome.frozen <= 0.025, "\(capacity) bit/s: \(outcome)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `the capacity is used although a twentieth is lost by chance`(seed: UInt64) throws {
        let outcome = try play([Step(start: 0, capacity: 3_000_000)], for: 60, seed: seed, loss: 0.05)
        #expect(outcome.best >= 0.8, "\(outcome)")
        #expect(outcome.sound >= 0.94, "\(outcome)")
    }

    /// Capacities that nobody chose: each a few seconds long.
    @Test func `a viewer's picture follows a capacity of any shape`() throws {
        let seeds = 1...24 as ClosedRange<UInt64>
        var best = 0.0
        for seed in seeds {
            var random = SeededGenerator(seed: seed)
            var steps: [Step] = []
            var start = 0.0
            while start < 60 {
                steps.append(
                    Step(start: start, capacity: Int.random(in: 500_000...4_000_000, using: &random)))
                start += Double.random(in: 4...15, using: &random)
            }
            let outcome = try play(steps, for: 60, seed: seed)
            #expect(outcome.best >= 0.45, "\(seed): \(outcome)")
            #expect(outcome.frozen <= 0.08, "\(seed): \(outcome)")
            #expect(outcome.sound >= 0.98, "\(seed): \(outcome)")
            best += outcome.best / Double(seeds.count)
        }
        #expect(best >= 0.82)
    }
}
