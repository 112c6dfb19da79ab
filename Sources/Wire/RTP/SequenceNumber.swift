/// Arithmetic on 16-bit counters that wrap: RTP and transport-wide sequence numbers.
/// - Source: RFC 3550 §5.1, RFC 1982.
package enum SequenceNumber {
    /// Steps from `old` to `new` in the shorter direction; negative if `new` is older.
    package static func distance(from old: UInt16, to new: UInt16) -> Int {
        Int(Int16(bitPattern: new &- old))
    }

    /// Whether a number is newer; of two numbers 32,768 apart neither is.
    package static func isNewer(_ candidate: UInt16, than reference: UInt16) -> Bool {
        Int16(bitPattern: candidate &- reference) > 0
    }
}

/// Turns 16-bit sequence numbers into 64-bit ones that never wrap.
///
/// Each number is interpreted as the one closest to the highest so far. The low 16 bits are preserved, and the
/// first number is unchanged, so that for RTP the result is the packet index of SRTP (RFC 3711 §3.3.1).
package struct SequenceUnwrapper: Equatable, Sendable {
    /// The highest number so far, or `nil` before the first.
    package private(set) var highest: Int64?

    package init() {}

    /// The 64-bit value of `sequenceNumber`, without remembering it; for packets not yet authenticated.
    package func peek(_ sequenceNumber: UInt16) -> Int64 {
        guard let highest else { return Int64(sequenceNumber) }
        let last = UInt16(truncatingIfNeeded: highest)
        return highest &+ Int64(SequenceNumber.distance(from: last, to: sequenceNumber))
    }

    /// The 64-bit value of `sequenceNumber`; a newer one advances `highest`.
    package mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        let value = peek(sequenceNumber)
        highest = max(highest ?? value, value)
        return value
    }
}
