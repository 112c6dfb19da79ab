import Base
import Synchronization

/// A TCP port for media, and a thread that finds the worker to which each connection belongs.
///
/// One port serves all workers, because operators have to open each port. The first frame of a connection (RFC 4571)
/// names the session, and the worker receives the connection with the bytes that were read. Until then a connection
/// costs a descriptor and at most one frame of memory. It is closed after a few seconds, or earlier if too many wait.
package final class ConnectionListener: Sendable {
    /// Hands a connection to the worker that its first frame belongs to; called on the listener's thread.
    /// - Returns: false if there is no such worker; the connection is then closed.
    package typealias Placement = @Sendable (ConnectionHandover, _ firstFrame: [UInt8]) -> Bool

    private let shared = ListenerShared()
    private let thread: PortThread

    /// Opens a port of its own.
    /// - Parameter place: finds the worker of each connection.
    /// - Throws: if the port cannot be bound, or the system has no descriptor or thread left.
    package convenience init(
        bind address: TransportAddress, limits: ConnectionLimits = ConnectionLimits(),
        place: @escaping Placement
    ) throws(NetError) {
        try self.init(from: .port(address), limits: limits, place: place)
    }

    /// Serves a port of its own, or connections that a mixed port passes on.
    package init(
        from source: ConnectionSource, limits: ConnectionLimits = ConnectionLimits(),
        place: @escaping Placement
    ) throws(NetError) {
        thread = try PortThread(try ListeningPort(source), name: "rostrum-tcp") { [shared] port in
            UnplacedConnections(of: port, shared: shared, limits: limits, place: place)
        }
    }

    /// Where it listens, with the actual port.
    package var localAddress: TransportAddress { thread.localAddress }

    /// A copy of the counters.
    package var counters: ListenerCounters { shared.counters.withLock { $0 } }

    /// Closes the port and every connection that has not been handed over.
    package func stop() { thread.stop() }
}

/// What a listener has done since its start.
package struct ListenerCounters: Equatable, Sendable {
    /// Connections accepted.
    package var accepted: UInt64 = 0
    /// Connections handed to a worker.
    package var placed: UInt64 = 0
    /// Connections closed immediately because there were too many.
    package var refused: UInt64 = 0
    /// Connections closed to make room for newer ones.
    package var displaced: UInt64 = 0
    /// Connections closed because their first frame did not arrive in time.
    package var expired: UInt64 = 0
    /// Connections closed by their clients before, or because their first frame belongs to no session's worker.
    package var strange: UInt64 = 0
}

/// State shared by a listener's thread and its owner.
final class ListenerShared: Sendable {
    let counters = Mutex(ListenerCounters())
}
