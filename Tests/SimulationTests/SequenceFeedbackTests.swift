import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What viewers get who tell of packets by their own sequence numbers (RFC 8888), and of nothing else.
@Suite(.simulated) struct `Feedback by sequence number` {
    /// 720p, 360p and 180p, as browsers send them.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])

    private struct World {
        let simulation: Simulation
        let viewer: SimulatedClient
        let session: Session
        let slot: Slot

        /// Height of what is sent; nil for nothing.
        var height: Int? { slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) } }

        /// Counts in some time: pictures decoded, share of sound that came.
        func watch(for seconds: Int64) -> (pictures: Int, sound: Double) {
            let before = (viewer.decoder.framesDecoded, viewer.audioPackets)
            simulation.run(for: .seconds(seconds))
            return (
                viewer.decoder.framesDecoded - before.0,
                Double(viewer.audioPackets - before.1) / Double(50 * seconds)
            )
        }
    }

    private func begin(_ seed: UInt64, _ link: CappedLink? = nil, hasRTX: Bool = true) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: Self.ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(3))
        let (viewer, id) = try simulation.add(.viewer, hasRTX: hasRTX, feedback: .congestionControl)
        simulation.cap(viewer, link)
        #expect(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        let session = try #require(simulation.workers[0].sessions[id])
        #expect(session.plan.slots.allSatisfy { $0.reportsBySequenceNumber })
        #expect(session.plan.slots.allSatisfy { $0.extensions.transportSequenceNumber == nil })
        let slot = try #require(session.slots.first { $0.plan.kind == .video })
        return World(simulation: simulation, viewer: viewer, session: session, slot: slot)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `gives a viewer the best layer that the link takes`(seed: UInt64) throws {
        for (capacity, height) in [(8_000_000, 720), (1_200_000, 360), (300_000, 180)] {
            let world = try begin(seed, CappedLink(bitrate: capacity))
            world.simulation.run(for: .seconds(10))
            let record = world.watch(for: 10)
            #expect(world.height == height, "\(capacity) bit/s: \(record)")
            #expect(record.pictures > 270, "\(capacity) bit/s: \(record)")
            #expect(record.sound > 0.97, "\(capacity) bit/s: \(record)")
            #expect(world.viewer.ambiguousPackets == 0)
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `follows a link that becomes slower and faster`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 8_000_000))
        world.simulation.run(for: .seconds(5))
        #expect(world.height == 720)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 600_000))
        #expect(world.simulation.run(for: .seconds(3)) { world.height != 720 })
        world.simulation.run(for: .seconds(5))
        let slow = world.watch(for: 20)
        #expect(world.height == 180 || world.height == 360)
        #expect(slow.pictures > 540, "\(slow)")
        #expect(slow.sound > 0.97, "\(slow)")
        world.simulation.cap(world.viewer, CappedLink(bitrate: 4_000_000))
        #expect(world.simulation.run(for: .seconds(20)) { world.height == 720 })
        let fast = world.watch(for: 10)
        #expect(world.height == 720)
        #expect(fast.pictures > 290, "\(fast)")
        #expect(world.session.totals.probeBytes > 0)
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    /// Where there is no RTX a packet is repeated under the number that is told of.
    @Test func `retransmissions under the original number are understood`() throws {
        let world = try begin(4, CappedLink(bitrate: 8_000_000), hasRTX: false)
        world.simulation.conditions.loss = 0.02
        world.simulation.run(for: .seconds(20))
        #expect(world.height == 720)
        #expect(world.viewer.repeatedPackets > 0)
        #expect(world.viewer.ambiguousPackets == 0)
    }

    @Test func `no probes are sent to a viewer who has the best layer`() throws {
        let world = try begin(1)
        world.simulation.run(for: .seconds(5))
        let before = world.session.totals.probeBytes
        world.simulation.run(for: .seconds(30))
        #expect(world.height == 720)
        #expect(world.session.totals.probeBytes == before)
    }

    /// Reports that are nonsense, a thousand a second, harm nobody else, and are over when they are.
    @Test(arguments: 0..<5)
    func `any feedback of a client is survived`(kind: Int) throws {
        let world = try begin(5)
        let (simulation, hostile) = (world.simulation, world.viewer)
        let (other, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { other.decoder.framesDecoded > 0 })
        simulation.run(for: .seconds(2))
        let before = other.decoder.framesDecoded
        var random = SeededGenerator(seed: UInt64(kind))
        for turn in 0..<3_000 {
            let report = report(kind, turn: turn, of: world.slot, using: &random)
            simulation.send([.congestionControlFeedback(report)], by: hostile)
            simulation.run(for: .milliseconds(1))
        }
        #expect(other.decoder.framesDecoded - before > 85)
        #expect(simulation.run(for: .seconds(60)) { world.height == 720 }, "it is over when it is")
    }

    private func report(
        _ kind: Int, turn: Int, of slot: Slot, using random: inout SeededGenerator
    ) -> CongestionControlFeedback {
        let next = UInt16(truncatingIfNeeded: slot.nextSequence)
        var metrics: [CongestionControlFeedback.Metric] = []
        for _ in 0..<400 {
            let offset = UInt16.random(in: 0...0x1FFF, using: &random)
            metrics.append(kind == 3 || offset & 1 == 0 ? .missing : .init(offset: offset))
        }
        var (first, time) = (next &- 400, UInt32(truncatingIfNeeded: turn &* 65))
        switch kind {
        // Numbers that were never sent.
        case 0: first = next
        // Times that run backwards.
        case 1: time = 0 &- time
        // Times and numbers that are anything.
        case 2:
            first = .random(in: 0...UInt16.max, using: &random)
            time = .random(in: 0...UInt32.max, using: &random)
        // Nothing has come, or the same packets again and again.
        default: break
        }
        let ssrc = turn & 1 == 0 ? slot.plan.ssrc : slot.plan.repairSSRC ?? 0
        let stream = CongestionControlFeedback.Stream(
            ssrc: ssrc, firstSequenceNumber: first, metrics: metrics)
        return CongestionControlFeedback(
            senderSSRC: 1, streams: kind == 4 ? [stream, stream] : [stream], reportTime: time)
    }
}
