/// The usual quantiles of some values.
struct Quantiles: Equatable, Sendable, Codable {
    var count: Int
    var p50: Double
    var p95: Double
    var p99: Double
    var maximum: Double

    /// By nearest rank, so that each is a value that occurred.
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

    /// Of a histogram of nanoseconds, in milliseconds.
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
