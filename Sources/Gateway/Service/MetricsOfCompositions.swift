import Node
import Transcoder

/// Metrics of compositions; where there are several, of the worst one, so that labels do not name streams.
extension Node {
    /// Values of the worst composition are 0 while nothing is composed.
    package var compositionMetrics: [Metric] {
        let (statuses, waiting, resting, lost) = compositionCounters
        // The largest value is the worst one; frame rate and height below take the smallest instead.
        func worst(_ value: (CompositionStatus) -> Double) -> Double { statuses.map(value).max() ?? 0 }
        return [
            Metric(
                "rostrum_compositions", .gauge, "Programmes that are composed now.", Double(statuses.count)),
            Metric(
                "rostrum_compositions_waiting", .gauge,
                "Programmes that would be composed if --max-compositions allowed it.", Double(waiting)),
            Metric(
                "rostrum_compositions_resting", .gauge,
                "Programmes that would be composed if anybody watched them.",
                Double(resting)),
            Metric(
                "rostrum_compositions_lost_total", .counter,
                "Times that a composition ended with its process.",
                Double(lost)),
            Metric(
                "rostrum_composition_frames_per_second", .gauge,
                "Pictures a second of the composition with the fewest, over the last second.",
                statuses.map(\.framesPerSecond).min() ?? 0),
            Metric(
                "rostrum_composition_level", .gauge,
                "How much the most loaded composition gave up: 0 nothing, from 1 on fewer pictures, from 3 on smaller "
                    + "ones.", worst { Double($0.level) }),
            Metric(
                "rostrum_composition_picture_height", .gauge, "Of the smallest composition, in pixels.",
                Double(statuses.map(\.height).min() ?? 0)),
            Metric(
                "rostrum_composition_frame_seconds", .gauge,
                "Time that one picture of the slowest composition takes, decoding and mixing included.",
                worst(\.millisecondsPerFrame) / 1_000),
            Metric(
                "rostrum_composition_busy", .gauge,
                "Share of the time that the busiest composition works.", worst(\.load)),
            Metric(
                "rostrum_composition_latency_seconds", .gauge,
                "From the arrival of a speaker's picture until it leaves composed: 95th percentile of the last second.",
                worst(\.latencyHighMilliseconds) / 1_000),
            Metric(
                "rostrum_composition_skipped_frames", .gauge,
                "Pictures that were left out because their time was over.", worst { Double($0.skippedFrames) }
            ),
        ]
    }
}
