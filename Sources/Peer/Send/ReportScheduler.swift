import Base

/// Decides when a session's next compound report is due.
///
/// About once a second, as in browsers, instead of by the bandwidth rule: the session has two participants, and
/// NACK and lip sync need recent reports.
/// - Source: RFC 3550 §6.2, §6.3.1 (randomized by half); RFC 4585 §3.4 (T_rr_interval).
package struct ReportScheduler: Sendable {
    /// Nanoseconds.
    private let interval: Int64
    /// Reports are due at multiples of 2^23 ns (8 ms), so that a worker with hundreds of sessions wakes up once for
    /// several.
    private static let gridShift: Int64 = 23
    /// When the next report is due.
    package private(set) var deadline: MonotonicTime

    /// Schedules the first report early, so that round-trip time and lip sync are available soon.
    package init(
        interval: Duration = .seconds(1), at now: MonotonicTime,
        using random: inout some RandomNumberGenerator
    ) {
        self.interval = min(max(interval.wholeNanoseconds, 100_000_000), 60_000_000_000)
        deadline = now.advanced(byNanoseconds: Int64.random(in: 0...self.interval / 4, using: &random))
    }

    /// Whether reports are due now; if so, they count as sent and the next deadline is drawn.
    package mutating func isDue(at now: MonotonicTime, using random: inout some RandomNumberGenerator) -> Bool
    {
        guard now >= deadline else { return false }
        let wait = Int64.random(in: (interval / 2)...(interval + interval / 2), using: &random)
        let drawn = now.nanoseconds &+ wait
        let shared = (drawn >> Self.gridShift) << Self.gridShift
        deadline = MonotonicTime(nanoseconds: max(shared, now.nanoseconds &+ interval / 2))
        return true
    }

    /// Makes the next report due immediately: after a source switch the viewer needs the new time line.
    package mutating func expedite(at now: MonotonicTime) {
        deadline = min(deadline, now)
    }
}
