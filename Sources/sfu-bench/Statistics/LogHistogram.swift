/// Counts values in buckets whose width grows with the value, so that any quantile is accurate to within 1.6 %.
///
/// Accepts whole nanoseconds up to about 70 minutes. Histograms can be added; an older copy can be subtracted from a
/// newer one, which leaves the distribution of the interval between them.
struct LogHistogram: Equatable, Sendable {
    /// Binary logarithm of the number of buckets in each doubling.
    private static let subBits = 6
    private static let subCount = 1 << subBits
    /// Values from 2^42 ns on share the last bucket.
    private static let maximumBits = 42
    private static let bucketCount = (maximumBits - subBits + 1) * subCount

    private(set) var count: UInt64 = 0
    /// Of the values themselves, so that the mean is exact.
    private var sum: Double = 0
    /// Counts of 32 bits keep copies small: a thread's tally is copied ten times a second.
    private var buckets = [UInt32](repeating: 0, count: bucketCount)

    var isEmpty: Bool { count == 0 }
    var mean: Double { count == 0 ? 0 : sum / Double(count) }

    /// - Parameter value: negative values count as 0.
    mutating func add(_ value: Int64) {
        let value = max(value, 0)
        buckets[Self.bucket(of: value)] &+= 1
        count &+= 1
        sum += Double(value)
    }

    mutating func add(_ other: LogHistogram) {
        guard !other.isEmpty else { return }
        for index in buckets.indices { buckets[index] &+= other.buckets[index] }
        count &+= other.count
        sum += other.sum
    }

    /// The values that were added since `earlier`, an older copy of this histogram.
    func since(_ earlier: LogHistogram) -> LogHistogram {
        var result = self
        // Wraps around, like the addition: the difference is right even if a bucket overflowed in between.
        for index in buckets.indices { result.buckets[index] &-= earlier.buckets[index] }
        result.count &-= earlier.count
        result.sum -= earlier.sum
        return result
    }

    /// The value that the share `quantile` (0 to 1) of all values does not exceed; nil if there are none.
    func quantile(_ quantile: Double) -> Int64? {
        guard count > 0 else { return nil }
        let rank = UInt64(max((quantile * Double(count)).rounded(.up), 1))
        var seen: UInt64 = 0
        for index in buckets.indices {
            seen &+= UInt64(buckets[index])
            if seen >= rank { return Self.middle(of: index) }
        }
        return Self.middle(of: buckets.count - 1)
    }

    /// The middle of the highest bucket in use; nil if there are no values.
    var maximum: Int64? {
        buckets.lastIndex { $0 > 0 }.map(Self.middle)
    }

    /// The share of values up to each limit, for plots: one point for each bucket in use, in ascending order.
    var cumulative: [(value: Int64, share: Double)] {
        var seen: UInt64 = 0
        return buckets.indices.compactMap { index in
            guard buckets[index] > 0 else { return nil }
            seen &+= UInt64(buckets[index])
            return (Self.middle(of: index), Double(seen) / Double(max(count, 1)))
        }
    }

    /// Values below `subCount` have a bucket each; above, the highest bits after the leading one select it.
    private static func bucket(of value: Int64) -> Int {
        guard value >= subCount else { return Int(value) }
        let bits = 63 - value.leadingZeroBitCount
        guard bits < maximumBits else { return bucketCount - 1 }
        let shift = bits - subBits
        return (shift + 1) << subBits + Int(value >> Int64(shift)) & (subCount - 1)
    }

    /// The value that stands for a bucket.
    private static func middle(of index: Int) -> Int64 {
        let group = index >> subBits
        let sub = Int64(index & (subCount - 1))
        guard group > 0 else { return sub }
        let shift = Int64(group - 1)
        return (Int64(subCount) + sub) << shift + (shift > 0 ? 1 << (shift - 1) : 0)
    }
}
