import Synchronization

/// A server's counters for monitoring; written by the service thread and handlers, read by any thread.
package final class HTTPCounters: Sendable {
    let connections = Atomic<Int>(0)
    let refusedConnections = Atomic<Int>(0)
    let displacedConnections = Atomic<Int>(0)
    let webSockets = Atomic<Int>(0)
    let streams = Atomic<Int>(0)
    let handlersAtWork = Atomic<Int>(0)
    /// Responses by the first digit of their status.
    private let informational = Atomic<Int>(0)
    private let success = Atomic<Int>(0)
    private let redirection = Atomic<Int>(0)
    private let clientError = Atomic<Int>(0)
    private let serverError = Atomic<Int>(0)

    package init() {}

    /// Counts a response by its class.
    func countAnswer(_ status: Int) {
        switch status / 100 {
        case 1: add(1, informational)
        case 2: add(1, success)
        case 3: add(1, redirection)
        case 4: add(1, clientError)
        default: add(1, serverError)
        }
    }

    /// Adds to a counter, or subtracts where it tells how many there are now.
    func add(_ number: Int, _ counter: borrowing Atomic<Int>) {
        counter.wrappingAdd(number, ordering: .relaxed)
    }

    /// The numbers at one moment; connections, WebSockets, streams and handlers are present counts, the rest totals.
    package struct Copy: Sendable, Equatable {
        /// TCP connections that are open.
        package var connections = 0
        /// Connections refused because their address was at its limit.
        package var refusedConnections = 0
        /// Idle connections closed to make room for others.
        package var displacedConnections = 0
        /// WebSockets that are open.
        package var webSockets = 0
        /// Responses whose bodies are still being produced.
        package var streams = 0
        /// Requests that handlers are working on.
        package var handlersAtWork = 0
        /// Responses by the first digit of their status, 1 to 5; without those that libwebsockets sends on its own.
        package var answers: [Int: Int] = [:]
    }

    /// A copy of all counters; they are read one by one, so sums may be off by what happens meanwhile.
    package var copy: Copy {
        var copy = Copy()
        copy.connections = connections.load(ordering: .relaxed)
        copy.refusedConnections = refusedConnections.load(ordering: .relaxed)
        copy.displacedConnections = displacedConnections.load(ordering: .relaxed)
        copy.streams = streams.load(ordering: .relaxed)
        copy.webSockets = webSockets.load(ordering: .relaxed)
        copy.handlersAtWork = handlersAtWork.load(ordering: .relaxed)
        copy.answers = [
            1: informational.load(ordering: .relaxed), 2: success.load(ordering: .relaxed),
            3: redirection.load(ordering: .relaxed), 4: clientError.load(ordering: .relaxed),
            5: serverError.load(ordering: .relaxed),
        ]
        return copy
    }
}
