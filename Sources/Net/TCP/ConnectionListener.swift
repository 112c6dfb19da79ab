import Base
import CLinux
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

    /// Where it listens; the port is the real one.
    package let localAddress: TransportAddress
    private let shared: ListenerShared
    private let thread: NativeThread

    package init(
        bind address: TransportAddress, limits: ConnectionLimits = ConnectionLimits(),
        place: @escaping Placement
    ) throws(NetError) {
        let socket = try ListenSocket(address.over(.tcp))
        let shared = ListenerShared(socket: socket, waker: try Waker())
        let events = try TCPEvents()
        for (token, descriptor) in [
            (ListenerLoop.wakerToken, shared.waker.descriptor), (ListenerLoop.socketToken, socket.descriptor),
        ] {
            let result = clinux_poll_set(events.descriptor, descriptor, token, 0, 1)
            guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
        }
        self.shared = shared
        localAddress = socket.localAddress
        thread = try NativeThread(name: "rostrum-tcp", cpu: nil) {
            var loop = ListenerLoop(shared: shared, events: events, limits: limits, place: place)
            loop.run()
        }
    }

    deinit {
        requestStop()
    }

    /// A copy; those of the listener's thread go on.
    package var counters: ListenerCounters { shared.counters.withLock { $0 } }

    private func requestStop() {
        shared.isStopped.store(true, ordering: .releasing)
        shared.waker.wake()
    }

    /// Closes the port and every connection that has not been handed over.
    package func stop() {
        requestStop()
        thread.join()
    }
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
    let socket: ListenSocket
    let waker: Waker
    let isStopped = Atomic(false)
    let counters = Mutex(ListenerCounters())

    init(socket: ListenSocket, waker: Waker) {
        self.socket = socket
        self.waker = waker
    }
}

/// A listening TCP socket; closed when its last owner is gone.
final class ListenSocket: Sendable {
    private static let backlog: Int32 = 512

    let descriptor: Int32
    let localAddress: TransportAddress

    init(_ address: TransportAddress) throws(NetError) {
        descriptor = clinux_tcp_listen(clinux_address(address), Self.backlog)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        var bound = clinux_address()
        let result = unsafe clinux_local_address(descriptor, &bound)
        localAddress = TransportAddress(bound).over(.tcp)
        guard result == 0 else { throw NetError(binding: address, code: -result) }
    }

    deinit {
        if descriptor >= 0 { clinux_close(descriptor) }
    }
}
