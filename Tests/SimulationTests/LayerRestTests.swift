import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Synchronization
import Testing
import Wire

/// Which layer a tap got last, and how much.
private final class EpochsOfTap: TapSink {
    private let state = Mutex<(count: Int, latest: UInt32?)>((0, nil))

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {
        state.withLock { $0 = ($0.count + 1, packet.epoch) }
    }

    func finish() {}

    var count: Int { state.withLock { $0.count } }
    var latest: UInt32? { state.withLock { $0.latest } }
}

/// What a publisher of several sizes is told that nobody takes, and how soon it comes again when somebody does.
@Suite struct `Layers that nobody takes` {
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(1_700_000, 720), (500_000, 360), (150_000, 180)])
    private static let rids = ["f", "h", "q"]

    /// A publisher who lets layers rest when it is told so, a while after the server has said it.
    private final class World {
        let simulation: Simulation
        let publisher: SimulatedClient
        let session: SessionID
        /// As the publisher was told, each time.
        private(set) var told: [[String]] = []
        private var seen = 0
        private var orders: [(due: MonotonicTime, rids: [String])] = []
        /// Whether the publisher does not do what it is told.
        var isDeaf: Bool

        static let way = Duration.milliseconds(40)

        init(seed: UInt64, workers: Int, heeds: Bool = true) throws {
            simulation = try Simulation(
                seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero), workers: workers)
            (publisher, session) = try simulation.add(.publisher, rids: rids, layers: ladder)
            isDeaf = !heeds
            #expect(run(for: .seconds(5)) { self.publisher.isConnected })
        }

        @discardableResult
        func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
            simulation.run(for: limit) {
                listen()
                return condition()
            }
        }

        private func listen() {
            for event in simulation.events[seen...] {
                guard case .layersWanted(session, _, let rids) = event else { continue }
                told.append(rids)
                orders.append((simulation.now + Self.way, rids))
            }
            seen = simulation.events.count
            while !isDeaf, let order = orders.first, order.due <= simulation.now {
                orders.removeFirst()
                publisher.switchedOff = Set(rids.indices.filter { !order.rids.contains(rids[$0]) })
            }
        }

        /// Height of what a viewer is sent, in pixels; nil for nothing.
        func served(_ session: SessionID, on worker: Int) -> Int? {
            simulation.workers[worker].sessions[session]?.gauge.quality?.pictures.first?.served?.height
        }
    }

    @Test(arguments: [1, 2] as [UInt64], [1, 2])
    func `rest, and come again within two round trips when somebody wants them`(
        seed: UInt64, workers: Int
    ) throws {
        let world = try World(seed: seed, workers: workers)
        let worker = workers - 1
        #expect(world.run(for: .seconds(4)) { !world.told.isEmpty } == false)
        #expect(world.run(for: .seconds(4)) { world.told == [["q"]] })
        world.run(for: .seconds(10))
        #expect(world.told == [["q"]] && world.publisher.switchedOff == [0, 1])

        // Who comes sees the small picture at once, and the best as soon as it is there.
        let (viewer, id) = try world.simulation.add(.viewer, worker: worker)
        #expect(world.run(for: .seconds(2)) { viewer.decoder.framesDecoded > 0 })
        let first = world.simulation.now
        #expect(world.run(for: .seconds(2)) { world.told.last == ["f", "q"] })
        #expect(world.simulation.now < first + .milliseconds(200))
        #expect(world.run(for: .seconds(3)) { world.served(id, on: worker) == 720 })
        // Two round trips, and up to a second until the gauge is read anew.
        #expect(world.simulation.now < first + .milliseconds(1_400))
        let decoded = viewer.decoder.framesDecoded
        world.run(for: .seconds(20))
        #expect(viewer.decoder.framesDecoded > decoded + 590)
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
        #expect(world.told.suffix(1) == [["f", "q"]] && world.told.count <= 3, "\(world.told)")

        world.simulation.close(viewer)
        #expect(world.run(for: .seconds(8 + 10)) { world.told.last == ["q"] })
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [1, 2])
    func `a resting layer is called back for a slower path`(seed: UInt64, workers: Int) throws {
        let world = try World(seed: seed, workers: workers)
        let worker = workers - 1
        let (viewer, id) = try world.simulation.add(.viewer, worker: worker)
        #expect(world.run(for: .seconds(15)) { world.told.last == ["f", "q"] })
        world.simulation.cap(viewer, CappedLink(bitrate: 800_000))
        #expect(world.run(for: .seconds(5)) { world.told.last?.contains("h") == true })
        #expect(world.run(for: .seconds(10)) { world.served(id, on: worker) == 360 })
        #expect(world.run(for: .seconds(10)) { world.told.last == ["h", "q"] })
        let decoded = viewer.decoder.framesDecoded
        world.run(for: .seconds(10))
        #expect(viewer.decoder.framesDecoded > decoded + 270)
        world.simulation.cap(viewer, nil)
        #expect(world.run(for: .seconds(20)) { world.served(id, on: worker) == 720 })
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    @Test func `layers rest although a tap takes what viewers get`() throws {
        let world = try World(seed: 6, workers: 1)
        let sink = EpochsOfTap()
        let sources = world.simulation.workers[0].sessions[world.session]?.plan.sources ?? []
        let mid = try #require(sources.first { $0.kind == .video }?.mid)
        world.simulation.perform(
            .openTap(
                TapOpening(
                    id: TapID(number: 1), target: .source(world.session, mid: mid), mode: .whole,
                    isAlongside: true, sink: sink)))
        #expect(world.run(for: .seconds(10)) { world.told.last == ["q"] })
        world.run(for: .seconds(10))
        #expect(world.told.last == ["q"])
        let least = sink.latest
        let count = sink.count
        world.run(for: .seconds(5))
        #expect(sink.count > count + 100)
        // It takes the best as soon as somebody has it sent, and the least again.
        let (viewer, _) = try world.simulation.add(.viewer)
        #expect(world.run(for: .seconds(10)) { sink.latest != least })
        world.simulation.close(viewer)
        #expect(world.run(for: .seconds(20)) { world.told.last == ["q"] })
        #expect(world.run(for: .seconds(10)) { sink.latest == least })
    }

    @Test func `resting layers that the publisher still sends make no difference to viewers`() throws {
        let world = try World(seed: 3, workers: 2, heeds: false)
        world.run(for: .seconds(10))
        let (viewer, id) = try world.simulation.add(.viewer, worker: 1)
        #expect(world.run(for: .seconds(3)) { world.served(id, on: 1) == 720 })
        world.run(for: .seconds(10))
        #expect(viewer.decoder.framesDecoded > 350)
        #expect(viewer.decoder.complaints.isEmpty, "\(viewer.decoder.complaints)")
    }

    @Test func `a resting layer that does not come back is waited for two seconds`() throws {
        let world = try World(seed: 4, workers: 1)
        #expect(world.run(for: .seconds(10)) { world.told == [["q"]] })
        world.run(for: .seconds(2))
        world.isDeaf = true
        let (viewer, id) = try world.simulation.add(.viewer)
        #expect(world.run(for: .seconds(2)) { viewer.decoder.framesDecoded > 0 })
        world.run(for: .seconds(10))
        let decoded = viewer.decoder.framesDecoded
        world.run(for: .seconds(5))
        #expect(viewer.decoder.framesDecoded > decoded + 140)
        #expect(world.served(id, on: 0) == 180)
        let quality = world.simulation.workers[0].sessions[id]?.gauge.quality
        #expect(quality?.pictures.first?.wanted?.height == 180, "\(String(describing: quality))")
    }
}
