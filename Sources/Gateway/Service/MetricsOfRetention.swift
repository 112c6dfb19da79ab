import Node

/// Metrics of automatic deletion by age.
extension Node {
    /// Empty if nothing expires by configuration.
    package var retentionMetrics: [Metric] {
        guard deletesWhatExpires else { return [] }
        let counted = retentionCounts
        return [
            Metric(
                "rostrum_expired_total", .counter, "What was deleted because it was old enough, by kind.",
                [
                    ("stream", counted.streams), ("recording", counted.recordings),
                    ("clip", counted.clips), ("comment", counted.comments),
                ].map { kind, count in Metric.Sample(Double(count), [Metric.Label("kind", kind)]) }),
            Metric(
                "rostrum_expired_bytes_total", .counter,
                "Bytes of recordings and clips deleted for their age.", Double(counted.bytes)),
            Metric(
                "rostrum_expiry_failures_total", .counter,
                "Times that something old enough could not be deleted; it is tried again.",
                Double(counted.failures)),
        ]
    }
}
