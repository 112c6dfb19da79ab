/// A point in civil time, as clients and calendars know it.
///
/// May jump when somebody sets the clock: good for schedules and records, not for measuring how long something took.
package struct WallTime: Comparable, Hashable, Sendable, Codable {
    /// Since 1970, without leap seconds.
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Milliseconds since 1970 must stay whole numbers in JavaScript; this is the year 287396.
    package static let latest = WallTime(milliseconds: 9_007_199_254_740_991)

    package static func < (left: WallTime, right: WallTime) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Saturates, so that an absurd interval cannot trap.
    package func advanced(bySeconds seconds: Int) -> WallTime {
        let (interval, tooLong) = Int64(seconds).multipliedReportingOverflow(by: 1_000)
        let (sum, tooFar) = milliseconds.addingReportingOverflow(interval)
        guard tooLong || tooFar else { return WallTime(milliseconds: sum) }
        return WallTime(milliseconds: seconds < 0 ? .min : .max)
    }

    package init(from decoder: any Decoder) throws {
        milliseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}

/// One moment on both clocks: for rules that know schedules as well as grace times.
package struct Moment: Equatable, Sendable {
    package let elapsed: MonotonicTime
    package let wall: WallTime

    package init(elapsed: MonotonicTime, wall: WallTime) {
        self.elapsed = elapsed
        self.wall = wall
    }

    /// When a point in civil time comes, if nobody sets the clock until then; saturates.
    package func elapsed(at time: WallTime) -> MonotonicTime {
        let (milliseconds, overflow) = time.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        let (interval, tooLong) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow, !tooLong else { return time < wall ? elapsed : .distantFuture }
        return elapsed.advanced(byNanoseconds: interval)
    }
}
