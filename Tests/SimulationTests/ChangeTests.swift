import Base
import ClientPeer
import Forwarding
import Peer
import Testing

@Suite(.simulated) struct Changes {
    /// A publisher and a viewer who has a picture.
    private func watching(seed: UInt64, workers: Int = 1) throws -> (
        simulation: Simulation, publisher: SimulatedClient, viewer: SimulatedClient
    ) {
        let simulation = try Simulation(seed: seed, workers: workers)
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer, worker: workers - 1)
        let hasPicture = simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 5 }
        #expect(hasPicture)
        return (simulation, publisher, viewer)
    }

    @Test func `a viewer's new address is followed at once`() throws {
        let (simulation, _, viewer) = try watching(seed: 11)
        viewer.outerAddress = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: 555)
        // Its next consent check shows the new address; until then nothing arrives.
        let before = viewer.decoder.framesDecoded
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > before + 10 })
        #expect(!viewer.isClosed)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    /// As with libnice, which GStreamer uses: only its reports come from the new address.
    @Test(arguments: 130..<136 as Range<UInt64>)
    func `a viewer's new address is followed without ICE checks`(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, workers: 2)
        _ = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer, worker: 1, checksConsent: false)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 5 })
        for port: UInt16 in 600..<603 {
            simulation.run(for: .seconds(20))
            viewer.outerAddress = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: port)
            let before = viewer.decoder.framesDecoded
            #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > before + 10 })
        }
        #expect(!viewer.isClosed)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test(arguments: 100..<106 as Range<UInt64>)
    func `a viewer's new addresses are followed over a bad network too`(seed: UInt64) throws {
        let (simulation, _, viewer) = try watching(seed: seed)
        simulation.conditions = .init(loss: 0.1, delay: .milliseconds(30), jitter: .milliseconds(20))
        for port: UInt16 in 600..<603 {
            viewer.outerAddress = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: port)
            let before = viewer.decoder.framesDecoded
            #expect(simulation.run(for: .seconds(12)) { viewer.decoder.framesDecoded > before + 10 })
            // Some clean seconds between two changes, so that ICE has seen the last one.
            simulation.run(for: .seconds(6))
        }
        #expect(!viewer.isClosed)
    }

    @Test func `a publisher's new address loses only the packets on their way`() throws {
        let (simulation, publisher, viewer) = try watching(seed: 12)
        publisher.outerAddress = TransportAddress(ip: IPAddress(ipv4: 0xC633_6402), port: 556)
        simulation.run(for: .seconds(8))
        #expect(!publisher.isClosed)
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(1))
        #expect(viewer.decoder.framesDecoded >= before + 28)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test func `checks from a publisher's address under another name disturb nobody`() throws {
        let (simulation, publisher, viewer) = try watching(seed: 13)
        let (other, _) = try simulation.add(.viewer)
        let isConnected = simulation.run(for: .seconds(5)) { other.isConnected }
        #expect(isConnected)
        // Its checks come in the publisher's name from now on.
        other.outerAddress = publisher.outerAddress
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(10))
        #expect(viewer.decoder.framesDecoded >= before + 280)
        #expect(!publisher.isClosed)
    }

    @Test(arguments: [1, 2])
    func `a change of publishers is one continuous stream to the viewer`(workers: Int)
        throws
    {
        let (simulation, first, viewer) = try watching(seed: 13, workers: workers)
        let (second, _) = try simulation.add(.publisher, worker: workers - 1)
        #expect(simulation.run(for: .seconds(5)) { second.isConnected })
        #expect(simulation.run(for: .seconds(2)) { first.isClosed })
        #expect(first.events.last == .closedByServer)
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(2))
        #expect(viewer.decoder.framesDecoded >= before + 55)
        // Sequence numbers, time stamps and picture ids went on: the decoder saw one stream.
        #expect(viewer.decoder.complaints.isEmpty)
        #expect(viewer.soundSequence.gaps == 0)
    }

    @Test func `a viewer stays when the publisher leaves and comes back`() throws {
        let (simulation, publisher, viewer) = try watching(seed: 14)
        simulation.close(publisher)
        let isGone = simulation.run(for: .seconds(2)) {
            simulation.events.contains { if case .closed(_, .closedByPeer) = $0 { true } else { false } }
        }
        #expect(isGone)
        simulation.run(for: .seconds(3))
        #expect(!viewer.isClosed)
        let (_, _) = try simulation.add(.publisher)
        let before = viewer.decoder.framesDecoded
        #expect(simulation.run(for: .seconds(3)) { viewer.decoder.framesDecoded > before + 20 })
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test func `a session that falls silent ends after the consent time`() throws {
        let (simulation, publisher, _) = try watching(seed: 15)
        publisher.vanish()
        let isNoticed = simulation.run(for: .seconds(31)) {
            simulation.events.contains { if case .closed(_, .consentLost) = $0 { true } else { false } }
        }
        #expect(isNoticed)
    }

    @Test func `a session connects though every handshake datagram is lost once`() throws {
        let simulation = try Simulation(seed: 16, conditions: .init(loss: 0.4, delay: .milliseconds(20)))
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(25)) { publisher.isConnected })
    }

    @Test func `a session that ends sends a goodbye`() throws {
        let (simulation, publisher, viewer) = try watching(seed: 17)
        guard let session = simulation.workers[0].sessions.values.first(where: { $0.follows != nil }) else {
            Issue.record("the viewer has no session")
            return
        }
        simulation.perform(.close(session.id))
        #expect(simulation.run(for: .seconds(1)) { viewer.isClosed })
        #expect(viewer.events.last == .closedByServer)
        #expect(!publisher.isClosed)
        #expect(simulation.workers[0].sessions.count == 1)
    }
}
