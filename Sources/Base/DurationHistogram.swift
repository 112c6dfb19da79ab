/// Counts durations in fixed buckets, for metrics.
///
/// All of it lies in the value itself: whoever owns it adds without allocating, and copies it out as a whole.
package struct DurationHistogram: Equatable, Sendable {
    /// Upper bounds of the buckets; what is longer than the last counts in none but the whole.
    package enum Scale: Sendable {
        /// 10 µs to 1 s: how long a packet stays.
        case packets
        /// 250 µs to 30 s: how long a client takes to join.
        case joins
    }

    /// Of both scales; longer durations are in `count` alone.
    package static let bucketCount = 16
    /// In microseconds.
    private static let packetBounds: InlineArray<16, Int64> = [
        10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000,
    ]
    private static let joinBounds: InlineArray<16, Int64> = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000, 5_000_000, 10_000_000, 30_000_000,
    ]

    /// Which bounds the buckets have; only histograms of one scale can be added.
    package let scale: Scale
    /// All that was added.
    package private(set) var count: UInt64 = 0
    /// Of all that was added.
    package private(set) var nanoseconds: UInt64 = 0
    private var buckets = InlineArray<16, UInt64>(repeating: 0)

    package init(_ scale: Scale) {
        self.scale = scale
    }

    private static func bound(_ scale: Scale, _ index: Int) -> Int64 {
        switch scale {
        case .packets: packetBounds[index] &* 1_000
        case .joins: joinBounds[index] &* 1_000
        }
    }

    /// - Parameters:
    ///   - duration: in nanoseconds; one below 0, which no clock of ours gives, counts as 0.
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

    /// Takes in what another one of the same scale counted.
    package mutating func add(_ other: DurationHistogram) {
        guard other.scale == scale else { return assertionFailure("histograms of different scales") }
        count &+= other.count
        nanoseconds &+= other.nanoseconds
        for index in 0..<Self.bucketCount { buckets[index] &+= other.buckets[index] }
    }

    /// How many took at most so many seconds, for growing bounds.
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
