import Base
import ClientPeer
import Forwarding
import Testing

@Suite(.simulated) struct `A worker's counters` {
    @Test func `tell when each client reached each phase of joining`() throws {
        let simulation = try Simulation(seed: 51, conditions: .init(delay: .milliseconds(10)))
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(1))
        let viewers = try (0..<5).map { _ in try simulation.add(.viewer).client }
        #expect(simulation.run(for: .seconds(5)) { viewers.allSatisfy { $0.decoder.framesDecoded > 0 } })
        let statistics = simulation.workers[0].statistics
        for (phases, count) in [(statistics.publishers, 1), (statistics.viewers, 5)] {
            #expect(phases.checked.count == UInt64(count))
            #expect(phases.connected.count == UInt64(count))
            #expect(phases.firstMedia.count == UInt64(count))
            // A check takes half a round trip; the handshake of DTLS 1.2 two more, or one and a half.
            #expect(phases.checked.nanoseconds >= UInt64(count) * 10_000_000)
            #expect(phases.connected.nanoseconds >= phases.checked.nanoseconds + UInt64(count) * 30_000_000)
            #expect(phases.firstMedia.nanoseconds >= phases.connected.nanoseconds)
        }
        #expect(statistics.slots == 10)
        #expect(statistics.slotsAttached == 10)
    }

    @Test func `agree with what clients sent and got`() throws {
        let simulation = try Simulation(seed: 52, conditions: .init(delay: .milliseconds(5)))
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        let viewers = try (0..<3).map { _ in try simulation.add(.viewer).client }
        #expect(simulation.run(for: .seconds(5)) { viewers.allSatisfy { $0.decoder.framesDecoded > 0 } })
        simulation.run(for: .seconds(2))
        publisher.isSendingMedia = false
        simulation.run(for: .seconds(1))
        let media = simulation.workers[0].statistics.media
        let video = publisher.videoTracks.map { UInt64($0.packetsSent) }.reduce(0, +)
        #expect(media.videoReceived.packets == video)
        #expect(media.audioReceived.packets == UInt64(publisher.audioTrack?.packetsSent ?? 0))
        #expect(media.audioSent.packets == UInt64(viewers.map(\.audioPackets).reduce(0, +)))
        #expect(media.audioSent.packets + media.videoSent.packets == media.packetsSent)
        #expect(media.audioSent.bytes + media.videoSent.bytes == media.bytesSent)
        #expect(media.drops == .init())
        #expect(media.keyFrameRequests == UInt64(publisher.keyFrameRequests))
    }

    @Test func `tell what was asked for again, and what came`() throws {
        let simulation = try Simulation(seed: 53, conditions: .init(delay: .milliseconds(5)))
        let (publisher, _) = try simulation.add(.publisher)
        let (viewer, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { viewer.decoder.framesDecoded > 0 })
        simulation.conditions.loss = 0.05
        simulation.run(for: .seconds(4))
        let media = simulation.workers[0].statistics.media
        #expect(publisher.isConnected)
        #expect(media.resendsRequested >= media.packetsResent && media.packetsResent > 0)
        #expect(media.repairsRequested >= media.packetsRepaired && media.packetsRepaired > 0)
    }

    @Test func `tell replayed packets from others`() throws {
        let simulation = try Simulation(seed: 54, conditions: .init(delay: .milliseconds(5)))
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.conditions.duplication = 0.2
        simulation.run(for: .seconds(2))
        let drops = simulation.workers[0].statistics.media.drops
        #expect(drops.replayed > 10)
        #expect(drops.unauthentic == 0 && drops.undecodable == 0 && drops.noRoute == 0)
    }

    @Test func `know what was on its way when a session ended`() throws {
        let simulation = try Simulation(seed: 55, conditions: .init(delay: .milliseconds(20)))
        let (publisher, id) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(1))
        simulation.perform(.close(id))
        #expect(simulation.run(for: .seconds(1)) { publisher.isClosed })
        simulation.run(for: .seconds(1))
        var counters = simulation.workers[0].statistics
        #expect(counters.afterTheEnd > 0)
        #expect(counters.strangers == 0)

        // A client that does not hear of the end is a stranger later.
        let (deaf, deafID) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { deaf.isConnected })
        let known = simulation.workers[0].statistics.afterTheEnd
        simulation.conditions.loss = 1
        simulation.perform(.close(deafID))
        simulation.conditions.loss = 0
        simulation.run(for: .milliseconds(900))
        counters = simulation.workers[0].statistics
        #expect(counters.afterTheEnd > known)
        #expect(counters.strangers == 0)
        simulation.run(for: .seconds(3))
        #expect(simulation.workers[0].statistics.strangers > 0)
        #expect(!deaf.isClosed)
    }
}
