/// A point on a clock that never goes backwards.
///
/// The origin is arbitrary: only differences mean something. Machines take it as a parameter and never read
/// a clock themselves, so that a whole server can run in virtual time.
package struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Since the clock's arbitrary origin.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The origin, which is not the start of anything.
    package static let zero = MonotonicTime(nanoseconds: 0)
    /// Later than every other point; stands for "never" where an optional would be in the way.
    package static let distantFuture = MonotonicTime(nanoseconds: .max)

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Nanoseconds from `earlier` to this point, negative if `earlier` is later; saturates.
    package func nanoseconds(since earlier: MonotonicTime) -> Int64 {
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
        guard overflow else { return difference }
        return nanoseconds < earlier.nanoseconds ? .min : .max
    }

    /// Saturates, so that a hostile or absurd interval cannot trap.
    package func advanced(byNanoseconds interval: Int64) -> MonotonicTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(interval)
        guard overflow else { return MonotonicTime(nanoseconds: sum) }
        return MonotonicTime(nanoseconds: interval < 0 ? .min : .max)
    }

    /// Saturates.
    package static func + (time: MonotonicTime, interval: Duration) -> MonotonicTime {
        time.advanced(byNanoseconds: interval.wholeNanoseconds)
    }

    /// Saturates.
    package static func - (time: MonotonicTime, interval: Duration) -> MonotonicTime {
        time.advanced(byNanoseconds: -interval.wholeNanoseconds)
    }

    /// Negative if `earlier` is later; saturates at 292 years.
    package static func - (later: MonotonicTime, earlier: MonotonicTime) -> Duration {
        .nanoseconds(later.nanoseconds(since: earlier))
    }
}

extension Duration {
    /// The interval in whole nanoseconds, clamped to ±146 years.
    package var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let clamped = min(max(seconds, -4_611_686_018), 4_611_686_018)
        return clamped * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
