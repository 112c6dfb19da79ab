import Base
import CLinux
import Synchronization

/// A connection received by a port; its current owner must close the descriptor or pass it on.
package struct ConnectionArrival: Sendable {
    let descriptor: Int32
    /// The address of its other end.
    let remote: TransportAddress
    /// TLS that a mixed port had to begin to find out what the connection is for; nil if it did not.
    var begunTLS: BegunTLS?
}

/// Connections that a mixed port has received, on their way to the server that handles their protocol.
///
/// Bounded: once `capacity` connections wait, further ones are refused.
package final class ConnectionInbox: Sendable {
    private static let capacity = 512

    private struct State {
        var arrivals: [ConnectionArrival] = []
        /// Wakes the server's thread; nil before the server has started and after it has ended.
        var waker: Waker?
    }

    /// The mixed port's address, with the actual port.
    package let localAddress: TransportAddress
    private let state = Mutex(State())

    /// - Parameter address: where the mixed port listens.
    package init(of address: TransportAddress) {
        localAddress = address.over(.tcp)
    }

    deinit {
        close()
    }

    /// Passes a connection on.
    /// - Parameter taken: called if the connection is accepted, before the server can see it.
    /// - Returns: false if no server runs or too many connections wait; then the caller still owns the connection.
    func put(_ arrival: ConnectionArrival, _ taken: () -> Void = {}) -> Bool {
        state.withLock { state in
            guard let waker = state.waker, state.arrivals.count < Self.capacity else { return false }
            taken()
            state.arrivals.append(arrival)
            waker.wake()
            return true
        }
    }

    /// Starts accepting connections, for the thread that `waker` wakes.
    func open(waking waker: Waker) { state.withLock { $0.waker = waker } }

    /// Takes the waiting connections.
    func take() -> [ConnectionArrival] {
        state.withLock { state in
            defer { state.arrivals = [] }
            return state.arrivals
        }
    }

    /// Closes the waiting connections, and refuses further ones.
    func close() {
        let left = state.withLock { state in
            state.waker = nil
            defer { state.arrivals = [] }
            return state.arrivals
        }
        for arrival in left { clinux_close(arrival.descriptor) }
    }
}
