/// Audio of earlier packets in the payload of a later one (RED).
///
/// Block headers come first, from the oldest block to the packet's own, then the blocks in the same order.
/// - Source: RFC 2198 §3.
package enum RedundantAudio {
    /// Bytes of the header of an earlier block.
    package static let headerLength = 4
    /// Bytes of the header of the packet's own block.
    package static let lastHeaderLength = 1
    /// Longest block of an earlier packet, in bytes: a length has 10 bits.
    package static let longestBlock = 1_023
    /// Greatest distance to an earlier packet, in ticks of the RTP clock: an offset has 14 bits.
    package static let farthestOffset: UInt32 = 16_383

    /// Whether a header can express this length and this offset.
    package static func canCarry(length: Int, offset: UInt32) -> Bool {
        length > 0 && length <= longestBlock && offset > 0 && offset <= farthestOffset
    }

    /// Writes the header of an earlier block.
    /// - Parameter offset: ticks from its timestamp to the packet's own.
    /// - Throws: `.noRoom` if it does not fit.
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

    /// Writes the header of the packet's own block, which is the last.
    /// - Throws: `.noRoom` if it does not fit.
    package static func writeLastHeader(
        payloadType: UInt8, into buffer: inout MutableSpan<UInt8>, at position: inout Int
    ) throws(WireError) {
        try buffer.store(payloadType & 0x7F, at: position)
        position &+= lastHeaderLength
    }
}

/// The parts of a received RED payload.
///
/// Contains byte ranges instead of bytes, and is validated completely first: a payload that exceeds its packet is
/// refused as a whole.
/// - Source: RFC 2198 §3.
package struct RedundantPayload: Equatable, Sendable {
    /// A payload with more earlier blocks is refused, as in libwebrtc (`red_payload_splitter.cc`).
    package static let maximumBlocks = 32

    /// Payload type of the packet's own block: 7 bits.
    package let payloadType: UInt8
    /// The packet's own block, relative to the payload; may be empty.
    package let primary: Range<Int>
    /// Number of earlier blocks; see `RedundantBlockCursor`.
    package let earlierCount: Int

    /// Parses the payload of a decrypted packet, without padding.
    /// - Throws: `.truncated` if headers or blocks exceed it, `.invalid(.redundantBlockCount)` for too many blocks.
    package init(parsing payload: Span<UInt8>) throws(WireError) {
        var position = 0
        var length = 0
        var count = 0
        while try payload.uint8(at: position) & 0x80 != 0 {
            guard count < Self.maximumBlocks else { throw .invalid(.redundantBlockCount) }
            length &+= try Int(payload.uint32(at: position) & 0x3FF)
            count &+= 1
            position &+= RedundantAudio.headerLength
        }
        payloadType = try payload.uint8(at: position)
        position &+= RedundantAudio.lastHeaderLength
        try payload.require(position &+ length)
        primary = (position &+ length)..<payload.count
        earlierCount = count
    }
}

/// The audio of an earlier packet in a payload.
package struct RedundantBlock: Equatable, Sendable {
    /// 7 bits; it may differ from that of the packet's own block.
    package let payloadType: UInt8
    /// Ticks from its timestamp to the packet's own: 14 bits.
    package let offset: UInt32
    /// The block, relative to the payload; may be empty.
    package let range: Range<Int>
}

/// Iterates over the earlier blocks of a payload, in the order of the packet, without allocating.
package struct RedundantBlockCursor: Sendable {
    private var remaining: Int
    private var header = 0
    private var data: Int

    /// Begins before the first block.
    package init(_ payload: RedundantPayload) {
        remaining = payload.earlierCount
        data = payload.earlierCount &* RedundantAudio.headerLength &+ RedundantAudio.lastHeaderLength
    }

    /// The next block, or nil at the end.
    /// - Parameter payload: the payload that was parsed.
    package mutating func next(in payload: Span<UInt8>) -> RedundantBlock? {
        guard remaining > 0, let word = try? payload.uint32(at: header) else { return nil }
        let end = data &+ Int(word & 0x3FF)
        guard end <= payload.count else { return nil }
        defer {
            remaining &-= 1
            header &+= RedundantAudio.headerLength
            data = end
        }
        return RedundantBlock(
            payloadType: UInt8(truncatingIfNeeded: word >> 24 & 0x7F), offset: word >> 10 & 0x3FFF,
            range: data..<end)
    }
}

extension WireError.Field {
    /// More earlier blocks in a payload than the limit.
    package static var redundantBlockCount: Self { .init("red.blockCount") }
}
