/// Remembers which of the latest sequence numbers were sent to a viewer.
///
/// A packet lost between publisher and server is missing at the viewer as well, whose reports count it as lost,
/// although this shows nothing about the viewer's path.
package struct DepartedNumbers: Sendable {
    /// How many numbers are remembered: what a source of 6 Mbit/s sends between two reports five seconds apart.
    package static let limit = 4_096

    /// One bit per number.
    private var words = [UInt64](repeating: 0, count: limit / 64)
    /// The first number that was remembered.
    private var first: Int64 = 0
    /// One above the highest; nil before any.
    private var end: Int64?

    package init() {}

    /// Notes that a number was sent; in any order.
    package mutating func note(_ number: Int64) {
        guard let end else {
            first = number
            self.end = number &+ 1
            return set(number, true)
        }
        if number >= end {
            // The numbers in between were not sent; clear what their slots held before.
            for missing in max(end, number &- Int64(Self.limit) &+ 1)..<number { set(missing, false) }
            self.end = number &+ 1
        }
        guard number >= lowest else { return }
        set(number, true)
    }

    /// How many numbers of a range were never sent; those no longer remembered count as sent.
    /// - Parameters:
    ///   - count: length of the range.
    ///   - last: the low 16 bits of its last number, from a report; the highest matching number is meant.
    package func missing(of count: Int, through last: UInt16) -> Int {
        guard let end, count > 0 else { return 0 }
        let behind = UInt16(truncatingIfNeeded: end &- 1) &- last
        guard behind < 0x8000 else { return 0 }
        let highest = end &- 1 &- Int64(behind)
        let start = max(highest &- Int64(min(count, Self.limit)) &+ 1, lowest, first)
        guard start <= highest else { return 0 }
        return (start...highest).count { !isSet($0) }
    }

    private var lowest: Int64 { (end ?? 0) &- Int64(Self.limit) }

    private mutating func set(_ number: Int64, _ value: Bool) {
        let place = Int(truncatingIfNeeded: number & Int64(Self.limit - 1))
        let bit: UInt64 = 1 << UInt64(place & 63)
        if value { words[place >> 6] |= bit } else { words[place >> 6] &= ~bit }
    }

    private func isSet(_ number: Int64) -> Bool {
        let place = Int(truncatingIfNeeded: number & Int64(Self.limit - 1))
        return words[place >> 6] >> UInt64(place & 63) & 1 == 1
    }
}

extension LossResponse.Interval {
    /// The interval without packets that were never sent: the viewer can neither have expected nor lost them.
    /// - Parameters:
    ///   - departed: for the reported stream; nil if it is not known.
    ///   - reception: the later of the two reports that delimit the interval.
    package func without(_ departed: DepartedNumbers?, through reception: SendStream.Reception) -> Self {
        let last = UInt16(truncatingIfNeeded: reception.highestSequenceNumber)
        let missing = departed?.missing(of: expected, through: last) ?? 0
        var result = self
        result.expected = max(expected - missing, 0)
        result.lost = min(max(lost - missing, 0), result.expected)
        return result
    }
}
