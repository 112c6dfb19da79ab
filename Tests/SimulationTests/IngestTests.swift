import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// Sessions without a peer connection: their publishers speak another protocol, and are served elsewhere.
@Suite(.simulated) struct IngestedSessions {
    private struct Publisher {
        let id: SessionID
        var video: SyntheticVideo
        var sequenceNumber: UInt16 = 65_530
        let ssrc: UInt32

        init(seed: UInt64) {
            var random = SeededGenerator(seed: seed)
            id = SessionID(using: &random)
            ssrc = UInt32(truncatingIfNeeded: seed) &+ 100
            video = SyntheticVideo(SyntheticVideo.Settings(), using: &random)
        }

        func opening(order: UInt64) -> SessionOpening {
            var random = SeededGenerator(seed: UInt64(ssrc))
            let plan = SourcePlan(
                mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])
            return SessionOpening(
                id: id, plan: SessionPlan(ingesting: [plan]),
                localCredentials: ICECredentials(using: &random), publishes: Simulation.stream, order: order)
        }

        mutating func send(_ frames: Int, over simulation: Simulation) throws {
            for _ in 0..<frames {
                var packets = InjectedPackets()
                for packet in video.nextFrame() {
                    var bytes = [UInt8](repeating: 0, count: 12) + packet.payload
                    var span = bytes.mutableSpan
                    _ = try RTPHeaderWriter(
                        marker: packet.marker, payloadType: 96, sequenceNumber: sequenceNumber,
                        timestamp: packet.timestamp, ssrc: ssrc, into: &span)
                    sequenceNumber &+= 1
                    packets.append(bytes.span, source: 0, captured: simulation.now)
                }
                simulation.perform(.ingest(id, packets))
                simulation.run(for: .milliseconds(33))
            }
        }
    }

    @Test(arguments: [1, 2]) func `are watched like any publisher`(workers: Int) throws {
        let simulation = try Simulation(seed: 71, workers: workers)
        let (viewer, _) = try simulation.add(.viewer, worker: workers - 1)
        #expect(simulation.run(for: .seconds(2)) { viewer.isConnected })
        var publisher = Publisher(seed: 1)
        simulation.perform(.open(publisher.opening(order: 50)))
        #expect(simulation.events.contains(.checked(publisher.id)))
        #expect(simulation.events.contains(.connected(publisher.id, nil, nil)))
        #expect(!simulation.events.contains(.mediaStarted(publisher.id)))
        try publisher.send(60, over: simulation)
        #expect(simulation.events.contains(.mediaStarted(publisher.id)))
        #expect(viewer.decoder.framesDecoded >= 50)
        #expect(viewer.decoder.complaints.isEmpty)
        // Whoever comes later begins with the past: nobody can be asked for a key frame.
        let (late, _) = try simulation.add(.viewer)
        try publisher.send(60, over: simulation)
        #expect(late.decoder.framesDecoded > 30 && late.decoder.complaints.isEmpty)
    }

    @Test func `ingested sessions need no peer, and end when control ends them`() throws {
        let simulation = try Simulation(seed: 72)
        let publisher = Publisher(seed: 2)
        simulation.perform(.open(publisher.opening(order: 50)))
        simulation.run(for: .seconds(60))
        #expect(!simulation.events.contains(.closed(publisher.id, .timedOut)))
        #expect(!simulation.events.contains(.closed(publisher.id, .consentLost)))
        simulation.perform(.close(publisher.id))
        #expect(simulation.events.contains(.closed(publisher.id, .ended)))
    }

    @Test func `give way to a later publisher without a gap in the viewer's stream`() throws {
        let simulation = try Simulation(seed: 73)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(2)) { viewer.isConnected })
        var first = Publisher(seed: 3)
        simulation.perform(.open(first.opening(order: 50)))
        try first.send(20, over: simulation)
        var second = Publisher(seed: 4)
        simulation.perform(.open(second.opening(order: 51)))
        #expect(simulation.events.contains(.closed(first.id, .replaced)))
        try second.send(20, over: simulation)
        #expect(viewer.decoder.framesDecoded >= 36)
        #expect(viewer.decoder.complaints.isEmpty)
    }
}
