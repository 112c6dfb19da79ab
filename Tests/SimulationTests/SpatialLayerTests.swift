import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// One encoding with spatial layers, of which viewers get as many as they want and as their paths take.
@Suite(.simulated) struct SpatialLayersOfOneEncoding {
    private struct World {
        let simulation: Simulation
        let publisher: SimulatedClient
        let viewer: SimulatedClient
        let id: SessionID
        var worker = 0

        /// Of the picture that is sent, as the client may ask; nil for none.
        var served: DeliveryQuality.Layer? {
            simulation.workers[worker].sessions[id]?.gauge.quality?.pictures.first?.served
        }

        var decoder: SpatialDecoder { viewer.spatialDecoder }

        func prefer(_ preferences: DeliveryPreferences) {
            simulation.perform(.prefer(id, preferences), worker: worker)
        }

        /// Waits until a picture of this height is served and shown, and counts for a while then.
        func watch(_ height: Int) -> (pictures: Int, bitrate: Int)? {
            let isThere = simulation.run(for: .seconds(20)) {
                decoder.height == height && served?.height == height
            }
            guard isThere else { return nil }
            simulation.run(for: .seconds(1))
            let before = (decoder.framesDecoded, simulation.bytesSent(to: viewer))
            simulation.run(for: .seconds(4))
            return (
                decoder.framesDecoded - before.0, (simulation.bytesSent(to: viewer) - before.1) * 8 / 4
            )
        }
    }

    /// Three layers of 100, 300 and 900 kbit/s.
    private func begin(
        _ seed: UInt64, _ link: CappedLink? = nil, loss: Double = 0, workers: Int = 1,
        codec: VideoCodec = .vp9
    ) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(loss: loss, delay: .milliseconds(30), jitter: .zero),
            workers: workers)
        var settings = SyntheticVideo.Settings()
        (settings.bitrate, settings.spatialLayers, settings.layeredCodec) = (1_300_000, 3, codec)
        let (publisher, _) = try simulation.add(.publisher, layers: [settings])
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(2))
        let (viewer, session) = try simulation.add(.viewer, worker: workers - 1)
        simulation.cap(viewer, link)
        #expect(simulation.run(for: .seconds(10)) { viewer.spatialDecoder.framesDecoded > 0 })
        return World(
            simulation: simulation, publisher: publisher, viewer: viewer, id: session, worker: workers - 1)
    }

    @Test(arguments: [(1, 1), (1, 2), (2, 1), (2, 2)] as [(UInt64, Int)], [VideoCodec.vp9, .av1])
    func `the layers follow the viewer's wish, with a key frame to go up`(
        place: (seed: UInt64, workers: Int), codec: VideoCodec
    ) throws {
        let world = try begin(place.seed, workers: place.workers, codec: codec)
        _ = try #require(world.watch(720))
        var before = world.decoder.keyFramesDecoded
        for (preferences, height, bitrate, keyFrames) in [
            (DeliveryPreferences(maximumHeight: 500), 360, 400_000, 0),
            (DeliveryPreferences(pin: .low), 180, 100_000, 0),
            (DeliveryPreferences(maximumHeight: 360), 360, 400_000, 1),
            (DeliveryPreferences(maximumHeight: 1), 180, 100_000, 0),
            (DeliveryPreferences(pin: .high), 720, 1_300_000, 1),
            (DeliveryPreferences(maximumHeight: 200), 180, 100_000, 0),
            (DeliveryPreferences(), 720, 1_300_000, 1),
        ] {
            world.prefer(preferences)
            let record = try #require(world.watch(height), "\(preferences)")
            #expect(record.pictures > 110, "\(preferences): \(record)")
            #expect(record.bitrate < bitrate * 13 / 10 + 90_000, "\(preferences): \(record)")
            #expect(record.bitrate > bitrate * 7 / 10, "\(preferences): \(record)")
            #expect(world.decoder.keyFramesDecoded - before == keyFrames, "\(preferences)")
            let told = try #require(world.served?.bitrate)
            #expect((bitrate * 8 / 10...bitrate * 12 / 10).contains(told), "\(preferences): \(told)")
            before = world.decoder.keyFramesDecoded
        }
        #expect(world.decoder.complaints.isEmpty, "\(world.decoder.complaints)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [VideoCodec.vp9, .av1])
    func `follow what the path takes`(seed: UInt64, codec: VideoCodec) throws {
        let world = try begin(seed, CappedLink(bitrate: 700_000), codec: codec)
        let middle = try #require(world.watch(360))
        #expect(middle.pictures > 110 && middle.bitrate < 700_000, "\(middle)")
        world.simulation.cap(world.viewer, CappedLink(bitrate: 250_000))
        let least = try #require(world.watch(180))
        #expect(least.pictures > 100, "\(least)")
        world.simulation.cap(world.viewer, nil)
        #expect(world.simulation.run(for: .seconds(60)) { world.decoder.height == 720 })
        let best = try #require(world.watch(720))
        #expect(best.pictures > 110, "\(best)")
        #expect(world.decoder.complaints.isEmpty, "\(world.decoder.complaints)")
    }

    @Test(arguments: UInt64(1)...6, [VideoCodec.vp9, .av1])
    func `come whole over a network that loses packets`(seed: UInt64, codec: VideoCodec) throws {
        let world = try begin(seed, loss: 0.03, codec: codec)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<12 {
            world.prefer(
                [DeliveryPreferences(), .init(maximumHeight: 400), .init(pin: .low)]
                    .randomElement(using: &random) ?? .init())
            world.simulation.run(for: .milliseconds(Int64.random(in: 100...3_000, using: &random)))
        }
        world.prefer(DeliveryPreferences(maximumHeight: 400))
        _ = try #require(world.watch(360))
        let before = world.decoder.framesDecoded
        world.simulation.run(for: .seconds(5))
        #expect(world.decoder.framesDecoded - before > 130)
        #expect(world.decoder.complaints.isEmpty, "\(world.decoder.complaints)")
        // Each number stood for one packet.
        #expect(world.viewer.connection?.isConnected == true)
    }

    @Test func `deliveries are counted by the layers that are served`() throws {
        let world = try begin(4)
        var census: DeliveryCensus { world.simulation.workers[0].statistics.delivery }
        for (preferences, height) in [
            (DeliveryPreferences(), 720), (DeliveryPreferences(maximumHeight: 500), 360),
        ] {
            world.prefer(preferences)
            _ = try #require(world.watch(height))
            let place = try #require(DeliveryCensus.heights.firstIndex(of: height))
            #expect(census.pictures.reduce(0, +) == 1 && census.pictures[place] == 1, "\(census)")
        }
    }
}
