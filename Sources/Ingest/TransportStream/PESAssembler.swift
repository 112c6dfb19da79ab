import Wire

/// A PES packet that came whole.
struct PESPacket: Equatable, Sendable {
    /// When it is shown, in ticks of 90 kHz modulo 2^33; nil where it is not told.
    let presentation: UInt64?
    /// When it is decoded; as `presentation` where it is not told.
    let decoding: UInt64?
    let isRandomAccess: Bool
    let payload: [UInt8]
}

/// Puts the PES packets of one stream together.
///
/// Those of pictures seldom tell their length: they end where the next begins, a picture later.
/// - Source: ITU-T H.222.0 §2.4.3.3 (continuity), §2.4.3.6 and §2.4.3.7 (PES).
struct PESAssembler: Sendable {
    enum Outcome: Equatable {
        case whole(PESPacket)
        /// A packet, or a part of one, did not come, was too long or made no sense.
        case lost
    }

    private static let headerLength = 9

    private let limit: Int
    private var collected: [UInt8] = []
    /// By its header; nil where that does not tell.
    private var length: Int?
    private var isCollecting = false
    private var isRandomAccess = false
    private var continuity: UInt8?

    init(limit: Int) {
        self.limit = limit
    }

    mutating func take(_ payload: Span<UInt8>, _ header: TransportPacketHeader) -> [Outcome] {
        guard !payload.isEmpty else { return [] }
        var outcomes: [Outcome] = []
        if let continuity, !header.isDiscontinuous {
            // A packet may be sent twice.
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

    /// What was collected is all of it.
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

    /// 33 bits in five bytes.
    private static func time(in bytes: Span<UInt8>, at offset: Int) -> UInt64? {
        guard offset + 5 <= bytes.count else { return nil }
        return UInt64(bytes[offset] >> 1 & 7) << 30 | UInt64(bytes[offset + 1]) << 22
            | UInt64(bytes[offset + 2] >> 1) << 15 | UInt64(bytes[offset + 3]) << 7
            | UInt64(bytes[offset + 4] >> 1)
    }
}
