import TestSupport

/// Writes fields that are not aligned to bytes, the highest bit first; what does not matter is random.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []
    /// Bits of the last byte that are not written yet.
    private var free = 0
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func bits(_ value: UInt64, _ count: Int) {
        for place in stride(from: count - 1, through: 0, by: -1) {
            if free == 0 {
                bytes.append(0)
                free = 8
            }
            free -= 1
            if value >> UInt64(place) & 1 == 1 { bytes[bytes.count - 1] |= 1 << UInt8(free) }
        }
    }

    mutating func flag(_ value: Bool) {
        bits(value ? 1 : 0, 1)
    }

    /// Writes an Exp-Golomb code: `ue(v)` in H.264 §9.1 and H.265 §9.2, `uvlc()` in AV1 §4.10.3.
    mutating func code(_ value: UInt64) {
        let width = 64 - (value + 1).leadingZeroBitCount
        bits(0, width - 1)
        bits(value + 1, width)
    }

    /// Writes a signed code: `se(v)` in H.264 §9.1.1.
    mutating func signedCode(_ value: Int) {
        code(value > 0 ? UInt64(2 * value - 1) : UInt64(-2 * value))
    }

    /// Ends the payload with a one, and zeros up to the next byte.
    mutating func end() {
        flag(true)
        while free > 0 { flag(false) }
    }

    // MARK: At random

    mutating func number(_ range: ClosedRange<Int>) -> Int {
        .random(in: range, using: &random)
    }

    mutating func noise(_ count: Int) {
        for _ in 0..<count {
            let value = number(0...1)
            bits(UInt64(value), 1)
        }
    }

    /// Writes a flag at random.
    mutating func anyFlag() -> Bool {
        let value = number(0...1) == 1
        flag(value)
        return value
    }

    /// Writes a code at random.
    @discardableResult mutating func anyCode(_ range: ClosedRange<Int>) -> Int {
        let value = number(range)
        code(UInt64(value))
        return value
    }

    /// The bytes with a 3 wherever they would look like a start code (H.264 §7.4.1).
    var escaped: [UInt8] {
        var escaped: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte <= 3 {
                escaped.append(3)
                zeros = 0
            }
            escaped.append(byte)
            zeros = byte == 0 ? zeros + 1 : 0
        }
        return escaped
    }
}
