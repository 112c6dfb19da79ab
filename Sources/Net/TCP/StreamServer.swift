import Base
import Synchronization

/// What is said on one TCP connection, in both directions; used by its server's thread alone.
package protocol StreamConversation: AnyObject, SendableMetatype {
    /// What others have to tell it.
    associatedtype Command: Sendable

    /// Whether it has come so far that its place is its own; until then it may lose it to newer ones.
    var isEstablished: Bool { get }
    /// Whether the connection is to be closed, once its output has left.
    var isOver: Bool { get }
    /// When `advance` has something to do, to a quarter of a second.
    var deadline: MonotonicTime? { get }
    func receive(_ bytes: Span<UInt8>, at now: MonotonicTime)
    func perform(_ command: Command, at now: MonotonicTime)
    func advance(to now: MonotonicTime)
    /// What is to be sent since the last call.
    ///
    /// A connection for which too much waits is closed; who says what can be left out leaves it out before.
    /// - Parameter waiting: bytes that the client has not read yet.
    func takeOutput(waiting: Int) -> [UInt8]
    /// The connection is gone: the other end closed it, it broke, or there was no place for it any longer.
    func lose(at now: MonotonicTime)
    /// Goes on with TLS that another thread began on its connection; comes first, if it comes.
    func resume(_ begun: BegunTLS, at now: MonotonicTime)
}

extension StreamConversation {
    /// Nobody begins TLS for those who speak none.
    package func resume(_ begun: BegunTLS, at now: MonotonicTime) {
        assertionFailure("this is no conversation by TLS")
    }
}

/// Names a connection of a server; never used twice.
package struct ConnectionNumber: Hashable, Sendable {
    package let value: UInt64
}

/// How many connections a server takes.
package struct StreamServerLimits: Sendable {
    /// Of all addresses.
    package var total = 256
    /// From one IPv4 address, or from one IPv6 network of 64 bits; see `ConnectionLimits`.
    package var perAddress = 64
    /// Of those that are not established; the oldest goes first.
    package var waiting = 64
    /// The same from one address.
    package var waitingPerAddress = 32
    /// Bytes that may wait for a client that does not read.
    package var output = 64 << 10

    package init() {}
}

/// A TCP port, and a thread on which everything is said that comes by it.
///
/// For protocols that are a conversation and not datagrams. It never blocks: a slow reader has a bounded queue, and a
/// slow writer costs one descriptor and what its conversation keeps.
package final class StreamServer<Conversation: StreamConversation>: Sendable {
    /// Makes a conversation, on the server's thread.
    package typealias Maker =
        @Sendable (ConnectionNumber, TransportAddress, MonotonicTime) -> Conversation

    private let shared = StreamServerShared<Conversation.Command>()
    private let thread: PortThread

    /// - Parameter name: of the thread, at most 15 bytes.
    package convenience init(
        bind address: TransportAddress, name: String, limits: StreamServerLimits = StreamServerLimits(),
        make: @escaping Maker
    ) throws(NetError) {
        try self.init(from: .port(address), name: name, limits: limits, make: make)
    }

    /// - Parameter name: of the thread, at most 15 bytes.
    package init(
        from source: ConnectionSource, name: String, limits: StreamServerLimits, make: @escaping Maker
    ) throws(NetError) {
        thread = try PortThread(try ListeningPort(source), name: name) { [shared] port in
            StreamServerConnections<Conversation>(of: port, shared: shared, limits: limits, make: make)
        }
    }

    /// Where it listens; the port is the real one.
    package var localAddress: TransportAddress { thread.localAddress }

    /// Tells a conversation something; nothing where its connection is gone.
    ///
    /// Whoever tells is bounded by the conversations that asked.
    package func tell(_ command: Conversation.Command, to connection: ConnectionNumber) {
        shared.commands.withLock { $0.append((connection, command)) }
        thread.wake()
    }

    /// A copy; those of the server's thread go on.
    package var counters: StreamServerCounters { shared.counters.withLock { $0 } }

    /// Closes the port and every connection.
    package func stop() { thread.stop() }
}

/// What a server has done since its start.
package struct StreamServerCounters: Equatable, Sendable {
    /// That are there now.
    package var connections = 0
    /// Of them, those that are established.
    package var established = 0
    /// Taken from the kernel.
    package var accepted: UInt64 = 0
    /// Closed at once, because there are too many.
    package var refused: UInt64 = 0
    /// Closed before they were established, because newer ones wanted their place.
    package var displaced: UInt64 = 0
    /// Received from all.
    package var bytesIn: UInt64 = 0

    package init() {}

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

/// What a server's thread and its owner share.
final class StreamServerShared<Command: Sendable>: Sendable {
    let counters = Mutex(StreamServerCounters())
    let commands = Mutex<[(ConnectionNumber, Command)]>([])
}
