import Base

/// How many earlier packets of sound each packet to one viewer carries again, by what share of them gets lost.
///
/// Goes up at once and down late: each earlier packet costs as much again as the sound, some tens of kilobits a second,
/// and a gap is heard.
struct AudioRedundancy {
    /// Earlier packets that one carries at most: two in a row are lost seldom, three hardly ever.
    static let maximumDepth = 2
    /// Share of the packets lost from which on one is carried, and both.
    private static let some = 0.01
    private static let much = 0.04
    /// The share is that of about so many packets.
    private static let memory = 200.0
    /// Less is carried only after less would have done for so long.
    private static let calm = Duration.seconds(10)

    /// Earlier packets that one carries.
    private(set) var depth = 0
    private var share = 0.0
    private var calmSince: MonotonicTime?
    /// The viewer's numbers of the first and of the latest packet that carried others.
    private var carriers: ClosedRange<Int64>?
    /// What the latest of them carried, at each index's remainder; empty until there is one.
    private var carried: [(index: Int64, distances: Distances)] = []
    /// Five seconds of sound.
    private static let remembered = 256

    /// Takes in what became of some packets.
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

    /// A packet left that carries others.
    mutating func note(_ distances: Distances, by index: Int64) {
        if carried.isEmpty {
            carried = Array(repeating: (-1, Distances(rawValue: 0)), count: Self.remembered)
        }
        // One that comes very late is not known, rather than the one whose place it would take.
        if carried[Self.place(of: index)].index <= index {
            carried[Self.place(of: index)] = (index, distances)
        }
        carriers = min(carriers?.lowerBound ?? index, index)...max(carriers?.upperBound ?? index, index)
    }

    /// What a packet carried: sent again under its index, it has to be the same byte for byte (RFC 7714 §8.1).
    /// - Returns: nil where that is not known any more.
    func distances(of index: Int64) -> Distances? {
        guard let carriers, carriers.contains(index) else { return Distances(rawValue: 0) }
        let known = carried[Self.place(of: index)]
        // Between two that are known lies one that carried nothing.
        if known.index == index { return known.distances }
        return index > carriers.upperBound - Int64(Self.remembered) ? Distances(rawValue: 0) : nil
    }

    private static func place(of index: Int64) -> Int {
        Int(truncatingIfNeeded: index & Int64(remembered - 1))
    }
}

/// Which packets before one it carries: bit 0 for the one before it, bit 1 for the one before that.
struct Distances: OptionSet {
    let rawValue: UInt8

    /// All up to a depth.
    init(upTo depth: Int) { rawValue = UInt8(truncatingIfNeeded: (1 << min(max(depth, 0), 7)) - 1) }

    init(rawValue: UInt8) { self.rawValue = rawValue }

    func contains(distance: Int) -> Bool { rawValue >> UInt8(truncatingIfNeeded: distance - 1) & 1 == 1 }
}

/// Where earlier packets of sound lie that a packet carries again, the oldest first.
struct EarlierSound {
    struct Block {
        /// In the history.
        var payload = 0..<0
        /// Ticks before the packet's own time stamp.
        var offset: UInt32 = 0
    }

    private(set) var blocks = InlineArray<2, Block>(repeating: Block())
    private(set) var count = 0
    /// Which of the packets before it those are.
    private(set) var distances = Distances(rawValue: 0)

    /// Adds an older one.
    mutating func prepend(_ block: Block, distance: Int) {
        guard count < blocks.count else { return }
        distances.insert(Distances(rawValue: 1 << UInt8(truncatingIfNeeded: distance - 1)))
        if count > 0 { blocks[1] = blocks[0] }
        blocks[0] = block
        count += 1
    }
}
