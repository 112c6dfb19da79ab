import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing

/// What viewers get who want something else than the server would choose, and what they are told of it.
@Suite struct Preferences {
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])

    private struct World {
        let simulation: Simulation
        let viewer: SimulatedClient
        let id: SessionID

        var session: Session? { simulation.workers[0].sessions[id] }

        /// Of the picture that is sent, as the client may ask; nil for none.
        var servedHeight: Int? { session?.gauge.quality?.pictures.first?.served?.height }

        func prefer(_ preferences: DeliveryPreferences) {
            simulation.perform(.prefer(id, preferences))
        }

        /// Waits until it is told of a height, and counts pictures and sound for a while then.
        func watch(_ height: Int?, for seconds: Int64 = 5) -> (pictures: Int, sound: Double, bitrate: Int)? {
            guard simulation.run(for: .seconds(10), until: { servedHeight == height }) else { return nil }
            simulation.run(for: .seconds(1))
            let before = (
                viewer.decoder.framesDecoded, viewer.audioPackets, simulation.bytesSent(to: viewer)
            )
            simulation.run(for: .seconds(seconds))
            return (
                viewer.decoder.framesDecoded - before.0,
                Double(viewer.audioPackets - before.1) / Double(50 * seconds),
                (simulation.bytesSent(to: viewer) - before.2) * 8 / Int(seconds)
            )
        }
    }

    private func begin(
        _ seed: UInt64, _ link: CappedLink? = nil, tellsOfPackets: Bool = true
    ) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: Self.ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(3))
        let (viewer, session) = try simulation.add(.viewer)
        viewer.tellsOfPackets = tellsOfPackets
        simulation.cap(viewer, link)
        #expect(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        return World(simulation: simulation, viewer: viewer, id: session)
    }

    @Test(arguments: [1, 2] as [UInt64], [true, false])
    func `preferences are followed and confirmed`(seed: UInt64, tellsOfPackets: Bool) throws {
        let world = try begin(seed, tellsOfPackets: tellsOfPackets)
        _ = try #require(world.watch(720))
        #expect(world.session?.gauge.quality?.cause == .publisher)
        #expect((world.session?.gauge.quality?.estimate != nil) == tellsOfPackets)
        for (preferences, height, bitrate) in [
            (DeliveryPreferences(maximumHeight: 500), 360, 500_000),
            (DeliveryPreferences(pin: .low), 180, 150_000),
            (DeliveryPreferences(maximumHeight: 1), 180, 150_000),
        ] {
            world.prefer(preferences)
            let record = try #require(world.watch(height), "\(preferences)")
            #expect(record.pictures > 140 && record.sound > 0.99, "\(preferences): \(record)")
            #expect(record.bitrate < bitrate * 13 / 10 + 60_000, "\(preferences): \(record)")
            #expect(world.session?.gauge.quality?.cause == .pinned)
        }
        world.prefer(DeliveryPreferences(isAudioOnly: true))
        let alone = try #require(world.watch(nil))
        #expect(alone.pictures == 0 && alone.sound > 0.99 && alone.bitrate < 80_000, "\(alone)")
        #expect(world.session?.gauge.quality?.pictures.first?.isPaused == true)
        world.prefer(DeliveryPreferences())
        let whole = try #require(world.watch(720))
        #expect(whole.pictures > 140 && whole.sound > 0.99, "\(whole)")
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `do not make the server send more than the path takes`(seed: UInt64) throws {
        let world = try begin(seed, CappedLink(bitrate: 700_000))
        let usual = try #require(world.watch(360))
        #expect(usual.pictures > 140, "\(usual)")
        #expect(world.session?.gauge.quality?.cause != .publisher)
        world.prefer(DeliveryPreferences(pin: .high))
        let none = try #require(world.watch(nil))
        #expect(none.sound > 0.99 && none.bitrate < 700_000, "\(none)")
        world.simulation.cap(world.viewer, nil)
        let best = try #require(world.watch(720))
        #expect(best.pictures > 140, "\(best)")
    }

    @Test func `deliveries are counted by what is served`() throws {
        let world = try begin(1)
        let places = DeliveryCensus.heights
        var census: DeliveryCensus { world.simulation.workers[0].statistics.delivery }
        for (preferences, height) in [
            (DeliveryPreferences(), 720), (DeliveryPreferences(maximumHeight: 500), 360),
            (DeliveryPreferences(pin: .low), 180),
        ] {
            world.prefer(preferences)
            _ = try #require(world.watch(height))
            let place = try #require(places.firstIndex(of: height))
            #expect(census.pictures.reduce(0, +) == 1 && census.pictures[place] == 1, "\(census)")
            #expect(census.picturesPaused == 0 && census.picturesOfUnknownSize == 0)
        }
        // The publisher watches nothing, and so tells of nothing.
        #expect(census.paths.reduce(0, +) == 1)
        // A viewer who wants no pictures does not count as paused.
        world.prefer(DeliveryPreferences(isAudioOnly: true))
        _ = try #require(world.watch(nil))
        #expect(census.pictures.reduce(0, +) == 0 && census.picturesPaused == 0)
        // More than the link takes, and nothing less is wanted.
        world.simulation.cap(world.viewer, CappedLink(bitrate: 700_000))
        world.prefer(DeliveryPreferences(pin: .high))
        #expect(world.simulation.run(for: .seconds(15)) { census.picturesPaused == 1 })
        let known = try #require(DeliveryCensus.estimates.firstIndex(of: 1_200_000))
        #expect(world.simulation.run(for: .seconds(15)) { census.paths.prefix(known + 1).reduce(0, +) == 1 })
    }
}
