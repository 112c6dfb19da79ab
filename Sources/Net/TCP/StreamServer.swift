import Base
import Synchronization

/// The protocol logic of one TCP connection; used by its server's thread only.
package protocol StreamConversation: AnyObject, SendableMetatype {
    /// What other threads can ask of it.
    associatedtype Command: Sendable

    /// Whether the connection has proven itself and keeps its place; until then newer connections may displace it.
    var isEstablished: Bool { get }
    /// Whether the connection is to be closed once its output has been sent.
    var isOver: Bool { get }
    /// When `advance` has to be called next; kept with an accuracy of a quarter of a second.
    ///
    /// Nil if nothing is scheduled.
    var deadline: MonotonicTime? { get }
    /// Receives bytes of the stream, which may end anywhere in a message.
    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime)
    /// Performs a command.
    func perform(_ command: Command, at now: MonotonicTime)
    /// Does what is due.
    func advance(to now: MonotonicTime)
    /// Takes the output produced since the last call.
    ///
    /// A connection with too much waiting output is closed. A conversation that can leave something out must do so
    /// before.
    /// - Parameter waiting: bytes taken earlier that the client has not accepted yet.
    func takeOutput(waiting: Int) -> [UInt8]
    /// The connection is gone: the other end closed it, it broke, or its place was needed.
    func lose(at now: MonotonicTime)
    /// Continues TLS that another thread began on the connection; if it is called at all, it is called first.
    func resume(_ begun: BegunTLS, at now: MonotonicTime)
}

extension StreamConversation {
    /// By default a conversation is not over TLS, so no thread can have begun TLS for it.
    package func resume(_ begun: BegunTLS, at now: MonotonicTime) {
        assertionFailure("this is no conversation by TLS")
    }
}

/// Identifies a connection of a server; never reused.
package struct ConnectionNumber: Hashable, Sendable {
    /// Counts from 1 in the order of acceptance.
    package let value: UInt64
}

/// Limits on a server's connections.
package struct StreamServerLimits: Sendable {
    /// Connections over all addresses.
    package var total = 256
    /// Connections from one IPv4 address or one IPv6 /64; see `ConnectionLimits`.
    package var perAddress = 64
    /// Connections that are not established yet; beyond that the oldest is closed.
    package var waiting = 64
    /// Connections from one address that are not established yet.
    package var waitingPerAddress = 32
    /// Bytes that may wait for a client that does not read.
    package var output = 64 << 10

    /// The limits of a small server.
    package init() {}
}

/// A TCP port, and a thread that runs a conversation on each of its connections.
///
/// For protocols that are streams and not datagrams. The thread never blocks: the queue for a slow reader is bounded,
/// and a slow writer costs one descriptor and what its conversation stores.
package final class StreamServer<Conversation: StreamConversation>: Sendable {
    /// Makes the conversation of an accepted connection, on the server's thread.
    package typealias Maker =
        @Sendable (ConnectionNumber, TransportAddress, MonotonicTime) -> Conversation

    private let shared = StreamServerShared<Conversation.Command>()
    private let thread: PortThread

    /// Opens a port of its own.
    ///
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - make: makes the conversation of each connection.
    /// - Throws: if the port cannot be bound, or the system has no descriptor or thread left.
    package convenience init(
        bind address: TransportAddress, name: String, limits: StreamServerLimits = StreamServerLimits(),
        make: @escaping Maker
    ) throws(NetError) {
        try self.init(from: .port(address), name: name, limits: limits, make: make)
    }

    /// Serves a port of its own, or connections that a mixed port passes on.
    ///
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - make: makes the conversation of each connection.
    package init(
        from source: ConnectionSource, name: String, limits: StreamServerLimits, make: @escaping Maker
    ) throws(NetError) {
        thread = try PortThread(try ListeningPort(source), name: name) { [shared] port in
            StreamServerConnections<Conversation>(of: port, shared: shared, limits: limits, make: make)
        }
    }

    /// Where it listens, with the actual port.
    package var localAddress: TransportAddress { thread.localAddress }

    /// Sends a command to a conversation; drops it if the connection is gone.
    ///
    /// The queue has no limit of its own: commands are answers to what conversations asked.
    package func tell(_ command: Conversation.Command, to connection: ConnectionNumber) {
        shared.commands.withLock { $0.append((connection, command)) }
        thread.wake()
    }

    /// A copy of the counters, up to about 125 ms old.
    package var counters: StreamServerCounters { shared.counters.withLock { $0 } }

    /// Closes the port and every connection, and waits for that.
    package func stop() { thread.stop() }
}

/// What a server has done since its start.
package struct StreamServerCounters: Equatable, Sendable {
    /// Connections open now.
    package var connections = 0
    /// Connections that are established now.
    package var established = 0
    /// Connections accepted.
    package var accepted: UInt64 = 0
    /// Connections closed immediately because there were too many.
    package var refused: UInt64 = 0
    /// Connections closed before they were established, to make room for newer ones.
    package var displaced: UInt64 = 0
    /// Bytes received over all connections.
    package var bytesIn: UInt64 = 0

    /// All zero.
    package init() {}

    /// The sums of two servers' counts.
    package static func + (one: Self, other: Self) -> Self {
        var sum = one
        sum.connections += other.connections
        sum.established += other.established
        sum.accepted &+= other.accepted
        sum.refused &+= other.refused
        sum.displaced &+= other.displaced
        sum.bytesIn &+= other.bytesIn
        return sum
    }
}

/// State shared by a server's thread and its owner.
final class StreamServerShared<Command: Sendable>: Sendable {
    let counters = Mutex(StreamServerCounters())
    let commands = Mutex<[(ConnectionNumber, Command)]>([])
}
