import Base
import Synchronization
import TestSupport
import Testing

@testable import Net

/// Does what each letter that it hears says, and notes what happens to it.
private final class Guest: StreamConversation {
    enum Command: Sendable {
        case say(Int)
        case end
    }

    private let name: UInt64
    private let diary: Watched<[String]>
    private var output: [UInt8] = []
    private(set) var isEstablished = false
    private(set) var isOver = false
    private(set) var deadline: MonotonicTime?

    init(_ name: UInt64, _ diary: Watched<[String]>) {
        self.name = name
        self.diary = diary
    }

    private func note(_ what: String) { diary.change { $0.append("\(name) \(what)") } }

    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) {
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "e"): isEstablished = true
            case UInt8(ascii: "o"): isOver = true
            case UInt8(ascii: "d"): deadline = now + .milliseconds(200)
            default: note("heard \(bytes[index])")
            }
        }
    }

    func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .say(let count): output += [UInt8](repeating: 7, count: count)
        case .end: isOver = true
        }
        note("told")
    }

    func advance(to now: MonotonicTime) {
        note("due")
        deadline = nil
    }

    func takeOutput(waiting: Int) -> [UInt8] {
        defer { output = [] }
        return output
    }

    func lose(at now: MonotonicTime) { note("lost") }
}

/// A server's connections without its thread: their addresses and their times are a test's.
private final class Server {
    private let port: ListeningPort
    private let shared: StreamServerShared<Guest.Command>
    private var connections: StreamServerConnections<Guest>
    private let diary: Watched<[String]>

    var counters: StreamServerCounters { shared.counters.withLock { $0 } }
    var deadline: MonotonicTime? { connections.deadline }
    var events: [String] { diary.value }

    init(_ change: (inout StreamServerLimits) -> Void = { _ in }) throws {
        var limits = StreamServerLimits()
        change(&limits)
        let (diary, shared) = (Watched<[String]>([]), StreamServerShared<Guest.Command>())
        let port = try ListeningPort(TransportAddress(ip: .loopback, port: 0))
        self.diary = diary
        self.shared = shared
        self.port = port
        connections = StreamServerConnections<Guest>(of: port, shared: shared, limits: limits) {
            number, _, _ in Guest(number.value, diary)
        }
    }

    /// - Parameter host: of the documentation's network 198.51.100.0/24.
    func connect(_ host: UInt32, at milliseconds: Int64 = 0) throws -> StreamPair {
        try connect(from: IPAddress(ipv4: 0xC633_6400 | host), at: milliseconds)
    }

    func connect(from ip: IPAddress, at milliseconds: Int64 = 0) throws -> StreamPair {
        let pair = try StreamPair()
        let remote = TransportAddress(ip: ip, port: 50_000, transport: .tcp)
        let arrival = ConnectionArrival(descriptor: pair.inner, remote: remote)
        connections.admit(arrival, at: .zero + .milliseconds(milliseconds))
        return pair
    }

    func tell(_ command: Guest.Command, to number: UInt64) {
        shared.commands.withLock { $0.append((ConnectionNumber(value: number), command)) }
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

@Suite struct `The connections of a stream server` {
    private static func establish(_ pairs: [StreamPair], at server: Server) {
        for pair in pairs { pair.send("e") }
        server.turn()
    }

    @Test func `displace nobody for a client that has no room itself`() throws {
        let server = try Server { ($0.perAddress, $0.waiting, $0.waitingPerAddress) = (2, 2, 2) }
        let greedy = try [server.connect(1), server.connect(1)]
        Self.establish(greedy, at: server)
        let bystanders = try [server.connect(2), server.connect(3)]
        let refused = try server.connect(1)
        #expect(refused.hasEnded())
        #expect(bystanders.haveEnded() == [false, false] && greedy.haveEnded() == [false, false])
        #expect(server.counters.displaced == 0 && server.counters.refused == 1)
        // Who has room still displaces the oldest of all.
        let newcomer = try server.connect(4)
        #expect(bystanders[0].hasEnded() && !bystanders[1].hasEnded() && !newcomer.hasEnded())
        #expect(server.counters.displaced == 1 && server.counters.accepted == 5)
    }

    @Test func `displace the oldest of the client that has too many, not the oldest of all`() throws {
        let server = try Server { ($0.waiting, $0.waitingPerAddress) = (10, 2) }
        // Two hosts of one subscriber, whose addresses share their first 64 bits.
        let subscriber = (0..<3).map { IPAddress(high: 0x2001_0DB8_0000_0001, low: UInt64($0)) }
        let oldest = try server.connect(1)
        let first = try server.connect(from: subscriber[0])
        let second = try server.connect(from: subscriber[1])
        let third = try server.connect(from: subscriber[2])
        #expect(first.hasEnded())
        #expect([oldest, second, third].haveEnded() == [false, false, false])
        #expect(server.counters.displaced == 1)
        #expect(server.events == ["2 lost"])
    }

    @Test func `keep who is established, unless that conversation is over`() throws {
        let server = try Server { ($0.waiting, $0.waitingPerAddress) = (1, 1) }
        let settled = try server.connect(1)
        let ending = try server.connect(2)
        // Displaced before it could say anything.
        #expect(settled.hasEnded())
        Self.establish([ending], at: server)
        let waiting = try server.connect(3)
        #expect(!ending.hasEnded())
        ending.send("o")
        server.turn()
        waiting.send("e")
        server.turn()
        let newest = try server.connect(4)
        #expect(ending.hasEnded())
        #expect(!waiting.hasEnded() && !newest.hasEnded())
    }

    @Test func `give a displaced client's place to the one that displaced it`() throws {
        let server = try Server { ($0.total, $0.waiting) = (2, 2) }
        let first = try server.connect(1)
        let second = try server.connect(2)
        let third = try server.connect(3)
        #expect(first.hasEnded() && !second.hasEnded() && !third.hasEnded())
        Self.establish([second, third], at: server)
        let fourth = try server.connect(4)
        #expect(fourth.hasEnded())
        #expect(server.counters.refused == 1 && server.counters.displaced == 1)
    }

    @Test func `have two seconds to read why they end`() throws {
        let server = try Server()
        let pair = try server.connect(1)
        pair.send("o")
        server.turn(at: 1_000)
        server.tell(.say(3), to: 1)
        server.turn(at: 1_500)
        #expect(pair.receiveRaw() == [7, 7, 7])
        server.turn(at: 2_990)
        #expect(!pair.hasEnded())
        server.turn(at: 3_125)
        #expect(pair.hasEnded())
        #expect(server.events == ["1 told", "1 lost"])
    }

    @Test func `are heard no more once they are over, and go as soon as their clients do`() throws {
        let server = try Server()
        var pairs = try [server.connect(1)]
        pairs[0].send("ox")
        server.turn()
        pairs[0].send("yz")
        server.turn()
        #expect(server.events == ["1 heard \(UInt8(ascii: "x"))"])
        pairs.removeAll()
        server.turn()
        #expect(server.events.last == "1 lost")
        #expect(server.deadline == nil)
    }

    @Test(arguments: [(1_000, false), (1_001, true)])
    func `are closed when more waits for their clients than may`(count: Int, isClosed: Bool) throws {
        let server = try Server { $0.output = 1_000 }
        let pair = try server.connect(1)
        server.tell(.say(count), to: 1)
        server.turn()
        let found = pair.receiveRaw()
        #expect(found.count == (isClosed ? 0 : count))
        #expect(pair.hasEnded() == isClosed)
        #expect(server.events.contains("1 lost") == isClosed)
    }

    @Test func `send on what waited once their clients read`() throws {
        let server = try Server { $0.output = 4 << 20 }
        let pair = try server.connect(1)
        server.tell(.say(3 << 20), to: 1)
        server.turn()
        var count = 0
        for _ in 0..<200 where count < 3 << 20 {
            count += pair.receiveRaw().count
            server.turn()
        }
        #expect(count == 3 << 20)
        #expect(!pair.hasEnded())
    }

    @Test func `are looked at eight times a second, and no more once there are none`() throws {
        let server = try Server()
        #expect(server.deadline == nil)
        var pairs = try [server.connect(1, at: 1_000)]
        let first = MonotonicTime.zero + .milliseconds(1_125)
        #expect(server.deadline == first)
        pairs[0].send("d")
        server.turn(at: 1_010)
        server.turn(at: 1_124)
        // Due at 1,210, and looked at 1,125 and 1,250.
        server.turn(at: 1_125)
        server.turn(at: 1_249)
        #expect(server.events.isEmpty)
        server.turn(at: 1_250)
        #expect(server.events == ["1 due"])
        pairs.removeAll()
        server.turn(at: 1_300)
        #expect(server.deadline == nil)
        // The next one is looked at in time, however long there was none.
        let next = try server.connect(1, at: 60_000)
        let second = MonotonicTime.zero + .milliseconds(60_125)
        #expect(server.deadline == second)
        #expect(!next.hasEnded())
    }

    @Test func `are counted as of the last look`() throws {
        let server = try Server()
        let pairs = try (1...3).map { try server.connect($0) }
        pairs[0].send("eab")
        server.turn()
        #expect(server.counters.connections == 0 && server.counters.bytesIn == 3)
        server.turn(at: 125)
        let counters = server.counters
        #expect(counters.connections == 3 && counters.established == 1)
        #expect(counters.accepted == 3 && counters.bytesIn == 3)
    }

    @Test func `are told what is for them, in order, and nothing that is for others`() throws {
        let server = try Server()
        let first = try server.connect(1)
        let second = try server.connect(2)
        server.tell(.say(1), to: 2)
        server.tell(.say(1), to: 3)
        server.tell(.say(2), to: 1)
        server.tell(.say(4), to: 2)
        server.turn()
        #expect(first.receiveRaw().count == 2 && second.receiveRaw().count == 5)
        #expect(server.events == ["2 told", "1 told", "2 told"])
        // What was for nobody does not wait for somebody.
        let third = try server.connect(3)
        server.turn()
        #expect(third.receiveRaw().isEmpty)
    }

    @Test func `are all closed and told when the server stops`() throws {
        let server = try Server()
        let pairs = try (1...3).map { try server.connect($0) }
        server.stop()
        #expect(pairs.haveEnded() == [true, true, true])
        #expect(Set(server.events) == ["1 lost", "2 lost", "3 lost"])
    }
}
