import Glibc

/// Timestamps in HTTP header fields (IMF-fixdate).
/// - Source: RFC 9110 §5.6.7.
package enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Formats a time as `Sun, 06 Nov 1994 08:49:37 GMT`, in English whatever the locale.
    /// - Parameter seconds: since 1970.
    package static func text(_ seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = unsafe tm()
        unsafe gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let day = unsafe two(parts.tm_mday)
        let clock = unsafe "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        return
            unsafe "\(days[Int(parts.tm_wday)]), \(day) \(months[Int(parts.tm_mon)]) \(1900 + parts.tm_year) \(clock) GMT"
    }

    /// At least two digits.
    private static func two(_ number: CInt) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    /// Parses an IMF-fixdate to seconds since 1970; nil for any other text.
    ///
    /// The obsolete forms are not supported: a client that sends one gets the full response instead of a 304. The
    /// day of the week is ignored.
    /// - Source: RFC 9110 §5.6.7; the calendar is by Howard Hinnant, `days_from_civil`.
    package static func seconds(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int64(parts[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])).map({ Int64($0) + 1 }),
            let year = Int64(parts[3]), (1970...9_999).contains(year)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int64($0) }
        guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]),
            (0...60).contains(clock[2])
        else { return nil }
        // Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March, so that leap days come last.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return days * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2]
    }
}
