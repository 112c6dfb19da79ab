import Forwarding
import Node

extension MetricsOfNode {
    /// A label's value, and the count of it in one worker's report.
    private typealias Share = (String, (WorkerReportCopy) -> Double)

    /// Histograms of what viewers are sent now; a label is the upper bound of its class.
    static func deliveryMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        var pictures: [Share] = classes(DeliveryCensus.heights) { $0.pictures }
        pictures.append(("unknown", { Double($0.counters.delivery.picturesOfUnknownSize) }))
        pictures.append(("paused", { Double($0.counters.delivery.picturesPaused) }))
        return [
            labelled(
                workers, "rostrum_pictures",
                "Pictures that viewers are sent now, by the least of these heights in pixels that they fit into; "
                    + "paused: wanted, but the path takes none.",
                "height", pictures, kind: .gauge),
            labelled(
                workers, "rostrum_paths",
                "Connections of clients that tell of each packet, say how much they can take in or come by TCP, by the "
                    + "least of these bit rates that what their path is estimated to take fits into.",
                "bits_per_second", classes(DeliveryCensus.estimates) { $0.paths }, kind: .gauge),
        ]
    }

    /// One share per bound, and `more` for everything above the last.
    private static func classes(
        _ bounds: [Int], _ counts: @escaping (DeliveryCensus) -> [Int]
    ) -> [Share] {
        (0...bounds.count).map { index in
            let name = index < bounds.count ? "\(bounds[index])" : "more"
            return (name, { Double(counts($0.counters.delivery)[index]) })
        }
    }
}
