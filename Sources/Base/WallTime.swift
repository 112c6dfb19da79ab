/// A point in civil time, as clients and calendars have it.
///
/// It may jump when the system's clock is set, so it suits schedules and records, not measurements of durations.
package struct WallTime: Comparable, Hashable, Sendable, Codable {
    /// Milliseconds since 1970, without leap seconds.
    package let milliseconds: Int64

    /// - Parameter milliseconds: since 1970, without leap seconds.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The latest time whose milliseconds are an exact integer in JavaScript: in the year 287396.
    package static let latest = WallTime(milliseconds: 9_007_199_254_740_991)

    package static func < (left: WallTime, right: WallTime) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// A later or earlier time; saturates, so that no interval, however absurd, can trap.
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

/// One moment on both clocks, for rules that depend on schedules as well as on durations.
package struct Moment: Equatable, Sendable {
    /// For durations.
    package let elapsed: MonotonicTime
    /// For what is stored or shown.
    package let wall: WallTime

    /// The two times must be those of the same moment.
    package init(elapsed: MonotonicTime, wall: WallTime) {
        self.elapsed = elapsed
        self.wall = wall
    }

    /// When a point in civil time will be, if the system's clock is not set until then; saturates.
    package func elapsed(at time: WallTime) -> MonotonicTime {
        let (milliseconds, overflow) = time.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        let (interval, tooLong) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        guard !overflow, !tooLong else { return time < wall ? elapsed : .distantFuture }
        return elapsed.advanced(byNanoseconds: interval)
    }
}

extension WallTime {
    /// `2026-11-21T03:40:07.375Z`, for years 0 to 9999; times outside are shown as the first or the last of these.
    /// - Source: RFC 3339 §5.6; the calendar by Howard Hinnant, `civil_from_days`.
    package var text: String {
        let shown = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
        let days = (shown >= 0 ? shown : shown - 86_399_999) / 86_400_000
        let rest = shown - days * 86_400_000
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))"
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60)
        let (second, fraction) = (rest / 1_000 % 60, rest % 1_000)
        let time = "\(Self.padded(hour, 2)):\(Self.padded(minute, 2)):\(Self.padded(second, 2))"
        return "\(date)T\(time).\(Self.padded(fraction, 3))Z"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
    }
}
