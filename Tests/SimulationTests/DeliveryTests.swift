import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What viewers on links of all sizes get of a publisher with simulcast, and of one that sends one size.
@Suite struct Delivery {
    /// 720p, 360p and 180p, as browsers send them.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])

    private struct World {
        let simulation: Simulation
        let publisher: SimulatedClient
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

        /// Counts in some time: bits a second sent, pictures decoded, share of sound that came.
        func watch(for seconds: Int64) -> (bitrate: Int, pictures: Int, sound: Double) {
            let before = (simulation.bytesSent(to: viewer), viewer.decoder.framesDecoded, viewer.audioPackets)
            simulation.run(for: .seconds(seconds))
            return (
                (simulation.bytesSent(to: viewer) - before.0) * 8 / Int(seconds),
                viewer.decoder.framesDecoded - before.1,
                Double(viewer.audioPackets - before.2) / Double(50 * seconds)
            )
        }
    }

    private func begin(
        _ seed: UInt64, _ link: CappedLink? = nil, pictures: [SyntheticVideo.Settings] = Self.ladder
    ) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let rids = pictures.count > 1 ? ["h", "m", "l"] : []
        let (publisher, _) = try simulation.add(.publisher, rids: rids, layers: pictures)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(3))
        let (viewer, session) = try simulation.add(.viewer)
        simulation.cap(viewer, link)
        #expect(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        return World(simulation: simulation, publisher: publisher, viewer: viewer, session: session)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `gives the best layer that the link takes`(seed: UInt64) throws {
        for (capacity, height) in [(10_000_000, 720), (1_000_000, 360), (300_000, 180)] {
            let world = try begin(seed, CappedLink(bitrate: capacity))
            world.simulation.run(for: .seconds(5))
            let record = world.watch(for: 10)
            #expect(world.height == height, "\(capacity) bit/s: \(record)")
            #expect(record.pictures > 270, "\(capacity) bit/s: \(record)")
            #expect(record.sound > 0.99, "\(capacity) bit/s: \(record)")
            #expect(record.bitrate < capacity, "\(capacity) bit/s: \(record)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `follows a link that becomes slower and faster`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 2_500_000))
        world.simulation.run(for: .seconds(5))
        #expect(world.height == 720)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 600_000))
        #expect(world.simulation.run(for: .seconds(2)) { world.height != 720 })
        world.simulation.run(for: .seconds(3))
        let slow = world.watch(for: 10)
        #expect(world.height == 180 || world.height == 360)
        #expect(slow.pictures > 270, "\(slow)")
        #expect(slow.sound > 0.99, "\(slow)")
        world.simulation.cap(world.viewer, CappedLink(bitrate: 2_500_000))
        #expect(world.simulation.run(for: .seconds(12)) { world.height == 720 })
        let fast = world.watch(for: 10)
        #expect(fast.pictures > 280, "\(fast)")
        #expect(fast.sound > 0.99, "\(fast)")
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `sends nothing besides to who has the best there is`(seed: UInt64) throws {
        let world = try begin(seed)
        world.simulation.run(for: .seconds(3))
        let before = world.simulation.workers[0].sessions[world.session]?.totals.probeBytes
        world.simulation.run(for: .seconds(30))
        #expect(world.height == 720)
        #expect(world.simulation.workers[0].sessions[world.session]?.totals.probeBytes == before)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `is not lowered by loss that has nothing to do with what is sent`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 10_000_000))
        world.simulation.conditions.loss = 0.05
        world.simulation.run(for: .seconds(20))
        let record = world.watch(for: 10)
        #expect(world.height == 720, "\(record)")
        #expect(record.pictures > 250, "\(record)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `leaves sound whole where the only picture does not fit, and shows it when it does`(seed: UInt64)
        throws
    {
        var settings = SyntheticVideo.Settings()
        settings.bitrate = 2_000_000
        let world = try begin(seed, pictures: [settings])
        world.simulation.cap(world.viewer, CappedLink(bitrate: 300_000))
        world.simulation.run(for: .seconds(5))
        let slow = world.watch(for: 10)
        #expect(slow.sound > 0.99, "\(slow)")
        #expect(slow.bitrate < 300_000, "\(slow)")
        world.simulation.cap(world.viewer, nil)
        #expect(world.simulation.run(for: .seconds(15)) { world.height != nil })
        world.simulation.run(for: .seconds(2))
        let fast = world.watch(for: 5)
        #expect(fast.pictures > 140, "\(fast)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `keeps the only picture on a link with little to spare`(seed: UInt64) throws {
        var settings = SyntheticVideo.Settings()
        settings.bitrate = 2_000_000
        let world = try begin(seed, CappedLink(bitrate: 2_400_000), pictures: [settings])
        world.simulation.run(for: .seconds(5))
        let record = world.watch(for: 20)
        #expect(record.pictures > 560, "\(record)")
        #expect(record.sound > 0.97, "\(record)")
    }

    @Test func `goes on to another layer when the publisher stops one`() throws {
        let world = try begin(1, CappedLink(bitrate: 1_000_000))
        world.simulation.run(for: .seconds(5))
        #expect(world.height == 360)
        world.publisher.switchedOff = [1]
        #expect(world.simulation.run(for: .seconds(4)) { world.height == 180 })
        let record = world.watch(for: 5)
        #expect(record.pictures > 130, "\(record)")
        world.publisher.switchedOff = []
        #expect(world.simulation.run(for: .seconds(15)) { world.height == 360 })
    }
}
