import Base
import ClientPeer
import Forwarding
import Testing

@testable import Net

@Suite(.simulated) struct `A viewer over TCP` {
    private func watching(
        rate: Int, seed: UInt64
    ) throws -> (simulation: Simulation, viewer: SimulatedClient, session: SessionID, reader: SlowReader) {
        let simulation = try Simulation(seed: seed)
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, session) = try simulation.add(.viewer)
        let place = viewer.outerAddress
        viewer.outerAddress = TransportAddress(ip: place.ip, port: place.port, transport: .tcp)
        let reader = SlowReader(rate: rate)
        simulation.readers[viewer.outerAddress] = reader
        let isPlaying = simulation.run(for: .seconds(10)) {
            publisher.isConnected && viewer.decoder.framesDecoded > 30
        }
        try #require(isPlaying)
        return (simulation, viewer, session, reader)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `a TCP viewer who stopped reading goes on with decodable pictures`(seed: UInt64) throws {
        let (simulation, viewer, _, reader) = try watching(rate: 1_000_000, seed: seed)
        for pause in [Duration.milliseconds(400), .seconds(3), .seconds(8)] {
            reader.rate = 0
            simulation.run(for: pause)
            let before = viewer.decoder.framesDecoded
            reader.rate = 1_000_000
            simulation.run(for: .seconds(3))
            // Of 90 frames, those before the answer to the request for a key frame are missing.
            #expect(viewer.decoder.framesDecoded > before + 45, "after \(pause)")
            #expect(reader.queue.waiting < 64 << 10)
        }
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
        #expect(viewer.ambiguousPackets == 0)
        #expect(reader.queue.drops.video > 0)
        #expect(reader.malformed == 0)
        #expect(!viewer.isClosed)
    }

    @Test func `a TCP viewer who is always too slow still sees whole pictures`() throws {
        // The stream has 300 kbit/s and some.
        let (simulation, viewer, _, reader) = try watching(rate: 1_000_000, seed: 11)
        reader.rate = 25_000
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(30))
        #expect(viewer.decoder.framesDecoded > before + 30)
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
        #expect(reader.queue.waiting < 64 << 10)
    }

    @Test func `a TCP viewer gets what it reports lost once more`() throws {
        let (simulation, viewer, session, reader) = try watching(rate: 1_000_000, seed: 21)
        viewer.dropsVideo = { $0 % 20 == 0 }
        simulation.run(for: .seconds(5))
        viewer.dropsVideo = nil
        let before = viewer.decoder.framesDecoded
        simulation.run(for: .seconds(5))
        let counters = try #require(simulation.workers[0].sessions[session]).totals
        #expect(counters.packetsResent > 0)
        #expect(viewer.decoder.framesDecoded > before + 100)
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
        #expect(reader.queue.drops == .init())
    }
}
