import Base
import Synchronization

/// A TCP port, and a thread that finds out to which worker each connection belongs.
///
/// One port serves all workers, because it is one that operators have to open. A connection's first frame says whose
/// it is; the worker then gets the connection with what was read of it. Until then it costs a descriptor and at most
/// one frame of memory, and is closed after a few seconds, or before when too many wait.
package final class ConnectionListener: Sendable {
    /// Finds a worker for a connection by its first frame.
    /// - Returns: false if there is none: then the connection is closed.
    package typealias Placement = @Sendable (ConnectionHandover, _ firstFrame: [UInt8]) -> Bool

    private let shared = ListenerShared()
    private let thread: PortThread

    package convenience init(
        bind address: TransportAddress, limits: ConnectionLimits = ConnectionLimits(),
        place: @escaping Placement
    ) throws(NetError) {
        try self.init(from: .port(address), limits: limits, place: place)
    }

    package init(
        from source: ConnectionSource, limits: ConnectionLimits = ConnectionLimits(),
        place: @escaping Placement
    ) throws(NetError) {
        thread = try PortThread(try ListeningPort(source), name: "rostrum-tcp") { [shared] port in
            UnplacedConnections(of: port, shared: shared, limits: limits, place: place)
        }
    }

    /// Where it listens; the port is the real one.
    package var localAddress: TransportAddress { thread.localAddress }

    /// A copy; those of the listener's thread go on.
    package var counters: ListenerCounters { shared.counters.withLock { $0 } }

    /// Closes the port and every connection that has not been handed over.
    package func stop() { thread.stop() }
}

/// What a listener has done since its start.
package struct ListenerCounters: Equatable, Sendable {
    /// Taken from the kernel.
    package var accepted: UInt64 = 0
    /// Handed to a worker.
    package var placed: UInt64 = 0
    /// Closed at once, because there are too many.
    package var refused: UInt64 = 0
    /// Closed because newer ones wanted their place.
    package var displaced: UInt64 = 0
    /// Closed because their first frame did not come in time.
    package var expired: UInt64 = 0
    /// Closed by their clients before, or because what came names no session's worker.
    package var strange: UInt64 = 0
}

/// What a listener's thread and its owner share.
final class ListenerShared: Sendable {
    let counters = Mutex(ListenerCounters())
}
