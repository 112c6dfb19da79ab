import Base

/// Relates a publisher's clock, as its sender reports tell it, to ours.
///
/// One per publishing session: its audio and video share it, so that what was captured together is sent to the
/// viewers as captured together. The estimate contains the publisher's shortest one-way delay.
package struct SourceClock: Sendable {
    /// A larger change is a clock that was set, not one that drifts.
    private static let step: Int64 = 1_000_000_000

    /// An NTP time of the publisher, and our time at which it was, or seemed to be.
    private var reference: (ntp: UInt64, time: MonotonicTime)?

    package init() {}

    /// Takes in that a report written at `ntp` arrived now.
    package mutating func observe(ntp: UInt64, at now: MonotonicTime) {
        guard let expected = time(ofNTP: ntp) else {
            reference = (ntp, now)
            return
        }
        let delay = now.nanoseconds(since: expected)
        if delay < 0 || delay > Self.step {
            // Came faster than any before, or the clock was set.
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
