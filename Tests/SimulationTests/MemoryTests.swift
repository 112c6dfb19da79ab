import Base
import ClientPeer
import Forwarding
import Peer
import Testing

/// Slots, tracks and sessions refer to each other in circles, which somebody has to cut.
@Suite(.simulated) struct Sessions {
    /// Watches objects without keeping them.
    private struct Watch {
        weak var session: Session?
        weak var slot: Slot?
        weak var track: Track?
    }

    private func watch(_ simulation: Simulation) -> [Watch] {
        simulation.workers.flatMap { worker in
            worker.sessions.values.map { session in
                Watch(
                    session: session, slot: session.slots.first,
                    track: session.sources.first?.track ?? session.slots.first?.track)
            }
        }
    }

    @Test(arguments: [1, 2]) func `are freed once they ended`(workers: Int) throws {
        let simulation = try Simulation(seed: 7, workers: workers)
        let (publisher, publication) = try simulation.add(.publisher)
        let (viewer, view) = try simulation.add(.viewer, worker: workers - 1)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 10 })
        let watched = watch(simulation)
        #expect(watched.count == 2 && watched.allSatisfy { $0.session != nil && $0.track != nil })
        simulation.perform(.close(view), worker: workers - 1)
        simulation.perform(.close(publication))
        simulation.run(for: .seconds(1))
        #expect(publisher.isConnected == false)
        #expect(watched.allSatisfy { $0.session == nil && $0.slot == nil && $0.track == nil })
    }

    @Test func `are freed with their worker`() throws {
        var watched: [Watch] = []
        do {
            let simulation = try Simulation(seed: 8)
            _ = try simulation.add(.publisher)
            let (viewer, _) = try simulation.add(.viewer)
            #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 10 })
            watched = watch(simulation)
            #expect(watched.count == 2)
        }
        #expect(watched.allSatisfy { $0.session == nil && $0.slot == nil && $0.track == nil })
    }
}
