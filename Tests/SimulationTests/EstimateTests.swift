import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What viewers get who do not tell of each packet when it came: who say how much they can take in (REMB), and who only
/// report.
@Suite struct Estimates {
    /// 720p, 360p and 180p, as browsers send them.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])

    private struct World {
        let simulation: Simulation
        let viewer: SimulatedClient
        let session: SessionID

        /// Height of what is sent; nil for nothing.
        var height: Int? {
            let slots = simulation.workers[0].sessions[session]?.slots ?? []
            guard let slot = slots.first(where: { $0.plan.kind == .video }), !slot.isStopped else {
                return nil
            }
            return slot.current?.resolution.map { Int($0.height) }
        }

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

    private func begin(
        _ seed: UInt64, _ link: CappedLink? = nil, saysEstimates: Bool = true,
        layers: [SyntheticVideo.Settings] = Self.ladder
    ) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(
            .publisher, rids: Array(["h", "m", "l"].prefix(layers.count)), layers: layers)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(3))
        let (viewer, session) = try simulation.add(
            .viewer, hasTransportFeedback: false, saysEstimates: saysEstimates)
        simulation.cap(viewer, link)
        #expect(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        return World(simulation: simulation, viewer: viewer, session: session)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `give a viewer the best layer that the link takes`(seed: UInt64) throws {
        for (capacity, height) in [(8_000_000, 720), (1_200_000, 360), (300_000, 180)] {
            let world = try begin(seed, CappedLink(bitrate: capacity))
            world.simulation.run(for: .seconds(20))
            let record = world.watch(for: 10)
            #expect(world.height == height, "\(capacity) bit/s: \(record)")
            #expect(record.pictures > 250, "\(capacity) bit/s: \(record)")
            #expect(record.sound > 0.97, "\(capacity) bit/s: \(record)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `follow a link that becomes slower and faster`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 8_000_000))
        world.simulation.run(for: .seconds(10))
        #expect(world.height == 720)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 600_000))
        #expect(world.simulation.run(for: .seconds(3)) { world.height != 720 })
        world.simulation.run(for: .seconds(5))
        let slow = world.watch(for: 20)
        #expect(world.height == 180 || world.height == 360)
        #expect(slow.pictures > 480, "\(slow)")
        #expect(slow.sound > 0.95, "\(slow)")
        world.simulation.cap(world.viewer, CappedLink(bitrate: 4_000_000))
        #expect(world.simulation.run(for: .seconds(40)) { world.height == 720 })
        let fast = world.watch(for: 10)
        #expect(world.height == 720)
        #expect(fast.pictures > 280, "\(fast)")
        #expect(world.viewer.ambiguousPackets == 0)
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    @Test(arguments: [true, false], [0.05, 0.1])
    func `are not lowered by loss that has nothing to do with what is sent`(
        saysEstimates: Bool, loss: Double
    ) throws {
        let world = try begin(4, CappedLink(bitrate: 8_000_000), saysEstimates: saysEstimates)
        world.simulation.run(for: .seconds(5))
        world.simulation.conditions.loss = loss
        for _ in 0..<30 {
            world.simulation.run(for: .seconds(1))
            #expect(world.height == 720)
        }
        #expect(world.viewer.ambiguousPackets == 0)
    }

    /// With reports alone, a link too slow for the larger picture gets the smaller one, and loss ends.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a viewer with reports alone gets the best layer without much loss`(seed: UInt64) throws {
        let world = try begin(
            seed, CappedLink(bitrate: 8_000_000), saysEstimates: false, layers: Array(Self.ladder.prefix(2)))
        world.simulation.run(for: .seconds(5))
        #expect(world.height == 720)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 1_200_000))
        #expect(world.simulation.run(for: .seconds(6)) { world.height == 360 })
        let first = world.watch(for: 5)
        #expect(first.sound > 0.97 && first.pictures > 130, "\(first)")
        // The larger one is tried now and then, ever later.
        var low = 0
        for _ in 0..<180 {
            world.simulation.run(for: .seconds(1))
            if world.height == 360 { low += 1 }
        }
        #expect(low > 150)
        let probed = world.simulation.workers[0].sessions[world.session]?.totals.probeBytes
        #expect(probed == 0)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 8_000_000))
        #expect(world.simulation.run(for: .seconds(130)) { world.height == 720 })
        let fast = world.watch(for: 20)
        #expect(world.height == 720)
        #expect(fast.sound > 0.99 && fast.pictures > 590, "\(fast)")
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    /// With three layers it may take two steps down.
    @Test(arguments: [(1_200_000, 360), (300_000, 180)], [1, 2, 3] as [UInt64])
    func `an estimate by loss alone is near the capacity of the link`(
        link: (capacity: Int, height: Int), seed: UInt64
    ) throws {
        let world = try begin(seed, CappedLink(bitrate: link.capacity), saysEstimates: false)
        #expect(world.simulation.run(for: .seconds(20)) { world.height == link.height })
        var right = 0
        for _ in 0..<120 {
            world.simulation.run(for: .seconds(1))
            if world.height == link.height { right += 1 }
        }
        #expect(right > 100, "\(right) of 120 s")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `an estimate by loss alone leaves the best layer where little is lost`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 8_000_000), saysEstimates: false)
        world.simulation.conditions.loss = 0.03
        for _ in 0..<60 {
            world.simulation.run(for: .seconds(1))
            #expect(world.height == 720)
        }
    }

    @Test func `no probes are sent to a viewer who has the best layer`() throws {
        let world = try begin(1)
        world.simulation.run(for: .seconds(5))
        let before = world.simulation.workers[0].sessions[world.session]?.totals.probeBytes
        world.simulation.run(for: .seconds(30))
        #expect(world.height == 720)
        #expect(world.simulation.workers[0].sessions[world.session]?.totals.probeBytes == before)
    }

    /// A client that sends nonsense a thousand times a second harms nobody else.
    @Test(arguments: [0, 1, 1 << 63, .max] as [UInt64])
    func `any estimate of a client is survived`(estimate: UInt64) throws {
        let world = try begin(5)
        let (simulation, hostile) = (world.simulation, world.viewer)
        let (other, _) = try simulation.add(.viewer)
        #expect(simulation.run(for: .seconds(5)) { other.decoder.framesDecoded > 0 })
        simulation.run(for: .seconds(2))
        let before = other.decoder.framesDecoded
        for _ in 0..<3_000 {
            simulation.say(estimate, by: hostile)
            simulation.run(for: .milliseconds(1))
        }
        #expect(other.decoder.framesDecoded - before > 85)
        // Its estimate counts, up to the rate that is proven.
        if estimate > 1 { #expect(world.height == 720) } else { #expect(world.height != 720) }
        #expect(simulation.run(for: .seconds(60)) { world.height == 720 }, "it is over when it is")
    }
}
