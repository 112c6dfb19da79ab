import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What viewers get who share a link, with each other or with TCP, as RFC 8867 has it for those who send.
///
/// Each is served by itself: the server knows nothing of what their paths have in common.
@Suite(.simulated) struct `Viewers who share a link` {
    /// 720p, 480p and 360p.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(2_000_000, 720), (800_000, 480), (400_000, 360)])
    /// How often is looked.
    private static let tick = Duration.milliseconds(20)

    /// A viewer, and what they have had since the look before.
    private final class Viewer {
        let client: SimulatedClient
        private let slot: Slot
        private var bytes = 0
        private var sound = 0
        private var frames: Int
        private var still = 0
        private var frozen = 0
        private var ticks = 0

        init(_ client: SimulatedClient, _ slot: Slot) {
            (self.client, self.slot) = (client, slot)
            frames = client.decoder.framesDecoded
        }

        var height: Int? { slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) } }

        /// A picture stands once it has for more than 200 ms.
        func look() {
            ticks += 1
            still = client.decoder.framesDecoded > frames ? 0 : still + 1
            if still == 11 { frozen += 11 } else if still > 11 { frozen += 1 }
            frames = client.decoder.framesDecoded
        }

        /// What they had since the last call: bits a second that arrived, and shares of the time from 0 to 1.
        func take(_ simulation: Simulation) -> Share {
            let (before, heard, seconds) = (bytes, sound, Double(ticks) / 50)
            (bytes, sound) = (simulation.bytesDelivered(to: client), client.audioPackets)
            defer { (ticks, frozen) = (0, 0) }
            guard seconds > 0 else { return Share() }
            return Share(
                bitrate: Double(bytes - before) * 8 / seconds, frozen: Double(frozen) / Double(ticks),
                sound: Double(sound - heard) / (50 * seconds))
        }
    }

    private struct Share {
        var bitrate = 0.0
        var frozen = 0.0
        var sound = 0.0
    }

    /// What two links lose by chance, 0 to 1: the one near to the server, and the one near to the viewer.
    struct Losses: Sendable {
        let near: Double
        let far: Double
    }

    /// How evenly something is shared: 1 where all have the same, 1/n where one has all.
    /// - Source: RFC 5166 §2.3 (Jain's index).
    private static func evenness(_ shares: [Share]) -> Double {
        let bits = shares.map(\.bitrate)
        let squares = bits.reduce(0) { $0 + $1 * $1 }
        return squares > 0 ? bits.reduce(0, +) * bits.reduce(0, +) / (Double(bits.count) * squares) : 0
    }

    /// A publisher, a link that nobody has yet, and viewers who come to it.
    private final class Room {
        let simulation: Simulation
        private(set) var viewers: [Viewer] = []
        private var tcp: [SimulatedTCPSender] = []
        private var capacity: Int
        private let queue: Duration

        init(
            seed: UInt64, capacity: Int, queue: Duration = .milliseconds(300), loss: Double = 0
        ) throws {
            (self.capacity, self.queue) = (capacity, queue)
            simulation = try Simulation(
                seed: seed, conditions: .init(delay: .milliseconds(50), jitter: .zero))
            let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: ladder)
            #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
            simulation.run(for: .seconds(2))
            simulation.share(CappedLink(bitrate: capacity, queue: queue), among: [], loss: loss)
        }

        /// - Parameter links: those that the viewer is behind, in the order in which they were put there.
        func join(delay: Duration? = nil, behind links: [Int] = [0]) throws {
            let (client, session) = try simulation.add(.viewer)
            for link in links {
                simulation.withCommonLink(link) { $0.receivers.insert(client.outerAddress) }
            }
            if let delay { simulation.delay(client, by: delay) }
            let slots = simulation.workers[0].sessions[session]?.slots ?? []
            viewers.append(Viewer(client, try #require(slots.first { $0.plan.kind == .video })))
        }

        func leave(_ index: Int) {
            simulation.close(viewers.remove(at: index).client)
        }

        func limit(to capacity: Int) {
            self.capacity = capacity
            simulation.withCommonLink { $0.link = CappedLink(bitrate: capacity, queue: queue) }
        }

        func begin(_ sender: SimulatedTCPSender) { tcp.append(sender) }

        var sendersUnderWay: Int { tcp.count { !$0.isDone } }
        var deliveredByTCP: Int { tcp.reduce(0) { $0 + $1.delivered } }

        /// - Returns: what each viewer had meanwhile.
        @discardableResult
        func watch(for seconds: Double, each: () -> Void = {}) -> [Share] {
            for _ in 0..<Int(seconds * 50) {
                simulation.withCommonLink { common in
                    for index in tcp.indices {
                        tcp[index].advance(
                            to: simulation.now, through: &common.link, roundTrip: .milliseconds(100))
                    }
                }
                each()
                simulation.run(for: tick)
                for viewer in viewers { viewer.look() }
            }
            return viewers.map { $0.take(simulation) }
        }
    }

    /// That nobody has less than a third of what another has (RFC 8868 §3), a picture that stands for long, or gaps.
    private func expectFairness(_ shares: [Share], evenness: Double, frozen: Double, _ what: String = "") {
        let what: Comment = "\(what) \(shares)"
        #expect(Self.evenness(shares) >= evenness, what)
        for share in shares {
            #expect(share.frozen <= frozen && share.sound >= 0.97, what)
            #expect(share.bitrate * 3 >= shares.map(\.bitrate).max() ?? 0, what)
        }
    }

    /// RFC 8867 §5.2: two, while what the link takes changes.
    @Test(arguments: [1, 2] as [UInt64])
    func `follow it together`(seed: UInt64) throws {
        let room = try Room(seed: seed, capacity: 4_000_000)
        for _ in 0..<2 { try room.join() }
        for capacity in [4_000_000, 2_000_000, 3_500_000, 1_000_000, 2_000_000] {
            room.limit(to: capacity)
            room.watch(for: 10)
            expectFairness(room.watch(for: 15), evenness: 0.8, frozen: 0.2, "\(capacity) bit/s")
        }
    }

    /// RFC 8867 §5.3: what is told of packets comes late, or not at all.
    @Test(arguments: [1, 2] as [UInt64])
    func `follow it although what they tell gets lost`(seed: UInt64) throws {
        let room = try Room(seed: seed, capacity: 2_000_000)
        try room.join()
        for (capacity, back, frozen) in [
            (2_000_000, 2_000_000, 0.15), (1_000_000, 2_000_000, 0.05), (1_000_000, 800_000, 0.05),
            // The least with its sound takes more than that.
            (500_000, 800_000, 1), (2_000_000, 800_000, 0.5), (2_000_000, 2_000_000, 0.2),
        ] {
            room.limit(to: capacity)
            let client = room.viewers[0].client
            room.simulation.capUplink(of: client, CappedLink(bitrate: back))
            // Somebody sends more the other way than the link takes for a while.
            let share = room.watch(for: 15) {
                for _ in 0..<2 { room.simulation.occupyUplink(of: client, 900_000 / 8 / 50 / 2) }
            }[0]
            let what: Comment = "\(capacity) and \(back) bit/s: \(share)"
            #expect(share.frozen <= frozen && share.sound >= 0.96, what)
            if capacity >= 1_000_000 { #expect(room.viewers[0].height ?? 0 >= 480, what) }
        }
    }

    /// RFC 8867 §5.4: the second and the third come later.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `share it evenly`(seed: UInt64) throws {
        let room = try Room(seed: seed, capacity: 3_500_000)
        for _ in 0..<3 {
            try room.join()
            room.watch(for: 20)
        }
        expectFairness(room.watch(for: 60), evenness: 0.93, frozen: 0.12)
    }

    /// RFC 8867 §5.5: those who are far away get their share.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `share it wherever they are`(seed: UInt64) throws {
        let room = try Room(seed: seed, capacity: 4_000_000)
        for delay in [10, 25, 50, 100, 150] {
            try room.join(delay: .milliseconds(delay))
            room.watch(for: 10)
        }
        expectFairness(room.watch(for: 120), evenness: 0.85, frozen: 0.18)
    }

    /// RFC 8867 §5.6.
    @Test(arguments: [1, 2, 3] as [UInt64], [300, 1_000] as [Int64])
    func `have a picture beside TCP that goes on`(seed: UInt64, queue: Int64) throws {
        let room = try Room(seed: seed, capacity: 2_000_000, queue: .milliseconds(queue))
        room.begin(SimulatedTCPSender(bytes: 1_000_000_000))
        room.watch(for: 5)
        try room.join()
        room.watch(for: 15)
        let before = room.deliveredByTCP
        let share = room.watch(for: 100)[0]
        #expect(share.bitrate >= 420_000 && share.frozen <= 0.1 && share.sound >= 0.99, "\(share)")
        #expect((room.deliveredByTCP - before) * 8 / 100 >= 1_000_000)
    }

    /// RFC 8867 §5.7: with ten others there is less than the least picture for each.
    @Test(arguments: [1, 2] as [UInt64])
    func `have their sound beside TCP that comes and goes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let room = try Room(seed: seed, capacity: 2_000_000)
        func begin() {
            room.begin(SimulatedTCPSender(bytes: Int.random(in: 100_000...1_000_000, using: &random)))
        }
        for _ in 0..<2 { begin() }
        room.watch(for: 5)
        for _ in 0..<2 { try room.join() }
        room.watch(for: 10)
        let shares = room.watch(for: 120) {
            // Ten who pause for ten seconds each, on the average, between two files.
            let idle = 10 - room.sendersUnderWay
            if Int.random(in: 0..<500, using: &random) < idle { begin() }
        }
        expectFairness(shares, evenness: 0.9, frozen: 1)
        #expect(room.deliveredByTCP * 8 / 135 >= 1_000_000)
    }

    /// RFC 8867 §5.8: one of three goes, and is back.
    @Test(arguments: [1, 2] as [UInt64])
    func `take what somebody leaves, and give it back`(seed: UInt64) throws {
        let room = try Room(seed: seed, capacity: 3_500_000)
        for _ in 0..<3 { try room.join() }
        room.watch(for: 40)
        room.leave(1)
        let between = room.watch(for: 20)
        #expect(between.reduce(0) { $0 + $1.bitrate } > 1_700_000, "\(between)")
        try room.join()
        room.watch(for: 20)
        expectFairness(room.watch(for: 40), evenness: 0.8, frozen: 0.25)
    }

    /// RFC 8867 §6.3: one is behind two links, each of which another one has, too.
    ///
    /// None of the links loses anything by chance, or one of them does besides.
    @Test(
        arguments: [1, 2] as [UInt64],
        [Losses(near: 0, far: 0), Losses(near: 0.02, far: 0), Losses(near: 0, far: 0.02)])
    func `share two of them, one after the other`(seed: UInt64, losses: Losses) throws {
        let room = try Room(seed: seed, capacity: 2_000_000, loss: losses.near)
        room.simulation.share(CappedLink(bitrate: 8_000_000), among: [])
        room.simulation.share(CappedLink(bitrate: 1_500_000), among: [], loss: losses.far)
        try room.join(delay: .milliseconds(100), behind: [0, 1, 2])
        try room.join(delay: .milliseconds(40), behind: [0])
        try room.join(delay: .milliseconds(40), behind: [2])
        room.watch(for: 20)
        let shares = room.watch(for: 100)
        // What is lost on a way of 200 ms there and back takes longer than that to come again.
        let frozen = losses.near + losses.far > 0 ? 0.35 : 0.05
        expectFairness([shares[0], shares[1]], evenness: 0.9, frozen: frozen, "\(losses)")
        expectFairness([shares[0], shares[2]], evenness: 0.9, frozen: frozen, "\(losses)")
        // Layers are few: of one link half may be all that two of them make use of.
        #expect(shares[0].bitrate + shares[1].bitrate >= 1_000_000, "\(losses) \(shares)")
        #expect(shares[0].bitrate + shares[2].bitrate >= 900_000, "\(losses) \(shares)")
    }
}
