import Base
import ClientPeer
import Forwarding
import Peer
import Testing

@Suite(.simulated) struct Audience {
    @Test func `a hundred viewers who join within ten seconds cost few key frames`() throws {
        let simulation = try Simulation(seed: 21)
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(2))
        let before = publisher.keyFrameRequests
        var viewers: [SimulatedClient] = []
        for _ in 0..<100 {
            viewers.append(try simulation.add(.viewer).client)
            simulation.run(for: .milliseconds(100))
        }
        simulation.run(for: .seconds(2))
        #expect(publisher.keyFrameRequests - before <= 10)
        #expect(viewers.allSatisfy { $0.decoder.framesDecoded > 0 && $0.decoder.complaints.isEmpty })
    }

    @Test func `viewers on two workers get every packet, and each packet is relayed once`() throws {
        let simulation = try Simulation(seed: 22, workers: 2)
        let (publisher, _) = try simulation.add(.publisher, worker: 0)
        let viewers = try (0..<6).map { try simulation.add(.viewer, worker: $0 % 2).client }
        let havePictures = simulation.run(for: .seconds(5)) {
            publisher.isConnected && viewers.allSatisfy { $0.decoder.framesDecoded > 0 }
        }
        #expect(havePictures)
        simulation.run(for: .seconds(3))
        for viewer in viewers {
            #expect(viewer.decoder.framesDecoded > 80)
            #expect(viewer.decoder.complaints.isEmpty)
            #expect(viewer.soundSequence.gaps == 0)
        }
        let sent =
            publisher.videoTracks.map(\.packetsSent).reduce(0, +) + (publisher.audioTrack?.packetsSent ?? 0)
        let relayed = simulation.workers[1].statistics.packetsRelayed
        #expect(relayed <= sent && relayed > sent / 2)
        #expect(simulation.workers[0].statistics.packetsToWorkers >= relayed)
        #expect(simulation.workers[0].statistics.packetsRelayed == 0)
    }

    @Test func `viewers on another worker get lost packets from that worker's copy`() throws {
        let simulation = try Simulation(seed: 23, workers: 2)
        let (publisher, _) = try simulation.add(.publisher, worker: 0)
        let (viewer, _) = try simulation.add(.viewer, worker: 1)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 10 })
        simulation.conditions.loss = 0.03
        simulation.run(for: .seconds(4))
        simulation.conditions.loss = 0
        simulation.run(for: .seconds(2))
        #expect(simulation.workers[1].statistics.media.packetsResent > 5)
        #expect(publisher.keyFrameRequests <= 4)
        #expect(viewer.decoder.complaints.isEmpty)
    }

    @Test(arguments: [20, 24, 28, 32, 36, 40, 44, 48] as [Int64])
    func `viewers who join another worker just after a key frame get pictures`(gap: Int64) throws {
        let simulation = try Simulation(seed: 26, conditions: .init(delay: .milliseconds(1)), workers: 2)
        _ = try simulation.add(.publisher, worker: 0)
        let (first, _) = try simulation.add(.viewer, worker: 1)
        #expect(simulation.run(for: .seconds(5)) { first.decoder.framesDecoded > 0 })
        for _ in 0..<4 {
            simulation.run(for: .seconds(3))
            // The demand of the second may come just after the key frame that the first one's demand brought.
            let (early, _) = try simulation.add(.viewer, worker: 1)
            simulation.run(for: .milliseconds(gap))
            let (late, _) = try simulation.add(.viewer, worker: 1)
            let haveBoth = simulation.run(for: .seconds(4)) {
                early.decoder.framesDecoded > 0 && late.decoder.framesDecoded > 0
            }
            #expect(haveBoth)
        }
    }

    @Test func `when the audience leaves a worker, nothing more is relayed to it`() throws {
        let simulation = try Simulation(seed: 24, workers: 2)
        _ = try simulation.add(.publisher, worker: 0)
        let (viewer, _) = try simulation.add(.viewer, worker: 1)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 10 })
        simulation.close(viewer)
        #expect(simulation.run(for: .seconds(1)) { simulation.workers[1].sessions.isEmpty })
        // The next viewer may come soon, and is to find a copy without gaps.
        simulation.run(for: .seconds(12))
        let before = simulation.workers[1].statistics.packetsRelayed
        simulation.run(for: .seconds(1))
        #expect(simulation.workers[1].statistics.packetsRelayed == before)
    }

    @Test func `viewers of a simulcast publisher get one continuous layer`() throws {
        let simulation = try Simulation(seed: 25)
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"])
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 5 })
        simulation.run(for: .seconds(3))
        #expect(publisher.videoTracks.count == 3)
        #expect(viewer.decoder.framesDecoded > 80)
        #expect(viewer.decoder.complaints.isEmpty)
    }
}
