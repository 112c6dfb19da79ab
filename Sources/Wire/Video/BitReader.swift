/// Reads fields that are not aligned to bytes, the highest bit first.
///
/// Contains only a position: each call receives the bytes, because a stored `Span` is not available yet.
struct BitReader {
    /// In bits from the first byte.
    private(set) var position: Int
    /// In bits; reading past it throws.
    private let end: Int

    /// - Parameter range: in bytes.
    init(_ range: Range<Int>) {
        position = range.lowerBound &* 8
        end = range.upperBound &* 8
    }

    /// Reads an unsigned number.
    /// - Parameter count: at most 32.
    /// - Throws: `.truncated` past the end.
    mutating func bits(_ count: Int, in bytes: Span<UInt8>) throws(WireError) -> UInt32 {
        guard count <= end &- position else { throw .truncated }
        var value: UInt32 = 0
        for _ in 0..<count {
            let byte = try bytes.uint8(at: position >> 3)
            value = value << 1 | UInt32(byte >> UInt8(7 &- position & 7) & 1)
            position &+= 1
        }
        return value
    }

    mutating func flag(in bytes: Span<UInt8>) throws(WireError) -> Bool {
        try bits(1, in: bytes) != 0
    }

    mutating func skip(_ count: Int) throws(WireError) {
        guard count <= end &- position else { throw .truncated }
        position &+= count
    }

    /// Reads an Exp-Golomb code: `ue(v)` in H.264 §9.1, and `uvlc()` in AV1 §4.10.3.
    mutating func exponentialGolomb(in bytes: Span<UInt8>) throws(WireError) -> UInt32 {
        var zeros = 0
        while try !flag(in: bytes) {
            zeros &+= 1
            guard zeros < 32 else { throw .invalid(.exponentialGolomb) }
        }
        let rest = try bits(zeros, in: bytes)
        return (1 << UInt32(zeros)) &- 1 &+ rest
    }

    /// Reads a value below `limit` in as few bits as possible: `ns(n)` in AV1 §4.10.7.
    mutating func nonSymmetric(below limit: UInt32, in bytes: Span<UInt8>) throws(WireError) -> UInt32 {
        guard limit > 1 else { return 0 }
        let width = 32 &- limit.leadingZeroBitCount
        let short = (1 << UInt32(width)) &- limit
        let value = try bits(width &- 1, in: bytes)
        guard value >= short else { return value }
        return try (value << 1) &- short &+ bits(1, in: bytes)
    }
}

extension WireError.Field {
    /// A code longer than 32 bits.
    package static var exponentialGolomb: Self { .init("video.ue") }
}
