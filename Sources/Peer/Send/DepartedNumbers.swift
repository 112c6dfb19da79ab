/// Which of the latest sequence numbers left for a viewer.
///
/// A number that a publisher's network lost is missing at the viewer, too, whose reports count it as lost: it says
/// nothing of the viewer's path.
package struct DepartedNumbers: Sendable {
    /// Numbers that are remembered: what a source of 6 Mbit/s sends between two reports that are five seconds apart.
    package static let limit = 4_096

    /// A bit a number.
    private var words = [UInt64](repeating: 0, count: limit / 64)
    /// The first number that was remembered.
    private var first: Int64 = 0
    /// Behind the highest; nil before any.
    private var end: Int64?

    package init() {}

    /// Notes that a number left; in any order.
    package mutating func note(_ number: Int64) {
        guard let end else {
            first = number
            self.end = number &+ 1
            return set(number, true)
        }
        if number >= end {
            // What lies between did not leave, whatever its place stood for before.
            for missing in max(end, number &- Int64(Self.limit) &+ 1)..<number { set(missing, false) }
            self.end = number &+ 1
        }
        guard number >= lowest else { return }
        set(number, true)
    }

    /// How many numbers of a range never left; what is no longer remembered counts as having left.
    /// - Parameter last: with its low 16 bits, as receivers tell of it; the highest number that fits is meant.
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
    /// The same without what never left: a viewer cannot have expected it, nor lost it.
    /// - Parameters:
    ///   - departed: of the stream that was reported of; nil where that is not known.
    ///   - reception: the later of the two reports between which the interval lies.
    package func without(_ departed: DepartedNumbers?, through reception: SendStream.Reception) -> Self {
        let last = UInt16(truncatingIfNeeded: reception.highestSequenceNumber)
        let missing = departed?.missing(of: expected, through: last) ?? 0
        var result = self
        result.expected = max(expected - missing, 0)
        result.lost = min(max(lost - missing, 0), result.expected)
        return result
    }
}
