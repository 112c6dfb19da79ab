import Base
import CLinux
import Glibc
import TestSupport
import Testing
import Wire

@testable import Net

/// The sockets of some clients, and a remote that sends to them.
private final class Clients {
    /// More than are looked at in one go.
    static let count = SocketRound.stretch + 22

    let waker: Waker
    let sockets: ClientSockets
    private(set) var members: [Int: DatagramSocket] = [:]
    /// Numbers of the datagrams, by token.
    private(set) var sent: [Int: [Int]] = [:]
    private(set) var received: [Int: [Int]] = [:]
    private var last = 0
    private var remote: Remote
    private var arrivals = ReceiveBatch(coalesces: false)
    private var counters = TrafficCounters()

    init(_ count: Int = Clients.count) throws {
        waker = try Waker()
        sockets = try ClientSockets(waker: waker)
        remote = try Remote()
        for token in 0..<count { try add(token) }
    }

    func add(_ token: Int) throws {
        let socket = try DatagramSocket(
            bind: TransportAddress(ip: .loopback, port: 0), bufferBytes: 1 << 16, coalescing: false)
        try #require(sockets.add(.datagram(socket), token: token))
        members[token] = socket
        (sent[token], received[token]) = ([], [])
    }

    func remove(_ token: Int) {
        sockets.remove(token: token)
        members[token] = nil
        (sent[token], received[token]) = (nil, nil)
    }

    func send(to token: Int) {
        guard let address = members[token]?.localAddress else { return }
        last += 1
        remote.send([datagram(last, size: 40)], to: address)
        sent[token]?.append(last)
    }

    func sendToAll() {
        for token in members.keys { send(to: token) }
    }

    /// Reads what one look finds.
    /// - Returns: which sockets had something, and whether a round is over.
    func look() -> (found: [Int], isOver: Bool) {
        var found: [Int] = []
        let isOver = sockets.look { found.append(read($0)) }
        return (found, isOver)
    }

    /// Reads what a round finds.
    func lookAtAll() -> [Int] {
        var found: [Int] = []
        for _ in 0..<3 {
            let next = look()
            found += next.found
            if next.isOver { return found }
        }
        Issue.record("a round that does not end")
        return found
    }

    /// Reads all that is told of without waiting.
    func wait() -> [Int] {
        var found: [Int] = []
        var before = -1
        while before < found.count {
            before = found.count
            _ = sockets.wait(nanoseconds: 0) { found.append(read($0)) }
        }
        return found
    }

    private func read(_ token: Int) -> Int {
        guard let socket = sockets[token] else {
            Issue.record("told of \(token), which is not there")
            return token
        }
        var mayHaveMore = true
        while mayHaveMore {
            mayHaveMore = arrivals.fill(from: socket, counting: &counters)
            arrivals.forEach(counting: &counters) { bytes, _, _ in
                received[token]?.append((0..<4).reduce(0) { $0 << 8 | Int(bytes[$1]) })
            }
        }
        return token
    }
}

@Suite struct `Sockets of clients` {
    @Test func `are told of by one way only, with what came before the change`() throws {
        let clients = try Clients()
        clients.sendToAll()
        clients.sockets.stopWatching()
        #expect(clients.wait().isEmpty)
        #expect(clients.lookAtAll().sorted() == Array(0..<Clients.count))
        clients.sendToAll()
        clients.sockets.startWatching()
        #expect(clients.lookAtAll().isEmpty)
        #expect(clients.wait().sorted() == Array(0..<Clients.count))
        #expect(clients.received == clients.sent)
    }

    @Test func `have their turns, some at a time`() throws {
        let clients = try Clients()
        clients.sockets.stopWatching()
        clients.sendToAll()
        let first = clients.look()
        #expect(first.found.count == SocketRound.stretch && !first.isOver)
        // Those that had their turn do not have another before all others had theirs.
        for token in first.found { clients.send(to: token) }
        let second = clients.look()
        #expect(second.isOver)
        #expect(Set(first.found).union(second.found).count == Clients.count)
        #expect(clients.lookAtAll().sorted() == first.found.sorted())
    }

    @Test func `have their turns also when others leave`() throws {
        let clients = try Clients()
        clients.sockets.stopWatching()
        let first = clients.look()
        #expect(first.found.isEmpty && !first.isOver)
        clients.sendToAll()
        // All that were looked at, and some that were not.
        for token in 0..<(Clients.count - 10) { clients.remove(token) }
        #expect(Set(clients.lookAtAll() + clients.lookAtAll()) == Set(clients.members.keys))
        for token in clients.members.keys { clients.remove(token) }
        #expect(clients.lookAtAll().isEmpty)
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `lose nothing, whatever changes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let clients = try Clients()
        for _ in 0..<600 {
            let token = Int.random(in: 0..<Clients.count, using: &random)
            switch Int.random(in: 0..<16, using: &random) {
            case 0: clients.sockets.stopWatching()
            case 1: clients.sockets.startWatching()
            case 2: clients.remove(token)
            case 3, 4: if clients.members[token] == nil { try clients.add(token) }
            case 5: _ = clients.wait()
            case 6, 7: _ = clients.look()
            default: clients.send(to: token)
            }
        }
        // Each socket is told of, as things are and in both ways.
        for isWatched in [clients.sockets.isWatching, true, false] {
            if isWatched { clients.sockets.startWatching() } else { clients.sockets.stopWatching() }
            clients.sendToAll()
            _ = isWatched ? clients.wait() : clients.lookAtAll() + clients.lookAtAll()
            #expect(clients.received == clients.sent)
        }
    }

    @Test func `leave wake-ups and streams to be waited for while they are looked at`() throws {
        let clients = try Clients(3)
        let listener = try ListeningPort(TransportAddress(ip: .loopback, port: 0))
        let stream = try StreamSocket(connect: listener.localAddress)
        #expect(clients.sockets.add(.stream(stream), token: 7))
        var remote = clinux_address()
        let accepted = listener.accept(&remote)
        try #require(accepted >= 0)
        defer { clinux_close(accepted) }
        clients.sockets.stopWatching()
        let (high, low) = try #require(FrameReader.header(length: 2))
        let frame = [high, low, 1, 2]
        #expect(clinux_stream_send(accepted, frame, Int32(frame.count)) == 4)
        clients.waker.wake()
        var datagrams: [[UInt8]] = []
        var isAwake = false
        // Both come at once, but the connection may be told of before, as one that can be read now.
        while datagrams.isEmpty || !isAwake {
            let isWoken = clients.sockets.wait(nanoseconds: nil) { token in
                #expect(token == 7)
                clients.sockets.readStream(token) { bytes, _ in
                    datagrams.append(bytes.withUnsafeBytes { Array($0) })
                }
            }
            isAwake = isAwake || isWoken
        }
        #expect(datagrams == [[1, 2]])
        #expect(clients.lookAtAll().isEmpty)
    }
}
