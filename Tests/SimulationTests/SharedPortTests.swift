import Base
import ClientPeer
import Forwarding
import Peer
import Testing

/// Several workers on one UDP port: the kernel gives a client's datagrams to any of them.
@Suite(.simulated) struct `On one port of all workers` {
    private func address(_ port: UInt16) -> TransportAddress {
        TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: port)
    }

    /// A publisher on the first of two workers, and a viewer on the second who has a picture.
    private func watching(
        seed: UInt64, checksConsent: Bool = true
    ) throws -> (simulation: Simulation, publisher: SimulatedClient, viewer: SimulatedClient) {
        let simulation = try Simulation(seed: seed, workers: 2, sharesPort: true)
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer, worker: 1, checksConsent: checksConsent)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 5 })
        return (simulation, publisher, viewer)
    }

    @Test(arguments: 300..<303 as Range<UInt64>)
    func `everybody publishes and watches, whichever worker gets what they send`(seed: UInt64) throws {
        let simulation = try Simulation(
            seed: seed, conditions: .init(loss: 0.01, delay: .milliseconds(10), jitter: .milliseconds(5)),
            workers: 3, sharesPort: true)
        _ = try simulation.add(.publisher, worker: 0)
        // Clients' ports are numbered through, so each worker's sessions are heard by each of the workers.
        let viewers = try (0..<9).map { try simulation.add(.viewer, worker: $0 / 3).client }
        simulation.run(for: .seconds(10))
        for viewer in viewers {
            #expect(viewer.decoder.framesDecoded > 200)
            #expect(viewer.decoder.complaints.isEmpty)
        }
        #expect(simulation.handedOver > 1_000)
        #expect(simulation.workers.allSatisfy { $0.statistics.strangers == 0 })
    }

    @Test(arguments: 310..<313 as Range<UInt64>, [false, true])
    func `a change of the viewer's address is followed`(seed: UInt64, checksConsent: Bool) throws {
        let (simulation, _, viewer) = try watching(seed: seed, checksConsent: checksConsent)
        for port: UInt16 in 600..<604 {
            simulation.run(for: .seconds(20))
            viewer.outerAddress = address(port)
            let before = viewer.decoder.framesDecoded
            #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > before + 10 })
        }
        #expect(!viewer.isClosed && viewer.decoder.complaints.isEmpty)
    }

    /// Whichever worker hears the two, and whose session checks.
    @Test(arguments: 0..<2, 600..<602 as Range<UInt16>)
    func `a check in a publisher's name takes nothing of what they send`(worker: Int, port: UInt16) throws {
        let (simulation, publisher, viewer) = try watching(seed: 320)
        publisher.outerAddress = address(port)
        simulation.run(for: .seconds(8))
        let (other, _) = try simulation.add(.viewer, worker: worker)
        #expect(simulation.run(for: .seconds(5)) { other.isConnected })
        other.outerAddress = publisher.outerAddress
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(10))
        #expect(!publisher.isClosed)
        // Each once: of what is missing, pictures from the cache would come again.
        #expect((290...310).contains(viewer.decoder.framesDecoded - before))
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test(arguments: [0, 1])
    func `packets that come after a session's end are not passed around`(worker: Int) throws {
        let simulation = try Simulation(
            seed: 330, conditions: .init(delay: .milliseconds(20)), workers: 2, sharesPort: true)
        let (client, session) = try simulation.add(.publisher, worker: worker)
        #expect(simulation.run(for: .seconds(5)) { client.isConnected })
        simulation.run(for: .seconds(1))
        simulation.perform(.close(session), worker: worker)
        simulation.run(for: .milliseconds(500))
        #expect(simulation.workers.map(\.statistics.strangers) == [0, 0])
        #expect(simulation.workers[worker].statistics.afterTheEnd > 0)
    }
}
