import Net
import Node

/// Metrics of publishers by RTMP and SRT, for the protocols that are enabled.
extension Node {
    /// Read from counters without waiting for the node's actor.
    package nonisolated var ingestMetrics: [Metric] {
        let rtmp = ingestCounters.map { Self.metrics(of: $0, "rtmp", "RTMP") } ?? []
        guard let srt = srtCounters else { return rtmp }
        func total(_ name: String, _ help: String, _ value: Int) -> Metric {
            Metric("rostrum_srt_packets_\(name)_total", .counter, help, Double(value))
        }
        return rtmp + Self.metrics(of: srt.connections, "srt", "SRT") + [
            total("received", "Packets that came by SRT, with those that came again.", srt.links.received),
            total("lost", "Packets by SRT that were missing when later ones came.", srt.links.lost),
            total("retransmitted", "Packets by SRT that came again.", srt.links.retransmitted),
            total("dropped", "Packets by SRT that never came, or too late.", srt.links.dropped),
        ]
    }

    /// The metrics that both protocols have.
    /// - Parameters: `prefix` and `name`: of the protocol, in metric names and in texts.
    private static func metrics(of counters: StreamServerCounters, _ prefix: String, _ name: String)
        -> [Metric]
    {
        func total(_ field: String, _ help: String, _ value: UInt64) -> Metric {
            Metric("rostrum_\(prefix)_\(field)_total", .counter, help, Double(value))
        }
        return [
            Metric(
                "rostrum_\(prefix)_connections", .gauge, "Connections by \(name) that there are now.",
                Double(counters.connections)),
            Metric(
                "rostrum_\(prefix)_publishers", .gauge, "Connections by \(name) that publish now.",
                Double(counters.established)),
            total("connections_opened", "Connections by \(name) that were taken.", counters.accepted),
            total("connections_refused", "Connections by \(name) beyond what may be.", counters.refused),
            total(
                "connections_displaced",
                "Connections by \(name) that did not publish yet, and gave way to newer ones.",
                counters.displaced),
            total("received_bytes", "Bytes that came by \(name).", counters.bytesIn),
        ]
    }
}
