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
}
