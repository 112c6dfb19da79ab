/// The RTX payload format: the original payload, preceded by its original sequence number.
/// - Source: RFC 4588 §4.
package enum Retransmission {
    /// Bytes of the original sequence number before the original payload.
    package static let prefixLength = 2

    /// The header of the original packet, or `nil` if this packet contains only padding (a bandwidth probe).
    ///
    /// Nothing is copied: the ranges still refer to the RTX packet.
    /// - Parameters:
    ///   - header: of the RTX packet.
    ///   - payloadType: of the original stream, known from negotiation.
    ///   - ssrc: of the original stream.
    package static func original(
        of header: RTPHeader, in packet: Span<UInt8>, payloadType: UInt8, ssrc: UInt32
    ) throws(WireError) -> RTPHeader? {
        guard !header.payloadRange.isEmpty else { return nil }
        guard header.payloadRange.count >= prefixLength else { throw .truncated }
        var original = header
        original.sequenceNumber = try packet.uint16(at: header.payloadRange.lowerBound)
        original.payloadType = payloadType
        original.ssrc = ssrc
        original.payloadRange =
            (header.payloadRange.lowerBound &+ prefixLength)..<header.payloadRange.upperBound
        return original
    }

    /// Writes the original sequence number at the start of an RTX payload.
    /// - Returns: where the original payload must be written.
    package static func writePrefix(
        original sequenceNumber: UInt16, into packet: inout MutableSpan<UInt8>, at offset: Int
    ) throws(WireError) -> Int {
        try packet.store(sequenceNumber, at: offset)
        return offset &+ prefixLength
    }
}
