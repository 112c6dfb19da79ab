import Base

/// Measures how many bytes passed in about the last second.
///
/// Sixteen buckets of 67 ms in place, no allocation: one lives in every stream in either direction.
package struct RateMeter: Sendable {
    /// A bucket is 2^26 ns long, so that finding one takes a shift.
    private static let bucketShift: Int64 = 26
    private static let bucketCount: Int64 = 16
    /// Bytes that passed longer ago do not count.
    package static let window = Duration.nanoseconds(bucketCount << bucketShift)

    private var buckets = InlineArray<16, UInt32>(repeating: 0)
    /// Number of the bucket being filled; nil before the first packet.
    private var newest: Int64?
    /// When the meter began, so that a new meter does not report too low a rate.
    private var began = MonotonicTime.zero
    private var sum = 0

    package init() {}

    /// Adds `bytes`; a time earlier than the last one counts as the last one.
    package mutating func add(_ bytes: Int, at now: MonotonicTime) {
        let bucket = advance(to: now)
        let amount = UInt32(clamping: bytes)
        let slot = Int(truncatingIfNeeded: bucket & (Self.bucketCount - 1))
        let (filled, overflow) = buckets[slot].addingReportingOverflow(amount)
        guard !overflow else { return }
        buckets[slot] = filled
        sum &+= Int(amount)
    }

    /// Bytes that passed in the last 1.01 to 1.07 s.
    package mutating func bytes(at now: MonotonicTime) -> Int {
        guard newest != nil else { return 0 }
        _ = advance(to: now)
        return sum
    }

    /// Bits per second over the window, or over the meter's age while that is shorter, but over at least 100 ms.
    package mutating func bitrate(at now: MonotonicTime) -> Int {
        let bytes = bytes(at: now)
        guard bytes > 0, let newest else { return 0 }
        let windowStart = (newest &- Self.bucketCount &+ 1) << Self.bucketShift
        let start = max(windowStart, began.nanoseconds)
        let covered = max(now.nanoseconds(since: MonotonicTime(nanoseconds: start)), 100_000_000)
        return Int(Double(bytes) * 8e9 / Double(covered))
    }

    /// Empties the buckets that have left the window, and returns the current one's number.
    private mutating func advance(to now: MonotonicTime) -> Int64 {
        let bucket = now.nanoseconds >> Self.bucketShift
        guard let last = newest else {
            newest = bucket
            began = now
            return bucket
        }
        guard bucket > last else { return last }
        newest = bucket
        if bucket - last >= Self.bucketCount {
            buckets = InlineArray(repeating: 0)
            sum = 0
            return bucket
        }
        // Not a `for` loop over a range: its iterator allocates in debug builds, in which allocations are counted.
        var passed = last
        while passed < bucket {
            passed += 1
            let slot = Int(truncatingIfNeeded: passed & (Self.bucketCount - 1))
            sum &-= Int(buckets[slot])
            buckets[slot] = 0
        }
        return bucket
    }
}
