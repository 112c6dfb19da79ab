/// Arithmetic on 16-bit counters that wrap: RTP and transport-wide sequence numbers.
/// - Source: RFC 3550 §5.1, RFC 1982.
package enum SequenceNumber {
    /// How many steps lead from `old` to `new`, the short way round; negative when `new` is the older one.
    package static func distance(from old: UInt16, to new: UInt16) -> Int {
        Int(Int16(bitPattern: new &- old))
    }

    /// Of two numbers 32,768 apart neither is newer.
    package static func isNewer(_ candidate: UInt16, than reference: UInt16) -> Bool {
        Int16(bitPattern: candidate &- reference) > 0
    }
}

/// Turns 16-bit sequence numbers into 64-bit ones that never wrap.
///
/// Each number is taken as the one closest to the highest seen so far. The low 16 bits stay what they were,
/// and the first number becomes itself, so that for RTP the result is the packet index of SRTP (RFC 3711
/// §3.3.1).
package struct SequenceUnwrapper: Equatable, Sendable {
    /// The highest number seen, or `nil` before the first.
    package private(set) var highest: Int64?

    package init() {}

    /// What `sequenceNumber` stands for, without remembering it; for packets not yet authenticated.
    package func peek(_ sequenceNumber: UInt16) -> Int64 {
        guard let highest else { return Int64(sequenceNumber) }
        let last = UInt16(truncatingIfNeeded: highest)
        return highest &+ Int64(SequenceNumber.distance(from: last, to: sequenceNumber))
    }

    /// What `sequenceNumber` stands for; a newer one moves `highest`.
    package mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        let value = peek(sequenceNumber)
        highest = max(highest ?? value, value)
        return value
    }
}
