import Synchronization

/// What a server has done so far, for whoever watches it.
package final class HTTPCounters: Sendable {
    let connections = Atomic<Int>(0)
    let refusedConnections = Atomic<Int>(0)
    let displacedConnections = Atomic<Int>(0)
    let webSockets = Atomic<Int>(0)
    let streams = Atomic<Int>(0)
    let handlersAtWork = Atomic<Int>(0)
    /// Answers by the first digit of their status.
    private let informational = Atomic<Int>(0)
    private let success = Atomic<Int>(0)
    private let redirection = Atomic<Int>(0)
    private let clientError = Atomic<Int>(0)
    private let serverError = Atomic<Int>(0)

    package init() {}

    func countAnswer(_ status: Int) {
        switch status / 100 {
        case 1: add(1, informational)
        case 2: add(1, success)
        case 3: add(1, redirection)
        case 4: add(1, clientError)
        default: add(1, serverError)
        }
    }

    func add(_ number: Int, _ counter: borrowing Atomic<Int>) {
        counter.wrappingAdd(number, ordering: .relaxed)
    }

    /// The numbers at one moment, for monitoring.
    package struct Copy: Sendable, Equatable {
        /// TCP connections that are open.
        package var connections = 0
        /// Connections refused because their address had as many as it may.
        package var refusedConnections = 0
        /// Idle connections closed to make room for others.
        package var displacedConnections = 0
        /// WebSockets that are open.
        package var webSockets = 0
        /// Answers whose bodies are still being made.
        package var streams = 0
        /// Requests that handlers have not answered yet.
        package var handlersAtWork = 0
        /// Answers by the first digit of their status, 1 to 5; not those that libwebsockets gives by itself.
        package var answers: [Int: Int] = [:]
    }

    /// As of now; counters are read one by one.
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
