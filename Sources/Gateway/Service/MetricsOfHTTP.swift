import HTTP

/// Metrics of the HTTP server.
extension HTTPCounters.Copy {
    /// The counters under their names in monitoring.
    package var metrics: [Metric] {
        [
            Metric(
                "rostrum_http_responses_total", .counter, "Answers by class of status.",
                (1...5).map { Metric.Sample(Double(answers[$0] ?? 0), [Metric.Label("status", "\($0)xx")]) }),
            Metric("rostrum_http_connections", .gauge, "Open TCP connections.", Double(connections)),
            Metric(
                "rostrum_http_connections_refused_total", .counter,
                "Connections refused for their address's sake.", Double(refusedConnections)),
            Metric(
                "rostrum_http_connections_displaced_total", .counter,
                "Idle connections closed to make room for others.", Double(displacedConnections)),
            Metric("rostrum_websockets", .gauge, "Open WebSockets.", Double(webSockets)),
            Metric("rostrum_event_streams", .gauge, "Open streams of events.", Double(streams)),
            Metric("rostrum_http_handlers", .gauge, "Requests being handled.", Double(handlersAtWork)),
        ]
    }
}
