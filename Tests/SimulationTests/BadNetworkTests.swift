import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing

@Suite(.simulated) struct BadNetwork {
    /// Loss, delay, jitter that reorders, and duplicates, all drawn from the seed.
    private func conditions(_ seed: UInt64) -> SimulatedNetwork.Conditions {
        var random = SeededGenerator(seed: seed)
        return SimulatedNetwork.Conditions(
            loss: Double.random(in: 0...0.08, using: &random),
            duplication: Double.random(in: 0...0.05, using: &random),
            delay: .milliseconds(Int64.random(in: 1...60, using: &random)),
            jitter: .milliseconds(Int64.random(in: 0...25, using: &random)))
    }

    /// Ten blocks, so that they run side by side.
    @Test(arguments: 0..<10) func `never stops pictures for long, whatever is lost on the way`(block: UInt64)
        throws
    {
        for seed in (block * 100)..<(block * 100 + 100) {
            let conditions = conditions(seed)
            let simulation = try Simulation(seed: seed, conditions: conditions)
            let (publisher, _) = try simulation.add(.publisher)
            let (viewer, _) = try simulation.add(.viewer)
            let isConnected = simulation.run(for: .seconds(20)) {
                publisher.isConnected && viewer.isConnected
            }
            #expect(isConnected, "seed \(seed)")
            let hasPicture = simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 0 }
            #expect(hasPicture, "seed \(seed)")
            simulation.run(for: .milliseconds(1_500))
            // Repair has to bring in what is on its way: a while without loss.
            simulation.conditions = .perfect
            simulation.run(for: .milliseconds(1_500))
            let shown = viewer.decoder.framesDecoded
            #expect(shown > 60, "seed \(seed): \(shown) frames in 3 s, \(conditions)")
            #expect(viewer.decoder.complaints.isEmpty, "seed \(seed): \(viewer.decoder.complaints)")
            #expect(publisher.keyFrameRequests <= 6, "seed \(seed)")
        }
    }

    @Test func `is the same for the same seed`() throws {
        func story() throws -> [Int] {
            let simulation = try Simulation(seed: 42, conditions: conditions(42))
            let (publisher, _) = try simulation.add(.publisher)
            let (viewer, _) = try simulation.add(.viewer)
            simulation.run(for: .seconds(4))
            return [
                viewer.decoder.framesDecoded, viewer.audioPackets, publisher.keyFrameRequests,
                publisher.transportFeedback,
            ]
        }
        #expect(try story() == story())
    }

    @Test func `is repaired on the publisher's side and on the viewer's`() throws {
        let simulation = try Simulation(seed: 7)
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 10 })
        simulation.conditions.loss = 0.03
        simulation.run(for: .seconds(5))
        simulation.conditions.loss = 0
        simulation.run(for: .seconds(2))
        #expect(simulation.network.lost > 20)
        #expect(viewer.received.map(\.stream.counters.repaired).reduce(0, +) > 5)
        #expect(publisher.keyFrameRequests <= 3)
        // Every frame got through in the end: 7.5 s at 30 a second, less the start.
        #expect(viewer.decoder.framesDecoded > 215)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    /// A round trip that was long for a while, as on a busy machine, is no reason to refuse what is asked again.
    @Test func `is repaired in time after a while of long round trips`() throws {
        var (resent, refused): (UInt64, UInt64) = (0, 0)
        for seed in UInt64(1)...6 {
            let simulation = try Simulation(seed: seed)
            _ = try simulation.add(.publisher)
            let (viewer, _) = try simulation.add(.viewer)
            #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 90 })
            let usual = simulation.conditions.delay
            simulation.conditions.delay = .milliseconds(500)
            simulation.run(for: .seconds(10))
            simulation.conditions.delay = usual
            simulation.run(for: .seconds(1))
            let before = simulation.workers[0].statistics.media
            simulation.conditions.loss = 0.15
            simulation.run(for: .seconds(2))
            let after = simulation.workers[0].statistics.media
            resent += after.packetsResent - before.packetsResent
            refused += after.refusals.tooSoon - before.refusals.tooSoon
        }
        #expect(resent > 200)
        #expect(refused < resent / 20)
    }

    /// Firefox lets no RTX packet through that does not say so, whatever the answer says of its SSRC.
    @Test(arguments: UInt64(1)...12) func `is repaired by packets that name their m-line`(seed: UInt64) throws
    {
        let simulation = try Simulation(seed: seed)
        _ = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 90 })
        simulation.conditions.loss = 0.05
        simulation.run(for: .seconds(3))
        #expect(viewer.repairs > 3)
        #expect(viewer.namedRepairs == viewer.repairs)
    }
}
