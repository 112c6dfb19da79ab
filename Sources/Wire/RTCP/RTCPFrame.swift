/// The header that all RTCP packets have in common, and the place of the body.
/// - Source: RFC 3550 §6.4.1.
struct RTCPFrame {
    static let headerLength = 4

    static let senderReport: UInt8 = 200
    static let receiverReport: UInt8 = 201
    static let sourceDescription: UInt8 = 202
    static let goodbye: UInt8 = 203
    /// RTPFB, RFC 4585 §6.2.
    static let transportSpecificFeedback: UInt8 = 205
    /// PSFB, RFC 4585 §6.3.
    static let payloadSpecificFeedback: UInt8 = 206
    /// XR, RFC 3611 §2.
    static let extendedReport: UInt8 = 207

    /// 5 bits; a count or a feedback format, depending on the packet type.
    let countOrFormat: UInt8
    let packetType: UInt8
    /// The bytes between the header and any padding.
    let body: Range<Int>
    /// Offset of the next packet.
    let end: Int

    /// Parses the header at an offset.
    /// - Throws: `.truncated` if the packet exceeds the datagram, `.invalid` for another version or impossible
    ///   padding.
    init(in datagram: Span<UInt8>, at offset: Int) throws(WireError) {
        let flags = try datagram.uint8(at: offset)
        guard flags >> 6 == 2 else { throw .invalid(.rtcpVersion) }
        countOrFormat = flags & 0x1F
        packetType = try datagram.uint8(at: offset &+ 1)
        let start = offset &+ Self.headerLength
        end = try start &+ Int(datagram.uint16(at: offset &+ 2)) &* 4
        try datagram.require(end)
        var bodyEnd = end
        if flags & 0x20 != 0 {
            guard end > start else { throw .invalid(.rtcpPadding) }
            let padding = try Int(datagram.uint8(at: end &- 1))
            guard padding > 0, padding <= end &- start else { throw .invalid(.rtcpPadding) }
            bodyEnd = end &- padding
        }
        body = start..<bodyEnd
    }

    /// Appends a header and what `body` appends, padded with zeros to whole words, and sets the length.
    static func append(
        to bytes: inout [UInt8], type: UInt8, countOrFormat: UInt8, body: (inout [UInt8]) -> Void
    ) {
        let start = bytes.count
        bytes.append(0x80 | countOrFormat & 0x1F)
        bytes.append(type)
        bytes.append(bigEndian: UInt16(0))
        body(&bytes)
        while (bytes.count &- start) & 3 != 0 { bytes.append(0) }
        let words = UInt16(truncatingIfNeeded: (bytes.count &- start) / 4 &- 1)
        bytes[start + 2] = UInt8(truncatingIfNeeded: words >> 8)
        bytes[start + 3] = UInt8(truncatingIfNeeded: words)
    }
}

extension WireError.Field {
    /// A version other than 2.
    package static var rtcpVersion: Self { .init("rtcp.version") }
    /// A padding length of 0, or longer than the packet.
    package static var rtcpPadding: Self { .init("rtcp.padding") }
}
