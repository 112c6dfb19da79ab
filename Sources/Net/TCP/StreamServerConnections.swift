import Base
import CLinux
import Glibc
import Synchronization

/// The connections of a stream server and their conversations; used by the server's thread only.
struct StreamServerConnections<Conversation: StreamConversation>: PortHandler, ~Copyable {
    private typealias Connection = StreamServerConnection<Conversation>

    /// Between two checks of deadlines: half of the accuracy that `StreamConversation.deadline` promises.
    private static var lookInterval: Duration { .milliseconds(125) }

    private let port: ListeningPort
    private let shared: StreamServerShared<Conversation.Command>
    private let limits: StreamServerLimits
    private let make: StreamServer<Conversation>.Maker
    private let quota: ConnectionQuota
    private var connections: ConnectionTable<Connection>
    private var tokens: [ConnectionNumber: UInt32] = [:]
    private var nextNumber: UInt64 = 0
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var nextLook = MonotonicTime.zero

    init(
        of port: ListeningPort, shared: StreamServerShared<Conversation.Command>, limits: StreamServerLimits,
        make: @escaping StreamServer<Conversation>.Maker
    ) {
        self.port = port
        self.shared = shared
        self.limits = limits
        self.make = make
        quota = ConnectionQuota(
            total: limits.total, perAddress: limits.perAddress, share: limits.total / 2)
        connections = ConnectionTable(of: port)
    }

    var deadline: MonotonicTime? { connections.all.isEmpty ? nil : nextLook }

    mutating func endTurn(at now: MonotonicTime) {
        performCommands(at: now)
        if now >= nextLook { look(at: now) }
    }

    mutating func stop(at now: MonotonicTime) {
        for token in connections.all.keys { forget(token, at: now) }
    }

    // MARK: Coming and going

    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime) {
        let (descriptor, remote) = (arrival.descriptor, arrival.remote)
        displace(for: remote.ip, at: now)
        guard quota.take(remote.ip) else {
            // Counted before the close: a client that sees the close finds it counted.
            count { $0.refused &+= 1 }
            return clinux_close(descriptor)
        }
        let accepted = AcceptedConnection(descriptor: descriptor, remote: remote, quotas: [quota])
        let wasEmpty = connections.all.isEmpty
        nextNumber &+= 1
        let number = ConnectionNumber(value: nextNumber)
        let token = connections.add(descriptor) { [make, limits] in
            Connection(
                accepted, number: number, conversation: make(number, remote, now), outputLimit: limits.output)
        }
        guard let token else { return withExtendedLifetime(accepted) { count { $0.refused &+= 1 } } }
        if wasEmpty { nextLook = now + Self.lookInterval }
        tokens[number] = token
        count { $0.accepted &+= 1 }
        guard let begun = arrival.begunTLS, let connection = connections[token] else { return }
        connection.conversation.resume(begun, at: now)
        settle(connection, token, at: now)
    }

    /// Closes the oldest connection that is not established, if there are too many of those.
    ///
    /// An address with too many loses one of its own, and one that will be refused loses none, so that neither can
    /// displace other clients.
    private mutating func displace(for address: IPAddress, at now: MonotonicTime) {
        let waiting = connections.all.filter { !$0.value.isSettled }
        let network = ClientNetwork.all(of: address).first
        let same = waiting.filter { ClientNetwork.all(of: $0.value.remote.ip).first == network }
        let crowd =
            same.count >= limits.waitingPerAddress
            ? same : waiting.count >= limits.waiting && quota.isOpen(to: address) ? waiting : [:]
        guard let oldest = crowd.min(by: { $0.value.number.value < $1.value.number.value })?.key else {
            return
        }
        count { $0.displaced &+= 1 }
        forget(oldest, at: now)
    }

    /// Closes a connection by releasing it, and notifies its conversation.
    private mutating func forget(_ token: UInt32, at now: MonotonicTime) {
        guard let descriptor = connections[token]?.descriptor,
            let connection = connections.remove(token, descriptor)
        else { return }
        tokens[connection.number] = nil
        connection.conversation.lose(at: now)
    }

    // MARK: Conversations

    mutating func serve(_ token: UInt32, at now: MonotonicTime) {
        guard let connection = connections[token] else { return }
        let received = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_receive(
                    connection.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        if received > 0 {
            count { $0.bytesIn &+= UInt64(received) }
            // Input after the end is read and ignored: closing a socket with unread bytes would reset the connection,
            // and the client would not receive the reason for the end.
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

    /// Checks deadlines, and copies the counts of connections.
    private mutating func look(at now: MonotonicTime) {
        nextLook = now + Self.lookInterval
        for (token, connection) in connections.all {
            if let due = connection.conversation.deadline, due <= now {
                connection.conversation.advance(to: now)
            }
            settle(connection, token, at: now)
        }
        count { [connections = connections.all.values] counters in
            counters.connections = connections.count
            counters.established = connections.count { $0.conversation.isEstablished }
        }
    }

    /// Sends pending output, and closes the connection if it is over, broken or too slow.
    private mutating func settle(_ connection: Connection, _ token: UInt32, at now: MonotonicTime) {
        guard connection.flush(on: port, token, at: now), !connection.isDone(at: now) else {
            return forget(token, at: now)
        }
    }

    private func count(_ change: (inout StreamServerCounters) -> Void) {
        shared.counters.withLock { change(&$0) }
    }
}

/// One connection of a stream server.
private final class StreamServerConnection<Conversation: StreamConversation> {
    /// How long a client has to read why the connection ends and to close its own side.
    private static var farewell: Duration { .seconds(2) }

    let number: ConnectionNumber
    let conversation: Conversation
    private let accepted: AcceptedConnection
    private let outputLimit: Int
    private var output: [UInt8] = []
    private var watchesWritable = false
    /// When to close although the client has not; nil while the conversation goes on.
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
    /// Whether it keeps its place when newer connections arrive.
    var isSettled: Bool { conversation.isEstablished && !conversation.isOver }

    /// Sends as much as the kernel accepts.
    /// - Returns: false if the connection is broken, or too much output waits for its client.
    func flush(on port: ListeningPort, _ token: UInt32, at now: MonotonicTime) -> Bool {
        output += conversation.takeOutput(waiting: output.count)
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
        // Room to write is watched only while output waits; otherwise epoll would report it all the time.
        if watchesWritable == output.isEmpty {
            watchesWritable = !output.isEmpty
            port.watch(descriptor, as: token, forWriting: watchesWritable)
        }
        return true
    }

    /// Whether to close it now.
    ///
    /// The first call after the end of the conversation starts the farewell time.
    func isDone(at now: MonotonicTime) -> Bool {
        guard conversation.isOver else { return false }
        let end = closesAt ?? now + Self.farewell
        closesAt = end
        return now >= end
    }
}
