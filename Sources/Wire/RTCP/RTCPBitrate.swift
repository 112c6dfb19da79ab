/// The bitrate that a receiver estimates it can receive (REMB).
/// - Source: draft-alvestrand-rmcat-remb-03 §2.2.
package struct ReceiverEstimatedMaximumBitrate: Equatable, Sendable {
    /// Application layer feedback, RFC 4585 §6.4.
    static let format: UInt8 = 15
    private static let identifier: UInt32 = 0x5245_4D42

    /// The receiver that reports.
    package var senderSSRC: UInt32
    /// In bits per second, for all `ssrcs` together; sent with 18 significant bits, rounded down.
    package var bitrate: UInt64
    /// The streams that the estimate is about, at most 255.
    package var ssrcs: [UInt32]

    package init(senderSSRC: UInt32, bitrate: UInt64, ssrcs: [UInt32]) {
        self.senderSSRC = senderSSRC
        self.bitrate = bitrate
        self.ssrcs = ssrcs
    }

    /// Parses the body after the header; `nil` for application layer feedback of another kind.
    init?(_ body: Span<UInt8>) throws(WireError) {
        senderSSRC = try body.uint32(at: 0)
        guard try body.uint32(at: 8) == Self.identifier else { return nil }
        let count = try Int(body.uint8(at: 12))
        let scaled = try body.uint24(at: 13)
        let mantissa = UInt64(scaled & 0x3_FFFF)
        let exponent = UInt64(scaled >> 18)
        // From about 2^46 bit/s the value means no limit; it must not overflow.
        bitrate = exponent > 46 && mantissa != 0 ? .max : mantissa << exponent
        ssrcs = []
        for index in 0..<count { ssrcs.append(try body.uint32(at: 16 &+ index &* 4)) }
    }

    /// Appends the RTCP packet, with at most 255 SSRCs.
    package func append(to bytes: inout [UInt8]) {
        RTCPFrame.append(
            to: &bytes, type: RTCPFrame.payloadSpecificFeedback, countOrFormat: Self.format
        ) { bytes in
            let sent = ssrcs.prefix(255)
            let exponent = max(64 - bitrate.leadingZeroBitCount - 18, 0)
            let mantissa = UInt32(truncatingIfNeeded: bitrate >> UInt64(exponent))
            bytes.append(bigEndian: senderSSRC)
            bytes.append(bigEndian: UInt32(0))
            bytes.append(bigEndian: Self.identifier)
            bytes.append(
                bigEndian: UInt32(truncatingIfNeeded: sent.count) << 24
                    | UInt32(truncatingIfNeeded: exponent) << 18 | mantissa)
            for ssrc in sent { bytes.append(bigEndian: ssrc) }
        }
    }
}
