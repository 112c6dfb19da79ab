import Base

/// The header extension with a packet's send time, by which some receivers measure the path.
///
/// - Source: webrtc.org/experiments/rtp-hdrext/abs-send-time: 6 bits of seconds and 18 bits of their fraction.
enum AbsoluteSendTime {
    /// In bytes.
    static let length = 3

    /// The low 24 bits of the result are the extension's value.
    static func value(at now: MonotonicTime) -> UInt32 {
        let nanoseconds = UInt64(max(now.nanoseconds, 0))
        let (seconds, fraction) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return UInt32(seconds & 0x3F) << 18 | UInt32((fraction << 18) / 1_000_000_000)
    }
}
