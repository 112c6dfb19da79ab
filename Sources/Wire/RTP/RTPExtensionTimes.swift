import Base

/// When a packet left its sender, in 6.18 fixed point seconds; wraps every 64 s.
/// - Source: webrtc.org/experiments/rtp-hdrext/abs-send-time.
package struct AbsoluteSendTime: RTPExtensionValue {
    /// 24 bits, in units of 2^-18 s.
    package var value: UInt32

    /// - Parameter value: its low 24 bits count.
    package init(_ value: UInt32) {
        self.value = value & 0xFF_FFFF
    }

    /// The time on any clock whose origin the receiver need not know: only differences count.
    package init(_ time: MonotonicTime) {
        let nanoseconds = UInt64(bitPattern: time.nanoseconds) % 64_000_000_000
        value = UInt32(truncatingIfNeeded: (nanoseconds << 18) / 1_000_000_000) & 0xFF_FFFF
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        value = try bytes.uint24(at: 0)
    }

    package var encodedLength: Int { 3 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        try packet.store(UInt8(truncatingIfNeeded: value >> 16), at: offset)
        try packet.store(UInt16(truncatingIfNeeded: value), at: offset &+ 1)
    }
}

/// The bounds of the delay from capture to rendering that a sender wishes for.
///
/// (0, 0) asks a receiver to render at once.
/// - Source: webrtc.org/experiments/rtp-hdrext/playout-delay.
package struct PlayoutDelay: RTPExtensionValue {
    /// In units of 10 ms, 12 bits.
    package var minimum: UInt16
    /// In units of 10 ms, 12 bits.
    package var maximum: UInt16

    package init(minimum: UInt16, maximum: UInt16) {
        self.minimum = min(minimum, 0xFFF)
        self.maximum = min(maximum, 0xFFF)
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let value = try bytes.uint24(at: 0)
        minimum = UInt16(truncatingIfNeeded: value >> 12)
        maximum = UInt16(truncatingIfNeeded: value & 0xFFF)
    }

    package var encodedLength: Int { 3 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        try packet.store(UInt8(truncatingIfNeeded: minimum >> 4), at: offset)
        try packet.store(minimum << 12 | maximum & 0xFFF, at: offset &+ 1)
    }
}

/// When the first sample of a packet was captured, by the capturer's own clock.
/// - Source: webrtc.org/experiments/rtp-hdrext/abs-capture-time.
package struct AbsoluteCaptureTime: RTPExtensionValue {
    /// NTP, 32.32 fixed point seconds.
    package var timestamp: UInt64
    /// What to add to get the time on the clock of the sender's RTCP sender reports; 32.32 fixed point
    /// seconds.
    package var clockOffset: Int64?

    package init(timestamp: UInt64, clockOffset: Int64? = nil) {
        self.timestamp = timestamp
        self.clockOffset = clockOffset
    }

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        timestamp = try bytes.uint64(at: 0)
        clockOffset = try bytes.count >= 16 ? Int64(bitPattern: bytes.uint64(at: 8)) : nil
    }

    package var encodedLength: Int { clockOffset == nil ? 8 : 16 }

    package func write(into packet: inout MutableSpan<UInt8>, at offset: Int) throws(WireError) {
        try store(timestamp, into: &packet, at: offset)
        guard let clockOffset else { return }
        try store(UInt64(bitPattern: clockOffset), into: &packet, at: offset &+ 8)
    }

    private func store(
        _ value: UInt64, into packet: inout MutableSpan<UInt8>, at offset: Int
    ) throws(WireError) {
        try packet.store(UInt32(truncatingIfNeeded: value >> 32), at: offset)
        try packet.store(UInt32(truncatingIfNeeded: value), at: offset &+ 4)
    }
}
