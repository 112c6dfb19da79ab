import Base

/// Relates a publisher's clock, as given by its sender reports, to ours.
///
/// One per publishing session: its audio and video share it, so that media captured at one time is sent to viewers
/// with one time. The estimate includes the publisher's shortest one-way delay.
package struct SourceClock: Sendable {
    /// Nanoseconds; a larger change is a clock that was set, not drift.
    private static let step: Int64 = 1_000_000_000

    /// An NTP time of the publisher, and the corresponding time on our clock.
    private var reference: (ntp: UInt64, time: MonotonicTime)?

    package init() {}

    /// Notes that a report with this NTP time arrived now.
    package mutating func observe(ntp: UInt64, at now: MonotonicTime) {
        guard let expected = time(ofNTP: ntp) else {
            reference = (ntp, now)
            return
        }
        let delay = now.nanoseconds(since: expected)
        if delay < 0 || delay > Self.step {
            // Arrived faster than any report before, or the clock was set.
            reference = (ntp, now)
        } else {
            // Follow slowly, in case the publisher's clock runs slower than ours.
            reference = (ntp, expected.advanced(byNanoseconds: delay / 64))
        }
    }

    /// Our time at the publisher's `ntp`; nil before the first report.
    package func time(ofNTP ntp: UInt64) -> MonotonicTime? {
        guard let reference else { return nil }
        let difference = NTPInterval.nanoseconds(Int64(bitPattern: ntp &- reference.ntp))
        return reference.time.advanced(byNanoseconds: difference)
    }
}
