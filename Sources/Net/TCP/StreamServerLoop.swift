import Base
import CLinux
import Glibc
import Synchronization

/// The loop of a stream server's thread.
struct StreamServerLoop<Conversation: StreamConversation>: ~Copyable {
    private typealias Connection = StreamServerConnection<Conversation>

    /// Between two looks at what came first.
    private static var acceptsPerTurn: Int { 32 }
    /// Between two looks at deadlines; half of what conversations count on.
    private static var lookInterval: Duration { .milliseconds(125) }
    /// How long to leave the port alone when there is no descriptor for one more connection.
    private static var pause: Duration { .milliseconds(200) }

    private let shared: StreamServerShared<Conversation.Command>
    private let events: TCPEvents
    private let limits: StreamServerLimits
    private let make: StreamServer<Conversation>.Maker
    private let quota: ConnectionQuota
    private var connections: [UInt32: Connection] = [:]
    private var tokens: [ConnectionNumber: UInt32] = [:]
    private var nextToken = StreamServerToken.first
    private var nextNumber: UInt64 = 0
    private var ready = [UInt32](repeating: 0, count: 64)
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var pausedUntil: MonotonicTime?
    private var nextLook = MonotonicTime.zero

    init(
        shared: StreamServerShared<Conversation.Command>, events: TCPEvents, limits: StreamServerLimits,
        make: @escaping StreamServer<Conversation>.Maker
    ) {
        self.shared = shared
        self.events = events
        self.limits = limits
        self.make = make
        quota = ConnectionQuota(
            total: limits.total, perAddress: limits.perAddress, share: limits.total / 2)
    }

    /// Runs until the server is stopped.
    mutating func run() {
        while !shared.isStopped.load(ordering: .acquiring) {
            let count = unsafe clinux_poll_wait_many(
                events.descriptor, &ready, Int32(clamping: ready.count), timeout())
            let now = MonotonicClock.now()
            for token in ready.prefix(Int(max(count, 0))) {
                switch token {
                case StreamServerToken.waker: shared.waker.clear()
                case StreamServerToken.socket: accept(at: now)
                default: read(token, at: now)
                }
            }
            performCommands(at: now)
            if now >= nextLook { look(at: now) }
            resume(at: now)
        }
        let now = MonotonicClock.now()
        for token in Array(connections.keys) { forget(token, at: now) }
    }

    /// In nanoseconds; negative for as long as it takes.
    private func timeout() -> Int64 {
        var next = connections.isEmpty ? nil : nextLook
        if let pausedUntil { next = min(next ?? pausedUntil, pausedUntil) }
        return next.map { max($0.nanoseconds(since: MonotonicClock.now()), 0) } ?? -1
    }

    // MARK: Accepting

    private mutating func accept(at now: MonotonicTime) {
        for _ in 0..<Self.acceptsPerTurn {
            var remote = clinux_address()
            let descriptor = unsafe clinux_tcp_accept(shared.socket.descriptor, &remote)
            switch -descriptor {
            case EAGAIN, EWOULDBLOCK: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseListening(at: now)
            // One that was given up before it was accepted; the next may be well.
            case 1...: continue
            default: admit(descriptor, TransportAddress(remote).over(.tcp), at: now)
            }
        }
    }

    private mutating func admit(_ descriptor: Int32, _ remote: TransportAddress, at now: MonotonicTime) {
        displace(for: remote.ip, at: now)
        guard quota.take(remote.ip) else {
            // Counted first: who sees that it was closed finds it counted.
            count { $0.refused &+= 1 }
            return clinux_close(descriptor)
        }
        let accepted = AcceptedConnection(descriptor: descriptor, remote: remote, quotas: [quota])
        let token = freeToken()
        guard clinux_poll_set(events.descriptor, descriptor, token, 0, 1) == 0 else {
            return count { $0.refused &+= 1 }
        }
        if connections.isEmpty { nextLook = now + Self.lookInterval }
        nextNumber &+= 1
        let number = ConnectionNumber(value: nextNumber)
        connections[token] = Connection(
            accepted, number: number, conversation: make(number, remote, now), outputLimit: limits.output)
        tokens[number] = token
        count { $0.accepted &+= 1 }
    }

    /// Makes room among those that are not established, the oldest first.
    private mutating func displace(for address: IPAddress, at now: MonotonicTime) {
        let waiting = connections.filter { !$0.value.isSettled }
        let network = ClientNetwork.all(of: address).first
        let same = waiting.filter { ClientNetwork.all(of: $0.value.remote.ip).first == network }
        let crowd =
            same.count >= limits.waitingPerAddress
            ? same : waiting.count >= limits.waiting ? waiting : [:]
        guard let oldest = crowd.min(by: { $0.value.number.value < $1.value.number.value })?.key else {
            return
        }
        count { $0.displaced &+= 1 }
        forget(oldest, at: now)
    }

    private mutating func freeToken() -> UInt32 {
        repeat {
            nextToken = nextToken == .max ? StreamServerToken.first : nextToken + 1
        } while connections[nextToken] != nil
        return nextToken
    }

    /// Without this, a port that cannot be served would keep the thread busy.
    private mutating func pauseListening(at now: MonotonicTime) {
        guard pausedUntil == nil else { return }
        pausedUntil = now + Self.pause
        _ = clinux_poll_forget(events.descriptor, shared.socket.descriptor)
    }

    private mutating func resume(at now: MonotonicTime) {
        guard let until = pausedUntil, until <= now else { return }
        pausedUntil = nil
        _ = clinux_poll_set(events.descriptor, shared.socket.descriptor, StreamServerToken.socket, 0, 1)
    }

    // MARK: Conversations

    private mutating func read(_ token: UInt32, at now: MonotonicTime) {
        guard let connection = connections[token] else { return }
        let received = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_receive(
                    connection.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        if received > 0 {
            count { $0.bytesIn &+= UInt64(received) }
            // What comes after the end is read all the same: a close with unread bytes would reset the connection, and
            // the client would not hear why it ended.
            if !connection.conversation.isOver {
                connection.conversation.receive(input.span.extracting(0..<received), at: now)
            }
        } else if received != -Int(EAGAIN) {
            return forget(token, at: now)
        }
        settle(connection, token, at: now)
    }

    private mutating func performCommands(at now: MonotonicTime) {
        let commands = shared.commands.withLock { commands in
            defer { commands.removeAll() }
            return commands
        }
        for (number, command) in commands {
            guard let token = tokens[number], let connection = connections[token] else { continue }
            connection.conversation.perform(command, at: now)
            settle(connection, token, at: now)
        }
    }

    private mutating func look(at now: MonotonicTime) {
        nextLook = now + Self.lookInterval
        for (token, connection) in connections {
            if let due = connection.conversation.deadline, due <= now {
                connection.conversation.advance(to: now)
            }
            settle(connection, token, at: now)
        }
        count { [connections] counters in
            counters.connections = connections.count
            counters.established = connections.values.count { $0.conversation.isEstablished }
        }
    }

    /// Sends what there is to be sent, and closes what is over.
    private mutating func settle(_ connection: Connection, _ token: UInt32, at now: MonotonicTime) {
        guard connection.flush(on: events, token, at: now), !connection.isDone(at: now) else {
            return forget(token, at: now)
        }
    }

    private mutating func forget(_ token: UInt32, at now: MonotonicTime) {
        guard let connection = connections.removeValue(forKey: token) else { return }
        tokens[connection.number] = nil
        _ = clinux_poll_forget(events.descriptor, connection.descriptor)
        connection.conversation.lose(at: now)
    }

    private func count(_ change: (inout StreamServerCounters) -> Void) {
        shared.counters.withLock { change(&$0) }
    }
}

/// One connection of a stream server.
private final class StreamServerConnection<Conversation: StreamConversation> {
    /// A client that is told why it ends has so long to read it and hang up.
    private static var farewell: Duration { .seconds(2) }

    let number: ConnectionNumber
    let conversation: Conversation
    private let accepted: AcceptedConnection
    private let outputLimit: Int
    private var output: [UInt8] = []
    private var watchesWritable = false
    private var closesAt: MonotonicTime?

    init(
        _ accepted: AcceptedConnection, number: ConnectionNumber, conversation: Conversation, outputLimit: Int
    ) {
        self.accepted = accepted
        self.number = number
        self.conversation = conversation
        self.outputLimit = outputLimit
    }

    var descriptor: Int32 { accepted.descriptor }
    var remote: TransportAddress { accepted.remote }
    /// Whether it keeps its place.
    var isSettled: Bool { conversation.isEstablished && !conversation.isOver }

    /// Sends as much as the kernel takes.
    /// - Returns: false if the connection is broken, or its client does not read.
    func flush(on events: TCPEvents, _ token: UInt32, at now: MonotonicTime) -> Bool {
        output += conversation.takeOutput()
        guard output.count <= outputLimit else { return false }
        while !output.isEmpty {
            let sent = unsafe output.withUnsafeBytes { buffer in
                unsafe Int(
                    clinux_stream_send(descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
            }
            if sent > 0 {
                output.removeFirst(sent)
            } else if sent == 0 || sent == -Int(EAGAIN) || sent == -Int(ENOBUFS) {
                break
            } else {
                return false
            }
        }
        if watchesWritable == output.isEmpty {
            watchesWritable = !output.isEmpty
            _ = clinux_poll_set(events.descriptor, descriptor, token, watchesWritable ? 1 : 0, 0)
        }
        return true
    }

    /// Whether it is to be closed now.
    func isDone(at now: MonotonicTime) -> Bool {
        guard conversation.isOver else { return false }
        let end = closesAt ?? now + Self.farewell
        closesAt = end
        return now >= end
    }
}
