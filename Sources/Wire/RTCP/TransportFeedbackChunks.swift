/// The status of one packet in feedback, and with it the length of its time difference.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.1.
enum StatusSymbol: UInt16 {
    case notReceived = 0
    /// One byte, unsigned.
    case smallDelta = 1
    /// Two bytes, signed.
    case largeDelta = 2
}

/// A 16-bit word with the status of 1 to 8,191 packets.
/// - Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.3 (run length), §3.1.4 (status vector).
enum StatusChunk {
    case run(symbol: UInt16, length: Int)
    /// 14 packets, one bit each.
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
    ///   - limit: bound for the number collected; each has at least one byte of its own, so no more than the
    ///     feedback's length can be valid.
    /// - Returns: the index after the chunk, at most `end`.
    func collect(
        from index: Int, upTo end: Int, limit: Int, into received: inout [(index: Int, isLarge: Bool)]
    ) throws(WireError) -> Int {
        switch self {
        case .run(let symbol, let length):
            // Runs of length 0 would let a few bytes keep the parser busy.
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

    /// Appends the chunks for `symbols`, each of the kind that covers most symbols.
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

    /// Fourteen bits, with the first symbol in the highest ones; absent symbols at the end mean "not received".
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
