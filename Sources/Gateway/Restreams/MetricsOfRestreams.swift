import Node

/// Metrics of restream targets.
extension Node {
    /// Empty if the server was started without targets.
    package var restreamMetrics: [Metric] {
        get async {
            guard let counters = await restreams?.counters else { return [] }
            return [
                Metric(
                    "rostrum_restreams_connections", .gauge,
                    "Connections to targets, those that have not come so far included.",
                    Double(counters.connections)),
                Metric(
                    "rostrum_restreams_live", .gauge, "Targets that take a programme.", Double(counters.live)),
                Metric(
                    "rostrum_restreams_failed", .gauge, "Targets that failed, and wait for their next try.",
                    Double(counters.failed)),
                Metric(
                    "rostrum_restream_attempts_total", .counter, "Connections to targets that were begun.",
                    Double(counters.attempts)),
                Metric(
                    "rostrum_restream_failures_total", .counter, "Connections to targets that failed.",
                    Double(counters.failures)),
                Metric(
                    "rostrum_restream_bytes_total", .counter, "Sent to targets.", Double(counters.bytes)),
                Metric(
                    "rostrum_restream_pictures_dropped_total", .counter,
                    "Pictures that were left out because targets are too slow.", Double(counters.dropped)),
            ]
        }
    }
}
