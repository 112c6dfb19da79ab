import Synchronization

/// What a server has done so far, for whoever watches it.
package final class HTTPCounters: Sendable {
    let connections = Atomic<Int>(0)
    let refusedConnections = Atomic<Int>(0)
    let displacedConnections = Atomic<Int>(0)
    let webSockets = Atomic<Int>(0)
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

    package var metrics: [Metric] {
        let answers: [(String, Int)] = [
            ("1xx", informational.load(ordering: .relaxed)), ("2xx", success.load(ordering: .relaxed)),
            ("3xx", redirection.load(ordering: .relaxed)), ("4xx", clientError.load(ordering: .relaxed)),
            ("5xx", serverError.load(ordering: .relaxed)),
        ]
        return [
            Metric(
                "rostrum_http_responses_total", .counter, "Answers by class of status.",
                answers.map { Metric.Sample(Double($0.1), [Metric.Label("status", $0.0)]) }),
            Metric(
                "rostrum_http_connections", .gauge, "Open TCP connections.",
                Double(connections.load(ordering: .relaxed))),
            Metric(
                "rostrum_http_connections_refused_total", .counter,
                "Connections refused for their address's sake.",
                Double(refusedConnections.load(ordering: .relaxed))),
            Metric(
                "rostrum_http_connections_displaced_total", .counter,
                "Idle connections closed to make room for others.",
                Double(displacedConnections.load(ordering: .relaxed))),
            Metric(
                "rostrum_websockets", .gauge, "Open WebSockets.", Double(webSockets.load(ordering: .relaxed))),
            Metric(
                "rostrum_http_handlers", .gauge, "Requests being handled.",
                Double(handlersAtWork.load(ordering: .relaxed))),
        ]
    }
}
