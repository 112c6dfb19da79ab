/// What feedback says of one packet, and how long its time difference is.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.1.
enum StatusSymbol: UInt16 {
    case notReceived = 0
    /// One byte, unsigned.
    case smallDelta = 1
    /// Two bytes, signed.
    case largeDelta = 2
}

/// A word that speaks of 1 to 8,191 packets.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.3 (run length), §3.1.4 (status vector).
enum StatusChunk {
    case run(symbol: UInt16, length: Int)
    /// 14 packets, a bit each.
    case oneBitVector(UInt16)
    /// 7 packets, two bits each.
    case twoBitVector(UInt16)

    private static let longestRun = 8_191

    init(word: UInt16) {
        if word & 0x8000 == 0 {
            self = .run(symbol: word >> 13, length: Int(word & 0x1FFF))
        } else if word & 0x4000 == 0 {
            self = .oneBitVector(word & 0x3FFF)
        } else {
            self = .twoBitVector(word & 0x3FFF)
        }
    }

    /// Collects the packets of this chunk that were received.
    /// - Parameters:
    ///   - limit: on what is collected; each has a byte of its own, so no more fit than the feedback is long.
    /// - Returns: the index after the chunk, at most `end`.
    func collect(
        from index: Int, upTo end: Int, limit: Int, into received: inout [(index: Int, isLarge: Bool)]
    ) throws(WireError) -> Int {
        switch self {
        case .run(let symbol, let length):
            // A run of no packets would let a few bytes keep the parser busy for nothing.
            guard length > 0 else { throw .invalid(.transportFeedbackStatus) }
            let runEnd = min(index &+ length, end)
            guard symbol != StatusSymbol.notReceived.rawValue else { return runEnd }
            guard received.count &+ (runEnd &- index) <= limit else { throw .truncated }
            for index in index..<runEnd { try Self.collect(symbol, index, into: &received) }
            return runEnd
        case .oneBitVector(let bits):
            let vectorEnd = min(index &+ 14, end)
            for position in index..<vectorEnd {
                try Self.collect(bits >> (13 &- UInt16(position &- index)) & 1, position, into: &received)
            }
            return vectorEnd
        case .twoBitVector(let bits):
            let vectorEnd = min(index &+ 7, end)
            for position in index..<vectorEnd {
                let shift = 12 &- 2 &* UInt16(position &- index)
                try Self.collect(bits >> shift & 3, position, into: &received)
            }
            return vectorEnd
        }
    }

    private static func collect(
        _ symbol: UInt16, _ index: Int, into received: inout [(index: Int, isLarge: Bool)]
    ) throws(WireError) {
        switch StatusSymbol(rawValue: symbol) {
        case .notReceived: break
        case .smallDelta: received.append((index, false))
        case .largeDelta: received.append((index, true))
        case nil: throw .invalid(.transportFeedbackStatus)
        }
    }

    /// Appends the chunks that speak of `symbols`, taking at each point the kind that covers most.
    static func append(_ symbols: [StatusSymbol], to bytes: inout [UInt8]) {
        var rest = symbols[...]
        while let first = rest.first {
            let run = rest.prefix { $0 == first }.prefix(longestRun).count
            let hasLarge = rest.prefix(14).contains(.largeDelta)
            if run >= (hasLarge ? 7 : 14) || run == rest.count {
                bytes.append(bigEndian: first.rawValue << 13 | UInt16(truncatingIfNeeded: run))
                rest = rest.dropFirst(run)
            } else if hasLarge {
                bytes.append(bigEndian: 0xC000 | vector(rest.prefix(7), width: 2))
                rest = rest.dropFirst(7)
            } else {
                bytes.append(bigEndian: 0x8000 | vector(rest.prefix(14), width: 1))
                rest = rest.dropFirst(14)
            }
        }
    }

    /// Fourteen bits, the first symbol in the highest ones; what is missing at the end is "not received".
    private static func vector(_ symbols: ArraySlice<StatusSymbol>, width: UInt16) -> UInt16 {
        var bits: UInt16 = 0
        var shift: UInt16 = 14
        for symbol in symbols {
            shift &-= width
            bits |= symbol.rawValue << shift
        }
        return bits
    }
}
