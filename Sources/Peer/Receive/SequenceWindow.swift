/// Unwraps the sequence numbers of one received SSRC, and remembers which of the last ones were seen.
///
/// Numbers become 64-bit ones that never wrap and whose low 16 bits are those on the wire; the first packet's
/// number stands for itself.
/// - Source: RFC 3550 A.1. Deviates in two ways, because SRTP has authenticated what comes here: there is no
///   probation, and a jump forward is believed at once. A jump far back is a restarted sender only when a second
///   packet confirms it, as the RFC says; its numbers then go on above all earlier ones.
package struct SequenceWindow: Sendable {
    /// Where a packet belongs among those before it.
    package enum Place: Equatable, Sendable {
        /// Newer than all before it; `missing` of the numbers right below it have not been seen.
        case ahead(Int64, missing: Int)
        /// Newer, but so far ahead, or after a restart, that the packets between never existed for us.
        case jumped(Int64)
        /// Older than the newest, seen for the first time.
        case late(Int64)
        case duplicate(Int64)
        /// Older than what is remembered.
        case tooOld
    }

    /// How many numbers below the highest are remembered.
    package static let capacity: Int64 = 2_048
    /// More numbers than this left out are a jump, not a loss (MAX_DROPOUT).
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

    /// Finds the place of a packet and remembers it.
    /// - Parameter isRetransmission: its number was taken from an RTX packet: never believed far ahead, and
    ///   never a sign of a restart.
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

    /// The index that a packet with this number has, or would get; nil for one so far from the newest that it may be
    /// from after a jump or a restart, and before the first.
    package func index(of sequenceNumber: UInt16) -> Int64? {
        guard let highest else { return nil }
        let step = Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
        guard step <= Int64(Self.maximumDropout), step > -Self.capacity else { return nil }
        return highest &+ step
    }

    /// Whether a packet of the stream was not seen; so are all newer than the newest.
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
