import Base
import ClientPeer
import Forwarding
import Peer
import Testing

@Suite(.simulated) struct FirstLight {
    @Test func `a publisher's pictures and sound reach a viewer`() throws {
        let simulation = try Simulation(seed: 1)
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected && viewer.isConnected })
        simulation.run(for: .seconds(5))
        #expect(viewer.decoder.framesDecoded > 120)
        #expect(viewer.decoder.complaints.isEmpty)
        #expect(viewer.audioPackets > 200)
        #expect(viewer.soundSequence.gaps == 0)
    }

    /// They answer the ClientHello, which is repeated until it arrives.
    @Test(arguments: [0, 0.2]) func `also where the clients wait for the handshake`(loss: Double) throws {
        let simulation = try Simulation(seed: 2)
        simulation.conditions.loss = loss
        let (publisher, _) = try simulation.add(.publisher, waitsForHandshake: true)
        let (viewer, _) = try simulation.add(.viewer, waitsForHandshake: true)
        #expect(simulation.run(for: .seconds(20)) { publisher.isConnected && viewer.isConnected })
        simulation.conditions.loss = 0
        simulation.run(for: .seconds(5))
        #expect(viewer.decoder.framesDecoded > 60)
        #expect(viewer.audioPackets > 150)
    }
}
