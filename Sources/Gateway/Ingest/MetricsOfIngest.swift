import Net
import Node

/// What monitoring knows of publishers by RTMP; nothing where nobody is taken by it.
extension Node {
    package nonisolated var ingestMetrics: [Metric] {
        guard let counters = ingestCounters else { return [] }
        func total(_ name: String, _ help: String, _ value: UInt64) -> Metric {
            Metric("rostrum_rtmp_\(name)_total", .counter, help, Double(value))
        }
        return [
            Metric(
                "rostrum_rtmp_connections", .gauge, "Connections by RTMP that there are now.",
                Double(counters.connections)),
            Metric(
                "rostrum_rtmp_publishers", .gauge, "Connections by RTMP that publish now.",
                Double(counters.established)),
            total("connections_opened", "Connections by RTMP that were taken.", counters.accepted),
            total("connections_refused", "Connections by RTMP beyond what may be.", counters.refused),
            total(
                "connections_displaced",
                "Connections by RTMP that did not publish yet, and gave way to newer ones.",
                counters.displaced),
            total("received_bytes", "Bytes that came by RTMP.", counters.bytesIn),
        ]
    }
}
