/// Unwraps the sequence numbers of one received SSRC, and remembers which of the latest ones arrived.
///
/// Extended numbers have 64 bits and never wrap; their low 16 bits are those on the wire, and the first packet
/// keeps its number.
/// - Source: RFC 3550 A.1. Deviates in two ways, because packets here are already authenticated by SRTP: there is
///   no probation, and a jump forward is believed immediately. A jump far back counts as a restarted sender only
///   when a second packet confirms it, as in the RFC; its numbers then continue above all earlier ones.
package struct SequenceWindow: Sendable {
    /// The place of a packet among those before it.
    package enum Place: Equatable, Sendable {
        /// Newer than all before it; `missing` of the numbers right below it have not arrived.
        case ahead(Int64, missing: Int)
        /// Newer, but so far ahead, or after a restart, that the packets in between count as never sent.
        case jumped(Int64)
        /// Older than the newest, arrived for the first time.
        case late(Int64)
        case duplicate(Int64)
        /// Older than the remembered numbers.
        case tooOld
    }

    /// How many numbers below the highest are remembered.
    package static let capacity: Int64 = 2_048
    /// A larger gap is a jump and not a loss (MAX_DROPOUT).
    package static let maximumDropout = 3_000

    /// Extended; nil before the first packet.
    package private(set) var highest: Int64?
    /// The oldest number that counts as part of the stream.
    package private(set) var lowest: Int64 = 0
    /// One bit for each remembered number, at its remainder by the capacity.
    private var seen: [UInt64] = []
    /// The number that would confirm a restart.
    private var confirming: UInt16?

    package init() {}

    /// Determines the place of a packet and marks it as arrived.
    /// - Parameter isRetransmission: whether the number is from an RTX or RED packet: such a number is never
    ///   believed far ahead, and is never a sign of a restart.
    package mutating func insert(_ sequenceNumber: UInt16, isRetransmission: Bool) -> Place {
        guard let highest else {
            seen = Array(repeating: 0, count: Int(Self.capacity / 64))
            let index = Int64(sequenceNumber)
            self.highest = index
            lowest = index
            mark(index)
            return .ahead(index, missing: 0)
        }
        let step = Int(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
        let index = highest &+ Int64(step)
        if step > 0 {
            if isRetransmission, step > Self.maximumDropout { return .tooOld }
            confirming = nil
            return moveAhead(from: highest, to: index)
        }
        if index > highest &- Self.capacity {
            if isMarked(index) { return .duplicate(index) }
            mark(index)
            lowest = min(lowest, index)
            return .late(index)
        }
        guard !isRetransmission else { return .tooOld }
        guard confirming == sequenceNumber else {
            confirming = sequenceNumber &+ 1
            return .tooOld
        }
        confirming = nil
        let forward = Int64(sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        return jump(to: highest &+ forward)
    }

    /// The index of a packet with this number, whether or not it has arrived.
    /// - Returns: nil before the first packet, and so far from the newest that the packet may be from after a jump
    ///   or restart.
    package func index(of sequenceNumber: UInt16) -> Int64? {
        guard let highest else { return nil }
        let step = Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
        guard step <= Int64(Self.maximumDropout), step > -Self.capacity else { return nil }
        return highest &+ step
    }

    /// Whether a packet of the stream has not arrived; true for all newer than the newest.
    package func isMissing(_ index: Int64) -> Bool {
        guard let highest, index > lowest, index > highest &- Self.capacity else { return false }
        return index > highest || !isMarked(index)
    }

    private mutating func moveAhead(from highest: Int64, to index: Int64) -> Place {
        let missing = Int(index &- highest &- 1)
        guard missing <= Self.maximumDropout else { return jump(to: index) }
        if missing >= Self.capacity {
            forgetAll()
        } else if missing > 0 {
            for skipped in (highest &+ 1)..<index { unmark(skipped) }
        }
        self.highest = index
        mark(index)
        return .ahead(index, missing: missing)
    }

    private mutating func jump(to index: Int64) -> Place {
        forgetAll()
        highest = index
        lowest = index
        mark(index)
        return .jumped(index)
    }

    private mutating func forgetAll() {
        for word in seen.indices { seen[word] = 0 }
    }

    private func isMarked(_ index: Int64) -> Bool {
        let (word, bit) = Self.position(index)
        return seen[word] & bit != 0
    }

    private mutating func mark(_ index: Int64) {
        let (word, bit) = Self.position(index)
        seen[word] |= bit
    }

    private mutating func unmark(_ index: Int64) {
        let (word, bit) = Self.position(index)
        seen[word] &= ~bit
    }

    private static func position(_ index: Int64) -> (word: Int, bit: UInt64) {
        let slot = Int(truncatingIfNeeded: index & (capacity &- 1))
        return (slot >> 6, 1 << UInt64(slot & 63))
    }
}
