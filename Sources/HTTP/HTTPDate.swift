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
        guard parts.count == 6, parts[5] == "GMT", let day = number(parts[1], digits: 2),
            let month = months.firstIndex(of: String(parts[2])).map({ Int64($0) + 1 }),
            let year = number(parts[3], digits: 4), year >= 1970, day >= 1,
            day <= length(ofMonth: month, year: year)
        else { return nil }
        let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false)
        guard clock.count == 3, let hour = number(clock[0], digits: 2), hour < 24,
            let minute = number(clock[1], digits: 2), minute < 60,
            let second = number(clock[2], digits: 2), second <= 60
        else { return nil }
        // Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March, so that leap days come last.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return days * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// A number of so many digits, without a sign, which `Int64` would accept.
    private static func number(_ text: Substring, digits: Int) -> Int64? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }

    /// Days of a month, which counts from 1.
    private static func length(ofMonth month: Int64, year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return switch month {
        case 2: isLeap ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
