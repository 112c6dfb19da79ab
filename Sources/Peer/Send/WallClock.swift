import Base

/// Relates the monotonic clock to the time of day, for the NTP times in RTCP.
///
/// The offset is injected once per process and never follows later corrections of the system's clock: receivers use
/// only differences, and a step would appear as a jump of the media.
package struct WallClock: Equatable, Sendable {
    /// Seconds from 1900, the epoch of NTP, to 1970.
    private static let epochDifference: Int64 = 2_208_988_800

    /// The time of day at `MonotonicTime.zero`, in nanoseconds since 1970.
    private let unixNanosecondsAtZero: Int64

    /// - Parameter unixNanoseconds: the time of day at `now`, in nanoseconds since 1970.
    package init(unixNanoseconds: Int64, at now: MonotonicTime) {
        unixNanosecondsAtZero = unixNanoseconds &- now.nanoseconds
    }

    /// Nanoseconds since 1970.
    package func unixNanoseconds(at time: MonotonicTime) -> Int64 {
        unixNanosecondsAtZero &+ time.nanoseconds
    }

    /// Seconds since 1900 in 32.32 fixed point, wrapping in 2036 as NTP does.
    /// - Source: RFC 3550 §4.
    package func ntp(at time: MonotonicTime) -> UInt64 {
        let nanoseconds = unixNanoseconds(at: time)
        let seconds = NTPInterval.floorSeconds(nanoseconds)
        let rest = UInt64(bitPattern: nanoseconds &- seconds &* 1_000_000_000)
        let whole = UInt64(bitPattern: seconds &+ Self.epochDifference)
        return whole << 32 | ((rest << 32) / 1_000_000_000)
    }

    /// The middle 32 bits of the NTP time: seconds in 16.16 fixed point, wrapping every 18 hours.
    package func compactNTP(at time: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: ntp(at: time) >> 16)
    }

    /// The time since `echoed`, a compact NTP time of ours, without the `delay` at the peer.
    ///
    /// - Returns: nil if the peer echoed nothing or an impossible time: in the future, or more than 30 s ago.
    /// - Source: RFC 3550 §6.4.1 (LSR, DLSR).
    package func roundTripTime(echoed: UInt32, delay: UInt32, at now: MonotonicTime) -> Duration? {
        guard echoed != 0 else { return nil }
        let difference = Int32(bitPattern: compactNTP(at: now) &- echoed &- delay)
        // Both ends round, and the peer's clock may be a little slower: down to -16 ms counts as zero.
        guard difference > -1_024 else { return nil }
        let interval = Duration.nanoseconds(NTPInterval.nanoseconds(compact: UInt32(max(difference, 0))))
        return interval <= RTTEstimator.maximum ? interval : nil
    }
}

/// Converts intervals between NTP fixed point and nanoseconds; every input gives a result.
package enum NTPInterval {
    /// Converts from the signed 32.32 fixed point of a difference of two NTP times.
    package static func nanoseconds(_ fixed: Int64) -> Int64 {
        let fraction = (fixed & 0xFFFF_FFFF) &* 1_000_000_000
        return (fixed >> 32) &* 1_000_000_000 &+ Int64(bitPattern: UInt64(bitPattern: fraction) >> 32)
    }

    /// Converts from the 16.16 fixed point of LSR and DLSR.
    package static func nanoseconds(compact: UInt32) -> Int64 {
        nanoseconds(Int64(compact) << 16)
    }

    /// Converts to the 16.16 fixed point of DLSR; clamped to the range from 0 to 18 hours.
    package static func compact(nanoseconds: Int64) -> UInt32 {
        let clamped = min(max(nanoseconds, 0), 65_535_999_000_000)
        let seconds = clamped / 1_000_000_000
        let rest = clamped % 1_000_000_000
        return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
    }

    /// Seconds rounded down, also for times before 1970.
    fileprivate static func floorSeconds(_ nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? seconds - 1 : seconds
    }
}

/// Converts between nanoseconds and ticks of an RTP clock; overflow wraps instead of trapping.
package enum MediaTicks {
    /// Rounded towards zero.
    package static func ticks(nanoseconds: Int64, clockRate: UInt32) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
    }

    /// Rounded towards zero.
    package static func nanoseconds(ticks: Int64, clockRate: UInt32) -> Int64 {
        let rate = Int64(max(clockRate, 1))
        let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: rate)
        return seconds &* 1_000_000_000 &+ rest &* 1_000_000_000 / rate
    }
}
