import Base
import Synchronization
import TestSupport
import Testing

@testable import Net

/// A listener's connections without its thread: their addresses and their times are a test's.
private final class Entrance {
    struct Placed: Sendable {
        let handover: ConnectionHandover
        let frame: [UInt8]
    }

    private let port: ListeningPort
    private let shared: ListenerShared
    private var connections: UnplacedConnections
    /// Handed to workers, which keep them until a test lets them go.
    let placed: Watched<[Placed]>

    var counters: ListenerCounters { shared.counters.withLock { $0 } }
    var deadline: MonotonicTime? { connections.deadline }

    init(_ change: (inout ConnectionLimits) -> Void = { _ in }) throws {
        var limits = ConnectionLimits()
        change(&limits)
        let (shared, placed) = (ListenerShared(), Watched<[Placed]>([]))
        let port = try ListeningPort(TransportAddress(ip: .loopback, port: 0))
        self.shared = shared
        self.port = port
        self.placed = placed
        // A first frame that begins with 9 is nobody's.
        connections = UnplacedConnections(of: port, shared: shared, limits: limits) { handover, frame in
            guard frame.first != 9 else { return false }
            placed.change { $0.append(Placed(handover: handover, frame: frame)) }
            return true
        }
    }

    /// - Parameter host: of the documentation's network 198.51.100.0/24.
    func connect(_ host: UInt32, at milliseconds: Int64 = 0) throws -> StreamPair {
        let pair = try StreamPair()
        let remote = TransportAddress(
            ip: IPAddress(ipv4: 0xC633_6400 | host), port: 50_000, transport: .tcp)
        let arrival = ConnectionArrival(descriptor: pair.inner, remote: remote)
        connections.admit(arrival, at: .zero + .milliseconds(milliseconds))
        return pair
    }

    /// A turn of the thread's loop.
    func turn(at milliseconds: Int64 = 0) {
        let now = MonotonicTime.zero + .milliseconds(milliseconds)
        var tokens = [UInt32](repeating: 0, count: 64)
        let count = port.wait(until: MonotonicTime.zero, into: &tokens)
        for token in tokens.prefix(count) where token >= ListeningPort.Token.firstConnection {
            connections.serve(token, at: now)
        }
        connections.endTurn(at: now)
    }

    func stop() { connections.stop(at: .zero) }
}

@Suite struct `Connections whose session is not known` {
    @Test func `are handed over with all that was read of them, and the time that they have left`() throws {
        let entrance = try Entrance()
        let pair = try entrance.connect(1, at: 700)
        pair.send(raw: [0, 3, 1])
        entrance.turn(at: 800)
        #expect(entrance.placed.value.isEmpty)
        pair.send(raw: [2, 3, 0, 9, 4])
        entrance.turn(at: 900)
        let placed = try #require(entrance.placed.value.first)
        #expect(placed.frame == [1, 2, 3])
        #expect(placed.handover.firstBytes == [0, 3, 1, 2, 3, 0, 9, 4])
        let end = MonotonicTime.zero + .milliseconds(5_700)
        #expect(placed.handover.deadline == end)
        #expect(entrance.counters == ListenerCounters(accepted: 1, placed: 1))
        #expect(entrance.deadline == nil && !pair.hasEnded())
    }

    @Test(
        arguments: [
            ([0, 1, 7, 0xFF, 0xFF], [7]), ([0, 0, 0, 0, 0, 2, 7, 8], [7, 8]), ([0, 1, 7, 0, 1, 9], [7]),
        ] as [([UInt8], [UInt8])])
    func `are known by their first frame that is not empty, whatever follows`(
        bytes: [UInt8], frame: [UInt8]
    ) throws {
        let entrance = try Entrance()
        let pair = try entrance.connect(1)
        pair.send(raw: bytes)
        entrance.turn()
        #expect(entrance.placed.value.map(\.frame) == [frame])
        #expect(entrance.placed.value.first?.handover.firstBytes == bytes)
    }

    @Test(
        arguments: [
            [4, 1], [0xFF, 0xFF, 1], [0, 1, 9], Array("GET / HTTP/1.1\r\n".utf8),
        ] as [[UInt8]])
    func `are closed when they begin with what is no check of anybody's`(bytes: [UInt8]) throws {
        let entrance = try Entrance()
        let pair = try entrance.connect(1)
        pair.send(raw: bytes)
        entrance.turn()
        #expect(pair.hasEnded() && entrance.placed.value.isEmpty)
        #expect(entrance.counters == ListenerCounters(accepted: 1, strange: 1))
    }

    @Test func `may send a check of 1,024 bytes and no longer one`() throws {
        let entrance = try Entrance()
        let (longest, longer) = (try entrance.connect(1), try entrance.connect(2))
        longest.send(raw: [4, 0] + [UInt8](repeating: 1, count: 1_023))
        longer.send(raw: [4, 1])
        entrance.turn()
        #expect(longer.hasEnded() && !longest.hasEnded())
        longest.send(raw: [1])
        entrance.turn()
        #expect(entrance.placed.value.map(\.frame.count) == [1_024])
    }

    @Test func `have five seconds from their arrival, however much of a frame has come`() throws {
        let entrance = try Entrance()
        let first = try entrance.connect(1, at: 1_000)
        let second = try entrance.connect(2, at: 2_000)
        let due = MonotonicTime.zero + .milliseconds(6_000)
        #expect(entrance.deadline == due)
        first.send(raw: [0])
        entrance.turn(at: 5_999)
        #expect(!first.hasEnded())
        first.send(raw: [3])
        entrance.turn(at: 6_000)
        #expect(first.hasEnded() && !second.hasEnded())
        #expect(entrance.counters == ListenerCounters(accepted: 2, expired: 1))
        let next = MonotonicTime.zero + .milliseconds(7_000)
        #expect(entrance.deadline == next)
    }

    @Test func `wait in so many places of an address, which those that leave give back`() throws {
        let entrance = try Entrance { $0.waitingPerAddress = 2 }
        let waiting = try [entrance.connect(1), entrance.connect(1)]
        let refused = try entrance.connect(1)
        #expect(refused.hasEnded() && waiting.haveEnded() == [false, false])
        // One is placed and one is nobody's: both places are free again.
        waiting[0].send(raw: [0, 1, 7])
        waiting[1].send(raw: [0, 1, 9])
        entrance.turn()
        let others = try [entrance.connect(1), entrance.connect(1)]
        #expect(others.haveEnded() == [false, false])
        entrance.turn(at: 5_000)
        #expect(others.haveEnded() == [true, true])
        let last = try [entrance.connect(1, at: 5_000), entrance.connect(1, at: 5_000)]
        #expect(last.haveEnded() == [false, false])
        let counters = ListenerCounters(accepted: 6, placed: 1, refused: 1, expired: 2, strange: 1)
        #expect(entrance.counters == counters)
    }

    @Test func `keep a place of their address for as long as their worker has them`() throws {
        let entrance = try Entrance { $0.perAddress = 2 }
        for pair in try [entrance.connect(1), entrance.connect(1)] {
            pair.send(raw: [0, 1, 7])
            entrance.turn()
        }
        #expect(entrance.placed.value.count == 2)
        let refused = try entrance.connect(1)
        let other = try entrance.connect(2)
        #expect(refused.hasEnded() && !other.hasEnded())
        // Who is refused for one limit occupies no place under another.
        for _ in 0..<200 { _ = try entrance.connect(1) }
        entrance.placed.change { $0.removeFirst() }
        let next = try entrance.connect(1)
        #expect(!next.hasEnded())
        #expect(entrance.counters.refused == 201 && entrance.counters.accepted == 4)
    }

    @Test func `displace the oldest where too many wait, and give its place back`() throws {
        let entrance = try Entrance { ($0.waiting, $0.waitingPerAddress) = (3, 2) }
        let pairs = try (1...3).map { try entrance.connect($0) }
        let newcomers = try [entrance.connect(4), entrance.connect(5)]
        #expect(pairs.haveEnded() == [true, true, false] && newcomers.haveEnded() == [false, false])
        #expect(entrance.counters == ListenerCounters(accepted: 5, displaced: 2))
        // The displaced client may come back, and again displaces the oldest.
        let returned = try entrance.connect(1)
        #expect(pairs[2].hasEnded() && !returned.hasEnded())
    }

    @Test func `leave nothing behind when they are hung up, or the listener stops`() throws {
        let entrance = try Entrance()
        var pairs = try [entrance.connect(1)]
        pairs.removeAll()
        entrance.turn()
        #expect(entrance.counters == ListenerCounters(accepted: 1, strange: 1))
        #expect(entrance.deadline == nil)
        let waiting = try entrance.connect(2)
        let placed = try entrance.connect(3)
        placed.send(raw: [0, 1, 7])
        entrance.turn()
        entrance.stop()
        // The worker's is the worker's.
        #expect(waiting.hasEnded() && !placed.hasEnded())
        #expect(entrance.deadline == nil)
    }
}
