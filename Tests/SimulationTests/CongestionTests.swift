import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

@Suite struct Congestion {
    /// What a viewer was sent and got in some time.
    private struct Record {
        /// Bits a second, sent.
        let bitrate: Int
        let pictures: Int
        /// Of 50 packets a second that the publisher sends.
        let sound: Double
    }

    private func watch(_ viewer: SimulatedClient, in simulation: Simulation, for seconds: Int64) -> Record {
        let before = (
            simulation.bytesSent(to: viewer), viewer.decoder.framesDecoded, viewer.audioPackets
        )
        simulation.run(for: .seconds(seconds))
        return Record(
            bitrate: (simulation.bytesSent(to: viewer) - before.0) * 8 / Int(seconds),
            pictures: viewer.decoder.framesDecoded - before.1,
            sound: Double(viewer.audioPackets - before.2) / Double(50 * seconds))
    }

    private func begin(
        _ seed: UInt64, bitrate: Int
    ) throws -> (simulation: Simulation, viewer: SimulatedClient) {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, bitrate: bitrate)
        let (viewer, _) = try simulation.add(.viewer)
        let hasBegun = simulation.run(for: .seconds(5)) {
            publisher.isConnected && viewer.decoder.framesDecoded > 0
        }
        #expect(hasBegun)
        return (simulation, viewer)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `congestion never makes the server send more, and sound stays whole`(seed: UInt64) throws {
        let (simulation, viewer) = try begin(seed, bitrate: 2_000_000)
        let whole = watch(viewer, in: simulation, for: 5)
        #expect(whole.pictures > 140)
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        simulation.run(for: .seconds(5))
        let capped = watch(viewer, in: simulation, for: 20)
        #expect(capped.bitrate <= whole.bitrate * 13 / 10, "\(capped)")
        #expect(capped.sound > 0.8, "\(capped)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `congestion is over once the link carries the stream again`(seed: UInt64) throws {
        let (simulation, viewer) = try begin(seed, bitrate: 2_000_000)
        simulation.cap(viewer, CappedLink(bitrate: 300_000))
        simulation.run(for: .seconds(10))
        simulation.cap(viewer, nil)
        simulation.run(for: .seconds(25))
        let whole = watch(viewer, in: simulation, for: 5)
        #expect(whole.pictures > 140, "\(whole)")
        #expect(whole.sound > 0.99, "\(whole)")
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a viewer whose link loses little is not limited`(seed: UInt64) throws {
        let (simulation, viewer) = try begin(seed, bitrate: 1_000_000)
        simulation.conditions.loss = 0.05
        simulation.run(for: .seconds(5))
        let lossy = watch(viewer, in: simulation, for: 10)
        #expect(lossy.pictures > 280, "\(lossy)")
    }

    /// A viewer with reports alone must not count packets that the publisher's network lost.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `losses on the publisher's link do not limit viewers`(seed: UInt64) throws {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, bitrate: 1_000_000)
        let (viewer, session) = try simulation.add(.viewer, hasTransportFeedback: false)
        let hasBegun = simulation.run(for: .seconds(5)) {
            publisher.isConnected && viewer.decoder.framesDecoded > 0
        }
        #expect(hasBegun)
        let slot = try #require(
            simulation.workers[0].sessions[session]?.slots.first { $0.plan.kind == .video })
        simulation.lose(0.85, from: publisher)
        for _ in 0..<10 {
            simulation.run(for: .seconds(1))
            #expect(!slot.isStopped)
        }
        simulation.lose(0, from: publisher)
        simulation.run(for: .seconds(2))
        #expect(watch(viewer, in: simulation, for: 5).pictures > 140)
    }

    @Test func `pictures that cannot be repaired are stopped`() throws {
        let simulation = try Simulation(
            seed: 4, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        _ = try simulation.add(.publisher, bitrate: 1_000_000)
        let (viewer, session) = try simulation.add(.viewer)
        simulation.run(for: .seconds(6))
        simulation.cap(viewer, CappedLink(bitrate: 200_000))
        simulation.run(for: .seconds(4))
        let slot = try #require(
            simulation.workers[0].sessions[session]?.slots.first { $0.plan.kind == .video })
        #expect(slot.isStopped)
        let sound = watch(viewer, in: simulation, for: 2)
        #expect(sound.bitrate < 200_000, "\(sound)")
    }

    /// A group of several seconds takes a while through a link with little to spare.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a viewer who joins over a link with little to spare causes no congestion`(seed: UInt64) throws {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, bitrate: 2_000_000)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(4))
        let (viewer, _) = try simulation.add(.viewer)
        simulation.cap(viewer, CappedLink(bitrate: 3_000_000, queue: .milliseconds(100)))
        simulation.run(for: .seconds(5))
        let joined = watch(viewer, in: simulation, for: 5)
        #expect(joined.pictures > 140, "\(joined)")
        #expect(joined.sound > 0.95, "\(joined)")
    }
}
