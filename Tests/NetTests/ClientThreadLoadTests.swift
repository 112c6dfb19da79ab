import Base
import Dispatch
import Synchronization
import Testing

@testable import Net

/// What a client thread's handler saw.
private final class Diary: Sendable {
    struct State {
        /// Numbers of datagrams by token.
        var received: [Int: [Int]] = [:]
        var datagrams = 0
        /// How often the thread began to watch its sockets, or stopped to.
        var changes = 0
    }

    private let state = Mutex(State())
    private let news = DispatchSemaphore(value: 0)

    func note(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        news.signal()
    }

    var received: [Int: [Int]] { state.withLock(\.received) }
    var changes: Int { state.withLock(\.changes) }

    /// Waits until something is so; false if it is not for two minutes.
    func wait(_ isSo: (State) -> Bool) -> Bool {
        let end = DispatchTime.now() + 120
        while !state.withLock({ isSo($0) }) {
            guard news.wait(timeout: end) == .success else { return false }
        }
        return true
    }
}

/// Writes down what comes.
private struct Writer: ClientHandler {
    enum Command: Sendable {
        case add(DatagramSocket, token: Int)
        case remove(Int)
    }

    let sockets: ClientSockets
    let diary: Diary
    private var isWatching = true

    init(_ start: ClientStart, diary: Diary) {
        sockets = start.sockets
        self.diary = diary
    }

    mutating func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .add(let socket, let token): #expect(sockets.add(.datagram(socket), token: token))
        case .remove(let token): sockets.remove(token: token)
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    ) {
        let number = (0..<4).reduce(0) { $0 << 8 | Int(datagram[$1]) }
        diary.note {
            $0.received[token, default: []].append(number)
            $0.datagrams += 1
        }
    }

    /// Always due: it sees every turn, and misses no change.
    var deadline: MonotonicTime? { .zero }

    mutating func advance(to now: MonotonicTime) {
        guard isWatching != sockets.isWatching else { return }
        isWatching.toggle()
        diary.note { $0.changes += 1 }
    }

    mutating func stop(at now: MonotonicTime) {}
}

@Suite struct `A thread of clients under load` {
    @Test func `loses nothing when that comes and goes, and sockets meanwhile`() throws {
        let diary = Diary()
        // One datagram is load.
        var limits = LoadGauge.Limits()
        (limits.rate, limits.window, limits.patience) = (0, 1_000_000, 3_000_000)
        let thread = try ClientThread<Writer>(name: "client", cpu: nil, coalesces: false, limits: limits) {
            Writer($0, diary: diary)
        }
        var remote = try Remote()
        var sent: [Int: [Int]] = [:]
        var members: [Int: DatagramSocket] = [:]
        var total = 0
        func add(_ token: Int) throws {
            let socket = try DatagramSocket(
                bind: TransportAddress(ip: .loopback, port: 0), bufferBytes: 1 << 16, coalescing: false)
            members[token] = socket
            #expect(thread.post(.add(socket, token: token)))
        }
        func sendToAll() {
            for (token, socket) in members {
                total += 1
                remote.send([datagram(total, size: 40)], to: socket.localAddress)
                sent[token, default: []].append(total)
            }
        }

        for token in 0..<20 { try add(token) }
        for turn in 0..<10 {
            let before = diary.changes
            sendToAll()
            try #require(diary.wait { $0.changes > before })
            sendToAll()
            try #require(diary.wait { $0.datagrams == total })
            members[turn] = nil
            #expect(thread.post(.remove(turn)))
            try add(20 + turn)
            sendToAll()
            // It is over by itself, whatever came at that very moment.
            try #require(diary.wait { $0.changes >= before + 2 && $0.changes.isMultiple(of: 2) })
        }
        sendToAll()
        try #require(diary.wait { $0.datagrams == total })
        thread.stop()
        #expect(diary.received == sent)
    }
}
