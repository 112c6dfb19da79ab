/// Sound of earlier packets in the payload of a later one.
///
/// Block headers first, that of the oldest block before all others, then the blocks in the same order; the last one is
/// the packet's own.
/// - Source: RFC 2198 §3.
package enum RedundantAudio {
    /// Bytes of the header of an earlier block, and of that of the packet's own.
    package static let headerLength = 4
    package static let lastHeaderLength = 1
    /// The longest block of an earlier packet, in bytes, and how far back it may lie, in ticks of the RTP clock.
    package static let longestBlock = 1_023
    package static let farthestOffset: UInt32 = 16_383

    /// Whether a block can be said to be so long, and to lie so far back.
    package static func canCarry(length: Int, offset: UInt32) -> Bool {
        length > 0 && length <= longestBlock && offset > 0 && offset <= farthestOffset
    }

    /// Writes the header of an earlier block.
    /// - Parameter offset: ticks that its time stamp lies before the packet's own.
    /// - Throws: `.noRoom` where there is no room.
    package static func writeHeader(
        payloadType: UInt8, offset: UInt32, length: Int, into buffer: inout MutableSpan<UInt8>,
        at position: inout Int
    ) throws(WireError) {
        let word =
            1 << 31 | UInt32(payloadType & 0x7F) << 24 | (offset & 0x3FFF) << 10
            | UInt32(truncatingIfNeeded: length) & 0x3FF
        try buffer.store(word, at: position)
        position &+= headerLength
    }

    /// Writes the header of the packet's own block, which comes last.
    /// - Throws: `.noRoom` where there is no room.
    package static func writeLastHeader(
        payloadType: UInt8, into buffer: inout MutableSpan<UInt8>, at position: inout Int
    ) throws(WireError) {
        try buffer.store(payloadType & 0x7F, at: position)
        position &+= lastHeaderLength
    }
}
