import Wire

/// A complete PES packet.
struct PESPacket: Equatable, Sendable {
    /// Presentation time, in ticks of 90 kHz modulo 2^33; nil if the packet has none.
    let presentation: UInt64?
    /// Decoding time; equal to `presentation` if the packet has none of its own.
    let decoding: UInt64?
    /// Whether the multiplexer marked the packet as an entry point for decoders.
    let isRandomAccess: Bool
    let payload: [UInt8]
}

/// Reassembles the PES packets of one elementary stream.
///
/// Video packets rarely contain their length: they end where the next begins, one picture later.
/// - Source: ITU-T H.222.0 §2.4.3.3 (continuity), §2.4.3.6 and §2.4.3.7 (PES).
struct PESAssembler: Sendable {
    /// The result of one transport packet.
    enum Outcome: Equatable {
        case whole(PESPacket)
        /// A packet was lost in whole or in part, exceeds the limit, or is malformed.
        case lost
    }

    /// Bytes up to and including the header's own length field.
    private static let headerLength = 9

    /// Longest PES packet, in bytes.
    private let limit: Int
    private var collected: [UInt8] = []
    /// Total length from the header; nil if it is unknown.
    private var length: Int?
    /// Whether the current packet is complete so far.
    private var isCollecting = false
    private var isRandomAccess = false
    /// Counter of the latest transport packet with a payload; nil before the first.
    private var continuity: UInt8?

    init(limit: Int) {
        self.limit = limit
    }

    /// Appends the payload of a transport packet.
    /// - Returns: PES packets that are complete or lost now; at most one of each.
    mutating func take(_ payload: Span<UInt8>, _ header: TransportPacketHeader) -> [Outcome] {
        guard !payload.isEmpty else { return [] }
        var outcomes: [Outcome] = []
        if let continuity, !header.isDiscontinuous {
            // The standard permits sending a packet twice, with the same counter.
            if header.continuity == continuity { return [] }
            if header.continuity != (continuity + 1) & 0x0F {
                isCollecting = false
                outcomes.append(.lost)
            }
        }
        continuity = header.continuity
        if header.startsUnit {
            if let outcome = finish() { outcomes.append(outcome) }
            isCollecting = true
            isRandomAccess = header.isRandomAccess
            collected.removeAll(keepingCapacity: true)
            length = nil
        }
        guard isCollecting else { return outcomes }
        guard collected.count + payload.count <= limit else {
            isCollecting = false
            return outcomes + [.lost]
        }
        collected.append(payload)
        if length == nil, collected.count >= 6 {
            let told = Int(collected[4]) << 8 | Int(collected[5])
            if told > 0 { length = 6 + told }
        }
        if let length, collected.count >= length {
            collected.removeLast(collected.count - length)
            if let outcome = finish() { outcomes.append(outcome) }
        }
        return outcomes
    }

    /// Ends the current packet; nil if there is none.
    private mutating func finish() -> Outcome? {
        guard isCollecting else { return nil }
        isCollecting = false
        if let length, collected.count < length { return .lost }
        guard collected.count >= Self.headerLength, collected[0] == 0, collected[1] == 0, collected[2] == 1
        else { return .lost }
        let start = Self.headerLength + Int(collected[8])
        guard start <= collected.count else { return .lost }
        let bytes = collected.span
        let presentation = collected[7] & 0x80 != 0 ? Self.time(in: bytes, at: 9) : nil
        let decoding = collected[7] & 0xC0 == 0xC0 ? Self.time(in: bytes, at: 14) : nil
        return .whole(
            PESPacket(
                presentation: presentation, decoding: decoding ?? presentation,
                isRandomAccess: isRandomAccess, payload: Array(collected[start...])))
    }

    /// Reads a time stamp: 33 bits in five bytes, with marker bits between them.
    private static func time(in bytes: Span<UInt8>, at offset: Int) -> UInt64? {
        guard offset + 5 <= bytes.count else { return nil }
        return UInt64(bytes[offset] >> 1 & 7) << 30 | UInt64(bytes[offset + 1]) << 22
            | UInt64(bytes[offset + 2] >> 1) << 15 | UInt64(bytes[offset + 3]) << 7
            | UInt64(bytes[offset + 4] >> 1)
    }
}
