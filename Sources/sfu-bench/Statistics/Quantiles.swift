/// The usual quantiles of a set of values, as reports list them.
struct Quantiles: Equatable, Sendable, Codable {
    /// How many values there were.
    var count: Int
    var p50: Double
    var p95: Double
    var p99: Double
    var maximum: Double

    /// Computed by nearest rank, so that each quantile is a value that occurred.
    /// - Returns: nil if there are no values.
    init?(_ values: [Double]) {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        count = sorted.count
        p50 = Self.nearestRank(0.5, in: sorted)
        p95 = Self.nearestRank(0.95, in: sorted)
        p99 = Self.nearestRank(0.99, in: sorted)
        maximum = sorted[sorted.count - 1]
    }

    /// The quantiles of a histogram of nanoseconds, in milliseconds; nil if it is empty.
    init?(milliseconds histogram: LogHistogram) {
        func value(_ quantile: Double) -> Double { Double(histogram.quantile(quantile) ?? 0) / 1e6 }
        guard !histogram.isEmpty else { return nil }
        count = Int(clamping: histogram.count)
        p50 = value(0.5)
        p95 = value(0.95)
        p99 = value(0.99)
        maximum = Double(histogram.maximum ?? 0) / 1e6
    }

    private static func nearestRank(_ quantile: Double, in sorted: [Double]) -> Double {
        let rank = Int((quantile * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank - 1, 0), sorted.count - 1)]
    }
}
