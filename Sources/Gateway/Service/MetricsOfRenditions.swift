import Node
import Transcoder

/// Metrics of renditions; where there are several, of the worst one, so that labels do not name streams.
extension Node {
    /// Values of the worst rendition are 0 while nothing is encoded.
    package var renditionMetrics: [Metric] {
        let (statuses, waiting, lost) = renditionCounters
        // The largest value is the worst one; the frame rate below takes the smallest instead.
        func worst(_ value: (RenditionStatus) -> Double) -> Double { statuses.map(value).max() ?? 0 }
        return [
            Metric(
                "rostrum_renditions", .gauge, "Tracks of which a smaller picture is made now.",
                Double(statuses.count)),
            Metric(
                "rostrum_renditions_waiting", .gauge,
                "Tracks of which a smaller picture would be made if --max-renditions allowed it.",
                Double(waiting)),
            Metric(
                "rostrum_renditions_lost_total", .counter, "Times that a rendition ended with its process.",
                Double(lost)),
            Metric(
                "rostrum_conversions", .gauge,
                "Publishers by RTMP or SRT whose pictures are made anew, because browsers do not show them.",
                Double(conversionCount)),
            Metric(
                "rostrum_rendition_frames_per_second", .gauge,
                "Pictures a second of the rendition with the fewest, over the last second.",
                statuses.map(\.framesPerSecond).min() ?? 0),
            Metric(
                "rostrum_rendition_busy", .gauge, "Share of the time that the busiest rendition works.",
                worst(\.load)),
            Metric(
                "rostrum_rendition_latency_seconds", .gauge,
                "From the arrival of a picture until it leaves small: 95th percentile of the last second.",
                worst(\.latencyMilliseconds) / 1_000),
        ]
    }
}
