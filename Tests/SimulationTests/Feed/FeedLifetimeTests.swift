import Forwarding
import TestSupport
import TestTraits
import Testing

@Suite(.simulated, .sctpTurn, .serialized) struct `Sessions of a feed` {
    private struct Held {
        weak var session: Session?
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>) func `are freed with their worker`(seed: UInt64) throws {
        var held: [Held] = []
        do {
            let swarm = try FeedSwarm(seed: seed, viewers: 25, streams: 5, workers: 1 + Int(seed % 2)) {
                $0.conditions = .init(
                    loss: 0.05, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(12))
            }
            for worker in swarm.simulation.workers {
                held += worker.sessions.values.map { Held(session: $0) }
            }
            swarm.run(for: .seconds(2))
            if seed.isMultiple(of: 4), let stream = swarm.streams.last { swarm.end(stream) }
            swarm.run(for: .seconds(2))
            _ = swarm.settle()
        }
        #expect(held.count == 30)
        #expect(held.allSatisfy { $0.session == nil })
    }
}
