/// An RTP header, and the place of the other parts of the packet.
///
/// Contains byte ranges instead of a view: a value can be stored and sent across threads, and never copies the
/// packet.
/// - Source: RFC 3550 §5.1 (fixed header, padding), §5.3.1 (header extension).
package struct RTPHeader: Equatable, Sendable {
    /// Bytes before the list of contributing sources.
    package static let fixedLength = 12

    /// On the last packet of a picture for video, on the first after silence for audio.
    package var marker: Bool
    /// 7 bits.
    package var payloadType: UInt8
    /// Wraps; see `SequenceUnwrapper`.
    package var sequenceNumber: UInt16
    /// In ticks of the codec clock: 90 kHz for video, 48 kHz for Opus.
    package var timestamp: UInt32
    /// The stream; simulcast layers and RTX have SSRCs of their own.
    package var ssrc: UInt32
    /// The "defined by profile" word, which determines the form of the extension; 0 if the X bit is clear.
    package var extensionProfile: UInt16
    /// The body of the header extension; empty if the X bit is clear.
    package var extensionRange: Range<Int>
    /// The payload without padding.
    package var payloadRange: Range<Int>
    /// Bytes after the payload, including the byte that counts them.
    package var paddingLength: Int

    /// Parses a decrypted packet: padding is part of the ciphertext.
    package init(parsing packet: Span<UInt8>) throws(WireError) {
        try packet.require(Self.fixedLength)
        let flags = try packet.uint8(at: 0)
        guard flags >> 6 == 2 else { throw .invalid(.rtpVersion) }
        let second = try packet.uint8(at: 1)
        marker = second & 0x80 != 0
        payloadType = second & 0x7F
        sequenceNumber = try packet.uint16(at: 2)
        timestamp = try packet.uint32(at: 4)
        ssrc = try packet.uint32(at: 8)

        var headerEnd = Self.fixedLength &+ Int(flags & 0x0F) &* 4
        extensionProfile = 0
        extensionRange = headerEnd..<headerEnd
        if flags & 0x10 != 0 {
            extensionProfile = try packet.uint16(at: headerEnd)
            let words = try packet.uint16(at: headerEnd &+ 2)
            let body = headerEnd &+ 4
            headerEnd = body &+ Int(words) &* 4
            try packet.require(headerEnd)
            extensionRange = body..<headerEnd
        }

        paddingLength = 0
        if flags & 0x20 != 0 {
            try packet.require(headerEnd &+ 1)
            paddingLength = try Int(packet.uint8(at: packet.count &- 1))
            guard paddingLength > 0 else { throw .invalid(.rtpPadding) }
        }
        try packet.require(headerEnd &+ paddingLength)
        payloadRange = headerEnd..<(packet.count &- paddingLength)
    }

    /// Length of the header (fixed part, contributing sources, extension) of a packet that may be encrypted.
    ///
    /// SRTP needs it before decryption: the header is authenticated but not encrypted (RFC 3711 §3.1).
    package static func length(of packet: Span<UInt8>) throws(WireError) -> Int {
        try packet.require(fixedLength)
        let flags = try packet.uint8(at: 0)
        guard flags >> 6 == 2 else { throw .invalid(.rtpVersion) }
        var length = fixedLength &+ Int(flags & 0x0F) &* 4
        if flags & 0x10 != 0 {
            length = try length &+ 4 &+ Int(packet.uint16(at: length &+ 2)) &* 4
        }
        try packet.require(length)
        return length
    }
}

extension WireError.Field {
    /// A version other than 2.
    package static var rtpVersion: Self { .init("rtp.version") }
    /// A padding length of 0, although the P bit is set.
    package static var rtpPadding: Self { .init("rtp.padding") }
}
