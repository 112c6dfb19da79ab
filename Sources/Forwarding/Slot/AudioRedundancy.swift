import Base

/// Decides how many earlier audio packets each packet to one viewer contains, by the share of lost packets.
///
/// The number goes up immediately and down late. Each earlier packet costs as much bandwidth as the audio itself,
/// some tens of kilobits a second, but gaps are audible.
struct AudioRedundancy {
    /// Maximum number of earlier packets in a packet: two losses in a row are rare, three very rare.
    static let maximumDepth = 2
    /// Shares of lost packets from which one earlier packet is contained, and two.
    private static let some = 0.01
    private static let much = 0.04
    /// Approximate number of packets over which the share is averaged.
    private static let memory = 200.0
    /// The number goes down only after a smaller one would have sufficed for this long.
    private static let calm = Duration.seconds(10)

    /// Present number of earlier packets in each packet.
    private(set) var depth = 0
    /// Average share of lost packets, 0 to 1.
    private var share = 0.0
    /// Since when a smaller number would suffice; nil while it would not.
    private var calmSince: MonotonicTime?
    /// Packet indices, in the viewer's numbering, of the first and the latest packet that contained earlier ones.
    private var carriers: ClosedRange<Int64>?
    /// What recent packets contained, in a ring by index; empty until there is one.
    private var carried: [(index: Int64, distances: Distances)] = []
    /// Size of the ring, a power of two: about five seconds of audio in packets of 20 ms.
    private static let remembered = 256

    /// Adapts the number to reported loss.
    /// - Parameters:
    ///   - lost: number of packets that were lost.
    ///   - told: number of packets reported on.
    mutating func note(lost: Int, of told: Int, at now: MonotonicTime) {
        guard told > 0 else { return }
        let new = Double(min(max(lost, 0), told)) / Double(told)
        share += (new - share) * min(Double(told) / Self.memory, 1)
        let wanted = share >= Self.much ? Self.maximumDepth : share >= Self.some ? 1 : 0
        guard wanted < depth else {
            depth = wanted
            calmSince = nil
            return
        }
        let start = calmSince ?? now
        calmSince = start
        guard now >= start + Self.calm else { return }
        depth = wanted
        calmSince = nil
    }

    /// Records a packet that contains earlier ones.
    mutating func note(_ distances: Distances, by index: Int64) {
        if carried.isEmpty {
            carried = Array(repeating: (-1, Distances(rawValue: 0)), count: Self.remembered)
        }
        // A packet that is sent very late is not recorded, so that it does not displace a newer one.
        if carried[Self.place(of: index)].index <= index {
            carried[Self.place(of: index)] = (index, distances)
        }
        carriers = min(carriers?.lowerBound ?? index, index)...max(carriers?.upperBound ?? index, index)
    }

    /// Which earlier packets a packet contained: a packet that is sent again under its index must be identical (RFC
    /// 7714 §8.1).
    /// - Returns: nil if that is no longer known.
    func distances(of index: Int64) -> Distances? {
        guard let carriers, carriers.contains(index) else { return Distances(rawValue: 0) }
        let known = carried[Self.place(of: index)]
        // A packet within the ring's reach that has no entry contained nothing.
        if known.index == index { return known.distances }
        return index > carriers.upperBound - Int64(Self.remembered) ? Distances(rawValue: 0) : nil
    }

    private static func place(of index: Int64) -> Int {
        Int(truncatingIfNeeded: index & Int64(remembered - 1))
    }
}

/// A set of distances back to earlier packets: bit 0 for the packet directly before, bit 1 for the one before that.
struct Distances: OptionSet {
    let rawValue: UInt8

    /// All distances up to a depth.
    init(upTo depth: Int) { rawValue = UInt8(truncatingIfNeeded: (1 << min(max(depth, 0), 7)) - 1) }

    init(rawValue: UInt8) { self.rawValue = rawValue }

    func contains(distance: Int) -> Bool { rawValue >> UInt8(truncatingIfNeeded: distance - 1) & 1 == 1 }
}

/// The places of the earlier audio packets that a packet contains, the oldest first.
struct EarlierSound {
    struct Block {
        /// Place in the history.
        var payload = 0..<0
        /// Ticks before the containing packet's timestamp.
        var offset: UInt32 = 0
    }

    private(set) var blocks = InlineArray<2, Block>(repeating: Block())
    private(set) var count = 0
    /// Distances of the contained packets.
    private(set) var distances = Distances(rawValue: 0)

    /// Adds an older packet before those that are there.
    mutating func prepend(_ block: Block, distance: Int) {
        guard count < blocks.count else { return }
        distances.insert(Distances(rawValue: 1 << UInt8(truncatingIfNeeded: distance - 1)))
        if count > 0 { blocks[1] = blocks[0] }
        blocks[0] = block
        count += 1
    }
}
