/// Counts durations in fixed buckets, for metrics.
///
/// All its memory is in the value: adding allocates nothing, and a copy is complete.
package struct DurationHistogram: Equatable, Sendable {
    /// The upper bounds of the buckets; longer durations count in the total only.
    package enum Scale: Sendable {
        /// 10 µs to 1 s: how long a packet stays in the server.
        case packets
        /// 250 µs to 30 s: how long a client takes to join.
        case joins
    }

    /// Number of buckets, the same for both scales.
    package static let bucketCount = 16
    /// In microseconds, ascending.
    private static let packetBounds: InlineArray<16, Int64> = [
        10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000,
    ]
    private static let joinBounds: InlineArray<16, Int64> = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000, 5_000_000, 10_000_000, 30_000_000,
    ]

    /// Determines the bounds; only histograms of the same scale can be added.
    package let scale: Scale
    /// Number of durations added.
    package private(set) var count: UInt64 = 0
    /// Sum of all durations added, in nanoseconds.
    package private(set) var nanoseconds: UInt64 = 0
    /// Counts of the single buckets, not cumulative.
    private var buckets = InlineArray<16, UInt64>(repeating: 0)

    /// An empty histogram.
    package init(_ scale: Scale) {
        self.scale = scale
    }

    /// The upper bound of a bucket, in nanoseconds.
    private static func bound(_ scale: Scale, _ index: Int) -> Int64 {
        switch scale {
        case .packets: packetBounds[index] &* 1_000
        case .joins: joinBounds[index] &* 1_000
        }
    }

    /// Adds a duration.
    /// - Parameters:
    ///   - duration: in nanoseconds; a negative one, which a monotonic clock never yields, counts as 0.
    ///   - times: how often it occurred.
    package mutating func add(_ duration: Int64, times: UInt64 = 1) {
        guard times > 0 else { return }
        let duration = max(duration, 0)
        count &+= times
        nanoseconds &+= UInt64(duration) &* times
        for index in 0..<Self.bucketCount where duration <= Self.bound(scale, index) {
            buckets[index] &+= times
            return
        }
    }

    /// Adds the counts of another histogram of the same scale.
    package mutating func add(_ other: DurationHistogram) {
        guard other.scale == scale else { return assertionFailure("histograms of different scales") }
        count &+= other.count
        nanoseconds &+= other.nanoseconds
        for index in 0..<Self.bucketCount { buckets[index] &+= other.buckets[index] }
    }

    /// For each bound in ascending order, how many durations were at most that long, as Prometheus expects it.
    package var cumulative: [(seconds: Double, count: UInt64)] {
        var sum: UInt64 = 0
        return (0..<Self.bucketCount).map { index in
            sum &+= buckets[index]
            return (Double(Self.bound(scale, index)) / 1e9, sum)
        }
    }

    package static func == (left: DurationHistogram, right: DurationHistogram) -> Bool {
        left.scale == right.scale && left.count == right.count && left.nanoseconds == right.nanoseconds
            && (0..<bucketCount).allSatisfy { left.buckets[$0] == right.buckets[$0] }
    }
}
