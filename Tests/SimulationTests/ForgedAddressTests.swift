import Base
import ClientPeer
import Forwarding
import Peer
import Testing
import Wire

/// A client that says that it is where somebody else is: everything it sends is authentic, but for its source address.
@Suite(.simulated) struct `A forged source address` {
    private static let victim = TransportAddress(ip: IPAddress(ipv4: 0xC633_6407), port: 777)

    /// What a bystander was sent.
    private struct Received {
        var answers = 0
        var requests = 0
        var handshakes = 0
        var media = 0
        var bytes = 0

        init(_ datagrams: [[UInt8]]) {
            for datagram in datagrams {
                bytes += datagram.count
                switch (datagram.first ?? 0, datagram.dropFirst().first ?? 0) {
                case (1, 1): answers += 1
                case (0, 1): requests += 1
                case (20..<64, _): handshakes += 1
                default: media += 1
                }
            }
        }
    }

    private func watching(
        seed: UInt64, checksConsent: Bool = true
    ) throws -> (simulation: Simulation, viewer: SimulatedClient) {
        let simulation = try Simulation(seed: seed)
        _ = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer, checksConsent: checksConsent)
        let hasPicture = simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 5 }
        #expect(hasPicture)
        simulation.bystanders[Self.victim] = []
        return (simulation, viewer)
    }

    private func received(_ simulation: Simulation) -> Received {
        Received(simulation.bystanders[Self.victim] ?? [])
    }

    @Test(arguments: 200..<204 as Range<UInt64>)
    func `forged checks and reports bring a victim four requests and no media`(seed: UInt64) throws {
        let (simulation, viewer) = try watching(seed: seed)
        let own = viewer.outerAddress
        viewer.outerAddress = Self.victim
        #expect(simulation.run(for: .seconds(4)) { received(simulation).answers > 0 })
        viewer.outerAddress = own
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(20))
        let sent = received(simulation)
        #expect(sent.answers == 1)
        #expect((1...4).contains(sent.requests))
        #expect(sent.handshakes == 0)
        #expect(sent.media == 0)
        #expect(viewer.decoder.framesDecoded >= before + 550)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    /// Reports are authentic, too, and say as little of where they come from.
    @Test(arguments: 230..<234 as Range<UInt64>)
    func `forged reports alone bring a victim three requests and no media`(seed: UInt64) throws {
        let (simulation, viewer) = try watching(seed: seed, checksConsent: false)
        let own = viewer.outerAddress
        viewer.outerAddress = Self.victim
        #expect(simulation.run(for: .seconds(4)) { received(simulation).requests > 0 })
        simulation.run(for: .seconds(2))
        viewer.outerAddress = own
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(20))
        let sent = received(simulation)
        #expect((1...3).contains(sent.requests))
        #expect(sent.answers == 0 && sent.handshakes == 0 && sent.media == 0)
        #expect(viewer.decoder.framesDecoded >= before + 550)
    }

    @Test(arguments: 210..<213 as Range<UInt64>)
    func `forging everything brings a victim less than the attacker sends`(seed: UInt64) throws {
        let (simulation, viewer) = try watching(seed: seed)
        simulation.conditions = .init(loss: 0.05, delay: .milliseconds(20), jitter: .milliseconds(10))
        viewer.outerAddress = Self.victim
        simulation.run(for: .seconds(14))
        let sent = received(simulation)
        #expect(sent.requests > 0)
        #expect(sent.requests <= sent.answers + 4)
        #expect(sent.handshakes == 0)
        #expect(sent.media == 0)
        // Packets from there are no sign of life either.
        simulation.run(for: .seconds(18))
        #expect(simulation.events.contains { if case .closed(_, .consentLost) = $0 { true } else { false } })
    }

    @Test func `forging an address during a handshake brings a victim a few datagrams`() throws {
        let simulation = try Simulation(seed: 220)
        let (client, _) = try simulation.add(.viewer)
        simulation.bystanders[Self.victim] = []
        #expect(simulation.run(for: .seconds(1)) { client.events.contains(.iceConnected) })
        client.outerAddress = Self.victim
        simulation.run(for: .seconds(60))
        let sent = received(simulation)
        #expect(!client.isConnected)
        #expect(sent.answers > 0)
        #expect(sent.handshakes <= 34)
        #expect(sent.requests <= sent.answers + 2)
        #expect(sent.media == 0)
        #expect(sent.bytes < 40_000)
    }
}
