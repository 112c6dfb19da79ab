/// Remembers which of the last packet indices of one source were accepted.
///
/// Wide, because Firefox probes the bandwidth with old packets, and a slow path may reorder a whole burst.
/// - Source: RFC 3711 §3.3.2; the estimate of the index: §3.3.1, Appendix A.
struct ReplayWindow {
    /// How many indices up to the highest are remembered; older packets are refused.
    static let capacity: UInt64 = 1_024

    /// Nil before the first packet.
    private(set) var highest: UInt64?
    /// One bit for each remembered index, at its remainder by the capacity.
    private var seen: InlineArray<16, UInt64> = .init(repeating: 0)

    /// What `sequenceNumber` most likely stands for: the index closest to the highest one.
    ///
    /// Deviates from RFC 3711 Appendix A as libsrtp2 does: before the first wrap, a number that would lie below
    /// zero is one ahead instead, for there is nothing it could otherwise be.
    func index(of sequenceNumber: UInt16) -> UInt64 {
        guard let highest else { return UInt64(sequenceNumber) }
        let step = Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
        // Half the circle away is behind for Int16, and ahead for the RFC unless the highest is in the upper half.
        let isAhead = step == -32_768 && highest & 0x8000 == 0
        let guess = Int64(truncatingIfNeeded: highest) &+ (isAhead ? 32_768 : step)
        return guess < 0 ? UInt64(sequenceNumber) : UInt64(guess)
    }

    /// Whether a packet with this index may still be accepted.
    func admits(_ index: UInt64) -> Bool {
        guard let highest, index <= highest else { return true }
        guard highest &- index < Self.capacity else { return false }
        let (word, bit) = Self.position(index)
        return seen[word] & bit == 0
    }

    /// Notes an authentic packet.
    mutating func accept(_ index: UInt64) {
        let (word, bit) = Self.position(index)
        if let highest {
            if index > highest { forget(from: highest &+ 1, to: index) }
            self.highest = max(highest, index)
        } else {
            highest = index
        }
        seen[word] |= bit
    }

    /// Clears what stood for the indices a capacity before `first...last`.
    private mutating func forget(from first: UInt64, to last: UInt64) {
        guard last &- first < Self.capacity else {
            seen = .init(repeating: 0)
            return
        }
        var index = first
        while index <= last {
            let (word, bit) = Self.position(index)
            seen[word] &= ~bit
            index &+= 1
        }
    }

    private static func position(_ index: UInt64) -> (word: Int, bit: UInt64) {
        let slot = index & (capacity &- 1)
        return (Int(truncatingIfNeeded: slot >> 6), 1 << (slot & 63))
    }
}

/// The replay windows of the sources a peer sends.
///
/// Holds at most `limit` sources. When another one comes, that which has been silent for the longest (counted in
/// packets) is forgotten: only the peer itself can make sources, since only authentic packets do.
struct ReplayTable {
    static let limit = 64

    private struct Source {
        var ssrc: UInt32
        var lastUse: UInt64
        var window = ReplayWindow()
    }

    private var sources: [Source] = []
    /// Where the last packet's source stands: packets come in runs.
    private var recent = 0
    private var clock: UInt64 = 0

    var count: Int {
        sources.count
    }

    /// The packet index that `sequenceNumber` most likely stands for.
    mutating func index(of sequenceNumber: UInt16, ssrc: UInt32) -> UInt64 {
        guard let place = find(ssrc) else { return UInt64(sequenceNumber) }
        return sources[place].window.index(of: sequenceNumber)
    }

    mutating func admits(_ index: UInt64, ssrc: UInt32) -> Bool {
        guard let place = find(ssrc) else { return true }
        return sources[place].window.admits(index)
    }

    /// Notes an authentic packet.
    /// - Returns: the SSRC that had to be forgotten for it, if any.
    mutating func accept(_ index: UInt64, ssrc: UInt32) -> UInt32? {
        clock &+= 1
        var forgotten: UInt32?
        let place: Int
        if let known = find(ssrc) {
            place = known
        } else if sources.count < Self.limit {
            place = sources.count
            sources.append(Source(ssrc: ssrc, lastUse: clock))
        } else {
            place = sources.indices.min { sources[$0].lastUse < sources[$1].lastUse } ?? 0
            forgotten = sources[place].ssrc
            sources[place] = Source(ssrc: ssrc, lastUse: clock)
        }
        sources[place].lastUse = clock
        sources[place].window.accept(index)
        recent = place
        return forgotten
    }

    private mutating func find(_ ssrc: UInt32) -> Int? {
        if recent < sources.count, sources[recent].ssrc == ssrc { return recent }
        guard let place = sources.firstIndex(where: { $0.ssrc == ssrc }) else { return nil }
        recent = place
        return place
    }
}
