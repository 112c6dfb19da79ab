import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// Gets no packets, but can ask for key frames.
private final class Onlooker: TapSink {
    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {}
    func finish() {}
}

/// What a viewer sees whose link becomes slow, while others have key frames of the small picture made now and then, as
/// previews do: their cost must not keep a viewer waiting who has no picture to see meanwhile.
@Suite struct `A viewer whose link becomes slow` {
    private static let rids = ["f", "h", "q"]
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])
    private static let onlooker = TapID(number: 1)

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

        /// Has a key frame of the smallest picture made for somebody else, and lets time pass.
        func askForSmallest(andRun duration: Duration) {
            simulation.perform(.demandKeyFrame(onlooker))
            simulation.run(for: duration)
        }

        /// Pictures that are decoded in some time.
        func pictures(for seconds: Int64) -> Int {
            let before = viewer.decoder.framesDecoded
            simulation.run(for: .seconds(seconds))
            return viewer.decoder.framesDecoded - before
        }
    }

    /// A viewer who sees the largest picture.
    private func begin(_ seed: UInt64) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(5), jitter: .zero))
        let (publisher, source) = try simulation.add(
            .publisher, rids: Self.rids, layers: Self.ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(1))
        let sources = simulation.workers[0].sessions[source]?.plan.sources ?? []
        let mid = try #require(sources.first { $0.kind == .video }?.mid)
        simulation.perform(
            .openTap(
                TapOpening(
                    id: Self.onlooker, target: .source(source, mid: mid), mode: .whole, maximumHeight: 180,
                    isAlongside: true, sink: Onlooker())))
        let (viewer, session) = try simulation.add(.viewer)
        viewer.asksOnlyForWhatComes = true
        let world = World(
            simulation: simulation, publisher: publisher, viewer: viewer, session: session)
        #expect(simulation.run(for: .seconds(10)) { world.height == 720 && viewer.decoder.framesDecoded > 0 })
        return world
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a slow link gets a smaller picture at once, even just after its key frame`(
        seed: UInt64
    ) throws {
        let world = try begin(seed)
        // Twice: what a key frame costs is known once the pictures behind it are.
        world.askForSmallest(andRun: .seconds(3))
        world.askForSmallest(andRun: .milliseconds(2_500))
        #expect(world.height == 720)
        world.simulation.cap(world.viewer, CappedLink(bitrate: 450_000))
        #expect(world.simulation.run(for: .seconds(1)) { world.height.map { $0 < 720 } ?? false })
        #expect(world.simulation.run(for: .seconds(3)) { world.height == 180 })
        world.simulation.run(for: .seconds(2))
        #expect(world.pictures(for: 10) > 280)
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    /// A publisher whose machine is busy sends less and less itself, just then.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `the smallest picture is shown while the others stop coming`(seed: UInt64) throws {
        let world = try begin(seed)
        world.askForSmallest(andRun: .seconds(1))
        world.simulation.cap(world.viewer, CappedLink(bitrate: 450_000))
        world.askForSmallest(andRun: .seconds(1))
        world.publisher.switchedOff = [0]
        #expect(world.simulation.run(for: .seconds(5)) { world.height.map { $0 < 720 } ?? false })
        world.askForSmallest(andRun: .seconds(7))
        world.publisher.switchedOff = [0, 1]
        #expect(world.simulation.run(for: .seconds(3)) { world.height == 180 })
        world.simulation.run(for: .seconds(2))
        for _ in 0..<14 {
            #expect(world.pictures(for: 10) > 280)
            #expect(world.height == 180)
            world.simulation.perform(.demandKeyFrame(Self.onlooker))
        }
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }

    /// A picture that begins from the cache must not show again what was shown a second ago.
    @Test(arguments: [300, 600, 1_100, 1_600, 2_500])
    func `goes on from where it was`(age: Int64) throws {
        let world = try begin(1)
        for pin in [.low, nil, .low, nil] as [DeliveryPreferences.Pin?] {
            world.askForSmallest(andRun: .milliseconds(age))
            world.simulation.perform(.prefer(world.session, DeliveryPreferences(pin: pin)))
            let height = pin == nil ? 720 : 180
            #expect(world.simulation.run(for: .seconds(10)) { world.height == height })
            world.simulation.run(for: .seconds(4))
        }
        // Of 30 a second. Within a second of the last key frame no other may be asked for.
        let (leaps, longest) = (world.viewer.pictureOrder.leaps, age < 1_000 ? 30 : 8)
        #expect(leaps.allSatisfy { $0 <= longest }, "\(leaps)")
        #expect(world.viewer.decoder.complaints.isEmpty, "\(world.viewer.decoder.complaints)")
    }
}
