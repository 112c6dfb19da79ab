import Base
import CLinux
import Synchronization

/// A connection that came to a port, and of which nobody else keeps the descriptor: whoever gets it closes it.
package struct ConnectionArrival: Sendable {
    let descriptor: Int32
    /// Where its other end is.
    let remote: TransportAddress
    /// TLS that was begun on it before it was clear for whom it is.
    var begunTLS: BegunTLS?
}

/// Connections that a mixed port has taken, on their way to the one whom they are for.
///
/// Bounded: what comes while `capacity` of them wait is refused.
package final class ConnectionInbox: Sendable {
    private static let capacity = 512

    private struct State {
        var arrivals: [ConnectionArrival] = []
        /// Of who takes them; nil before, and after the end.
        var waker: Waker?
    }

    /// Of the port; it is the real one.
    package let localAddress: TransportAddress
    private let state = Mutex(State())

    package init(of address: TransportAddress) {
        localAddress = address.over(.tcp)
    }

    deinit {
        close()
    }

    /// Leaves a connection there.
    /// - Parameter taken: called where it is taken, before anybody sees it.
    /// - Returns: false if nobody takes it, or too many wait: then it is still the caller's.
    func put(_ arrival: ConnectionArrival, _ taken: () -> Void = {}) -> Bool {
        state.withLock { state in
            guard let waker = state.waker, state.arrivals.count < Self.capacity else { return false }
            taken()
            state.arrivals.append(arrival)
            waker.wake()
            return true
        }
    }

    func open(waking waker: Waker) { state.withLock { $0.waker = waker } }

    func take() -> [ConnectionArrival] {
        state.withLock { state in
            defer { state.arrivals = [] }
            return state.arrivals
        }
    }

    /// Closes what waits, and takes nothing more.
    func close() {
        let left = state.withLock { state in
            state.waker = nil
            defer { state.arrivals = [] }
            return state.arrivals
        }
        for arrival in left { clinux_close(arrival.descriptor) }
    }
}
