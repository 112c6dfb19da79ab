/// A point on a clock that never goes backwards.
///
/// The origin is arbitrary, so only differences have a meaning. Protocol code gets the time as a parameter and never
/// reads a clock, so that a whole server can run in virtual time.
package struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Since the clock's arbitrary origin.
    package let nanoseconds: Int64

    /// - Parameter nanoseconds: since the clock's origin.
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The clock's origin, which marks no particular event.
    package static let zero = MonotonicTime(nanoseconds: 0)
    /// Later than every other time; means "never" where an optional would be inconvenient.
    package static let distantFuture = MonotonicTime(nanoseconds: .max)

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Nanoseconds from `earlier` to this time; negative if `earlier` is later.
    ///
    /// Saturates.
    package func nanoseconds(since earlier: MonotonicTime) -> Int64 {
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
        guard overflow else { return difference }
        return nanoseconds < earlier.nanoseconds ? .min : .max
    }

    /// A later or earlier time; saturates, so that no interval, however absurd, can trap.
    package func advanced(byNanoseconds interval: Int64) -> MonotonicTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(interval)
        guard overflow else { return MonotonicTime(nanoseconds: sum) }
        return MonotonicTime(nanoseconds: interval < 0 ? .min : .max)
    }

    /// The time after an interval; saturates.
    package static func + (time: MonotonicTime, interval: Duration) -> MonotonicTime {
        time.advanced(byNanoseconds: interval.wholeNanoseconds)
    }

    /// The time before an interval; saturates.
    package static func - (time: MonotonicTime, interval: Duration) -> MonotonicTime {
        time.advanced(byNanoseconds: -interval.wholeNanoseconds)
    }

    /// The duration from `earlier` to `later`; negative if `earlier` is later.
    ///
    /// Saturates at 292 years.
    package static func - (later: MonotonicTime, earlier: MonotonicTime) -> Duration {
        .nanoseconds(later.nanoseconds(since: earlier))
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to ±146 years.
    package var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let clamped = min(max(seconds, -4_611_686_018), 4_611_686_018)
        return clamped * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
