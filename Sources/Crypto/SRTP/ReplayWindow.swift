/// Records which of the latest packet indices of one source were accepted.
///
/// The window is wide because Firefox probes the bandwidth with old packets, and because a slow path may reorder a
/// whole burst.
/// - Source: RFC 3711 §3.3.2; the estimate of the index: §3.3.1, Appendix A.
struct ReplayWindow {
    /// Number of indices up to the highest that are recorded; older packets are refused.
    static let capacity: UInt64 = 1_024

    /// Nil before the first packet.
    private(set) var highest: UInt64?
    /// One bit for each recorded index, at the index modulo the capacity.
    private var seen: InlineArray<16, UInt64> = .init(repeating: 0)

    /// The index that `sequenceNumber` most likely stands for: the one closest to the highest.
    ///
    /// Deviates from RFC 3711 Appendix A as libsrtp2 does: before the first wrap, a number whose index would be
    /// negative counts as ahead, because no packet can be before the first.
    func index(of sequenceNumber: UInt16) -> UInt64 {
        guard let highest else { return UInt64(sequenceNumber) }
        let step = Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
        // Exactly half the circle away: Int16 reads that as behind, but for the RFC it is ahead unless the highest
        // number is in the upper half.
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

    /// Records an authentic packet.
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

    /// Clears the bits that the indices `first...last` take over from indices a capacity before.
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

    /// The place of an index among the bits.
    private static func position(_ index: UInt64) -> (word: Int, bit: UInt64) {
        let slot = index & (capacity &- 1)
        return (Int(truncatingIfNeeded: slot >> 6), 1 << (slot & 63))
    }
}
