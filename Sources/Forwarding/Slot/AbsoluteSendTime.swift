import Base

/// When a packet left, for receivers that measure by it what their path takes.
///
/// - Source: webrtc.org/experiments/rtp-hdrext/abs-send-time: seconds in 6 bits, and 18 bits of their fraction.
enum AbsoluteSendTime {
    static let length = 3

    static func value(at now: MonotonicTime) -> UInt32 {
        let nanoseconds = UInt64(max(now.nanoseconds, 0))
        let (seconds, fraction) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return UInt32(seconds & 0x3F) << 18 | UInt32((fraction << 18) / 1_000_000_000)
    }
}
