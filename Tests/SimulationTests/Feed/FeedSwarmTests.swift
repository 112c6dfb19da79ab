import Base
import TestSupport
import TestTraits
import Testing

/// A thousand viewers over all seeds, who swipe without rest over bad links; one seed after the other, because tests
/// that talk over real sockets run at the same time.
@Suite(.simulated, .sctpTurn, .serialized) struct `A swarm of viewers` {
    private static let viewers = 25

    @Test(arguments: ChosenSeed.or(1...40)) func `gets every switch whole over lossy links`(seed: UInt64)
        throws
    {
        let swarm = try FeedSwarm(
            seed: seed, viewers: Self.viewers, streams: 5, workers: 1 + Int(seed % 2)
        ) { simulation in
            simulation.conditions = .init(
                loss: 0.05, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(12))
        }
        swarm.run(for: .seconds(2))
        // Every fourth time somebody goes off the air meanwhile.
        if seed.isMultiple(of: 4), let stream = swarm.streams.last { swarm.end(stream) }
        swarm.run(for: .seconds(2))
        #expect(swarm.settle() == [])
        #expect(swarm.allFaults == [])
        #expect(swarm.viewersLeft == Self.viewers)
        #expect(swarm.swipes > Self.viewers)
        #expect(swarm.switches > Self.viewers)
    }

    @Test(arguments: 1...2) func `no sequence number is missing where nothing is lost`(workers: Int) throws {
        let swarm = try FeedSwarm(seed: 99, viewers: 20, streams: 5, workers: workers) { simulation in
            simulation.conditions = .init(delay: .milliseconds(10), jitter: .milliseconds(12))
        }
        swarm.run(for: .seconds(6), dwell: 50...600)
        #expect(swarm.settle() == [])
        #expect(swarm.allFaults == [])
        // What is under way at the end is not missing: it has not been numbered before what came.
        #expect(swarm.missing <= 20)
        #expect(swarm.switches > 100)
    }
}
