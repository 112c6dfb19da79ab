import Base
import Wire

/// The recent packets of one RTP stream, decrypted, in one block of memory.
///
/// All slots' retransmissions come from this one copy, and so do the pictures that a new viewer begins with
/// (`GOPCache`). Packets are stored one after another in a ring of bytes, so that storing one is a copy and an index
/// entry. Behind each there is room for padding, which makes packets that are sent together equally long. The ring
/// starts small. It doubles, up to a limit, while it would overwrite packets younger than `retention`, or packets
/// that are to be kept. So a quiet track costs little, and a busy one can always answer a NACK.
package struct PacketHistory: ~Copyable {
    private struct Entry {
        var sequenceNumber: Int64 = .min
        /// Number of bytes ever claimed before it; the place in `storage` is this modulo the capacity.
        var position: Int64 = 0
        var arrival = MonotonicTime.zero
        /// At most `initialCapacity / 2`.
        var length: UInt16 = 0
        var pictureID: UInt16 = 0
        var layers: UInt16 = 0
        /// Number of padding bytes behind it; `undecided` until it is first sent.
        var padding = undecided
    }

    /// Number of bytes reserved behind each packet for padding.
    package static let spare = 24
    private static let undecided = UInt8.max

    /// How long a packet is kept if the memory limit allows it.
    package let retention: Duration
    /// Capacity up to which the ring grows for `retention`, in bytes.
    package let maximumCapacity: Int
    /// Capacity up to which the ring grows for packets that are to be kept, in bytes; at least `maximumCapacity`.
    package private(set) var keptCapacity: Int
    /// Maximum size of the index; a power of two.
    private let maximumPackets: Int
    /// The ring with the packets; to be read only through ranges from `range(of:)`.
    package private(set) var storage: [UInt8] = []
    /// The index by sequence number modulo its size, which is a power of two.
    private var entries: [Entry]
    /// Number of bytes claimed so far.
    private var head: Int64 = 0
    /// No packet below this sequence number is intact.
    private var oldest: Int64 = .max
    /// The highest sequence number stored; nil while empty.
    package private(set) var newest: Int64?
    /// What must not be overwritten: the lowest sequence number, and the first byte of the packets from it on.
    private var kept: (sequenceNumber: Int64, position: Int64)?

    private static let initialCapacity = 16 * 1024
    private static let initialPackets = 64

    /// - Parameter maximumPackets: rounded up to a power of two.
    package init(maximumCapacity: Int, maximumPackets: Int, retention: Duration = .milliseconds(1_000)) {
        self.maximumCapacity = maximumCapacity
        keptCapacity = maximumCapacity
        self.retention = retention
        var count = Self.initialPackets
        while count < maximumPackets { count *= 2 }
        self.maximumPackets = count
        entries = Array(repeating: Entry(), count: Self.initialPackets)
    }

    // MARK: Storing

    /// Stores a copy of `packet[range]`.
    ///
    /// - Parameters:
    ///   - sequenceNumber: the source's, extended. A packet far older than the newest is ignored.
    ///   - pictureID: stored with the packet; see `pictureID(of:)`.
    ///   - layers: stored with the packet; see `layers(of:)`.
    /// - Returns: whether it is in the history now.
    @discardableResult
    package mutating func store(
        _ packet: Span<UInt8>, _ range: Range<Int>, sequenceNumber: Int64, pictureID: UInt16 = 0,
        layers: UInt16 = 0, at now: MonotonicTime
    ) -> Bool {
        guard range.lowerBound >= 0, range.upperBound <= packet.count, range.count <= Self.initialCapacity / 2
        else {
            return false
        }
        if let newest, sequenceNumber <= newest &- Int64(entries.count) { return false }
        makeEntry(for: sequenceNumber, at: now)
        let position = claim(range.count + Self.spare, at: now)
        let offset = Int(position % Int64(storage.count))
        var bytes = storage.mutableSpan
        for index in 0..<range.count { bytes[offset &+ index] = packet[range.lowerBound &+ index] }
        entries[slot(of: sequenceNumber)] = Entry(
            sequenceNumber: sequenceNumber, position: position, arrival: now,
            length: UInt16(truncatingIfNeeded: range.count), pictureID: pictureID, layers: layers)
        newest = max(newest ?? .min, sequenceNumber)
        oldest = min(oldest, sequenceNumber)
        return true
    }

    /// Removes all packets, for instance when the source restarts its sequence numbers.
    package mutating func removeAll() {
        for index in entries.indices { entries[index] = Entry() }
        newest = nil
        oldest = .max
        kept = nil
    }

    // MARK: Reading

    /// The packet's place in `storage`; nil if it never arrived or is no longer there.
    package func range(of sequenceNumber: Int64) -> Range<Int>? {
        let entry = entries[slot(of: sequenceNumber)]
        guard entry.sequenceNumber == sequenceNumber, isIntact(entry) else { return nil }
        let offset = Int(entry.position % Int64(storage.count))
        return offset..<(offset + Int(entry.length))
    }

    /// The picture ID stored with the packet; 0 for one that is not there.
    package func pictureID(of sequenceNumber: Int64) -> UInt16 {
        let entry = entries[slot(of: sequenceNumber)]
        return entry.sequenceNumber == sequenceNumber ? entry.pictureID : 0
    }

    /// The layers stored with the packet; 0 for one that is not there.
    package func layers(of sequenceNumber: Int64) -> UInt16 {
        let entry = entries[slot(of: sequenceNumber)]
        return entry.sequenceNumber == sequenceNumber ? entry.layers : 0
    }

    /// When the packet arrived; nil for one that is not there.
    package func arrival(of sequenceNumber: Int64) -> MonotonicTime? {
        let entry = entries[slot(of: sequenceNumber)]
        return entry.sequenceNumber == sequenceNumber && isIntact(entry) ? entry.arrival : nil
    }

    /// Number of packets in the history from `sequenceNumber` on.
    package func count(from sequenceNumber: Int64) -> Int {
        guard let newest, newest >= sequenceNumber else { return 0 }
        return numbers(from: sequenceNumber, through: newest).count { range(of: $0) != nil }
    }

    /// When the packet after the first missing one from `sequenceNumber` on arrived; nil if none is missing.
    package func firstGapFound(from sequenceNumber: Int64) -> MonotonicTime? {
        guard let newest, newest >= sequenceNumber else { return nil }
        var isMissing = false
        for number in numbers(from: sequenceNumber, through: newest) {
            if range(of: number) == nil {
                isMissing = true
            } else if isMissing {
                return entries[slot(of: number)].arrival
            }
        }
        return nil
    }

    /// The range, limited to as many numbers as the index can hold, so that a jump of the source costs nothing.
    private func numbers(from first: Int64, through last: Int64) -> ClosedRange<Int64> {
        min(max(first, last &- Int64(entries.count) &+ 1), last)...last
    }

    // MARK: Padding

    /// Decides how many bytes of padding follow a packet and writes them, unless that is decided already.
    ///
    /// It is decided once, because a receiver may get the packet twice under one index, and both must be identical.
    /// - Parameter count: at most `spare`; a larger value means no padding.
    /// - Returns: the number that was decided.
    package mutating func pad(_ sequenceNumber: Int64, by count: Int) -> Int {
        guard let range = range(of: sequenceNumber) else { return 0 }
        let slot = slot(of: sequenceNumber)
        guard entries[slot].padding == Self.undecided else { return Int(entries[slot].padding) }
        let count = count > 0 && count <= Self.spare ? count : 0
        entries[slot].padding = UInt8(truncatingIfNeeded: count)
        guard count > 0 else { return 0 }
        for index in 0..<count { storage[range.upperBound + index] = 0 }
        storage[range.upperBound + count - 1] = UInt8(truncatingIfNeeded: count)
        return count
    }

    // MARK: Keeping

    /// Whether everything from the number passed to `keep(from:upTo:)` on is still there.
    package var isKeeping: Bool { kept != nil }

    /// Keeps all packets from `sequenceNumber` on, however old they get, until they no longer fit.
    ///
    /// They never span more numbers than the index has places, so that walking over them is bounded.
    /// - Parameter capacity: size to which the ring may grow for them, in bytes.
    package mutating func keep(from sequenceNumber: Int64, upTo capacity: Int) {
        guard let newest, range(of: sequenceNumber) != nil, !isBeyondIndex(newest, from: sequenceNumber)
        else { return }
        keptCapacity = max(capacity, maximumCapacity)
        var position = Int64.max
        // Packets that arrived out of order are also stored out of order.
        for number in numbers(from: sequenceNumber, through: newest) where range(of: number) != nil {
            position = min(position, entries[slot(of: number)].position)
        }
        kept = (sequenceNumber, position)
    }

    /// Keeps only what `retention` requires, and releases memory that it does not need.
    package mutating func stopKeeping(at now: MonotonicTime) {
        kept = nil
        var needed = 0
        for entry in entries where isIntact(entry) && entry.arrival > now - retention {
            needed += Int(entry.length) + Self.spare
        }
        var capacity = Self.initialCapacity
        while capacity < needed * 2 { capacity *= 2 }
        capacity = min(capacity, maximumCapacity)
        if capacity < storage.count { resize(to: capacity) }
    }

    // MARK: Room

    private func slot(of sequenceNumber: Int64) -> Int {
        Int(truncatingIfNeeded: sequenceNumber) & (entries.count - 1)
    }

    private func isIntact(_ entry: Entry) -> Bool {
        entry.sequenceNumber != .min && head - entry.position <= Int64(storage.count)
    }

    /// Whether the index has too few places for all numbers from `first` through `number`.
    private func isBeyondIndex(_ number: Int64, from first: Int64) -> Bool {
        number &- first >= Int64(entries.count)
    }

    /// Grows the index rather than forget a packet that is young or to be kept.
    private mutating func makeEntry(for sequenceNumber: Int64, at now: MonotonicTime) {
        while true {
            let entry = entries[slot(of: sequenceNumber)]
            let endsKeeping = kept.map { isBeyondIndex(sequenceNumber, from: $0.sequenceNumber) } ?? false
            if !endsKeeping {
                guard entry.sequenceNumber != sequenceNumber, isIntact(entry) else { return }
                let isKept = kept.map { entry.sequenceNumber >= $0.sequenceNumber } ?? false
                guard isKept || entry.arrival > now - retention else { return }
                if entries.count >= maximumPackets, !isKept { return }
            }
            guard entries.count < maximumPackets else {
                kept = nil
                return
            }
            let old = entries
            entries = Array(repeating: Entry(), count: old.count * 2)
            for entry in old where entry.sequenceNumber != .min {
                entries[slot(of: entry.sequenceNumber)] = entry
            }
        }
    }

    /// Makes room for `length` bytes in one piece and returns their position.
    private mutating func claim(_ length: Int, at now: MonotonicTime) -> Int64 {
        if storage.isEmpty {
            storage = Array(repeating: 0, count: min(Self.initialCapacity, maximumCapacity))
        }
        while overwritesKeptPacket(length), storage.count < keptCapacity {
            resize(to: min(storage.count * 2, keptCapacity))
        }
        while storage.count < maximumCapacity, overwritesYoungPacket(length, at: now) {
            resize(to: min(storage.count * 2, maximumCapacity))
        }
        if overwritesKeptPacket(length) { kept = nil }
        var position = head
        let remainder = Int64(storage.count) - position % Int64(storage.count)
        if remainder < Int64(length) { position += remainder }
        head = position + Int64(length)
        return position
    }

    /// The position below which the next `length` bytes may overwrite.
    private func overwritten(by length: Int) -> Int64 {
        head + Int64(2 * length) - Int64(storage.count)
    }

    private func overwritesKeptPacket(_ length: Int) -> Bool {
        guard let kept else { return false }
        return kept.position < overwritten(by: length)
    }

    private mutating func overwritesYoungPacket(_ length: Int, at now: MonotonicTime) -> Bool {
        let limit = overwritten(by: length)
        guard limit > 0, let newest else { return false }
        // It only moves forward, so that finding the oldest packet costs one step per stored packet; numbers that a
        // source skips cost nothing.
        oldest = numbers(from: oldest, through: newest).lowerBound
        while oldest <= newest {
            let entry = entries[slot(of: oldest)]
            if entry.sequenceNumber == oldest, isIntact(entry) {
                return entry.position < limit && entry.arrival > now - retention
            }
            oldest += 1
        }
        return false
    }

    /// Moves all packets to a ring of another size; if they do not fit, the newest remain.
    private mutating func resize(to capacity: Int) {
        let old = entries
        entries = Array(repeating: Entry(), count: old.count)
        var remaining: [Int] = []
        var total = 0
        for index in old.indices.filter({ isIntact(old[$0]) })
            .sorted(by: { old[$0].position > old[$1].position })
        {
            total += Int(old[index].length) + Self.spare
            guard total <= capacity else { break }
            remaining.append(index)
        }
        var resized: [UInt8] = []
        resized.reserveCapacity(capacity)
        var keptPosition: Int64?
        for index in remaining.reversed() {
            let position = Int64(resized.count)
            if let kept, old[index].position >= kept.position { keptPosition = keptPosition ?? position }
            let offset = Int(old[index].position % Int64(storage.count))
            resized += storage[offset..<(offset + Int(old[index].length) + Self.spare)]
            entries[index] = old[index]
            entries[index].position = position
        }
        if let kept, let keptPosition {
            self.kept = (kept.sequenceNumber, keptPosition)
        } else {
            kept = nil
        }
        head = Int64(resized.count)
        resized += repeatElement(0, count: capacity - resized.count)
        storage = resized
    }
}
