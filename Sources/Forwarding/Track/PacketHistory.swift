import Base
import Wire

/// The last packets of one RTP stream, decrypted, in one block of memory.
///
/// Every slot's retransmissions come out of this one copy. Packets lie one behind the other in a ring of bytes,
/// so that storing one is a copy and an index entry. The ring starts small and doubles while it would overwrite
/// packets younger than `retention`, up to a limit: a quiet track costs little, a busy one is never without an
/// answer to a NACK.
package struct PacketHistory: ~Copyable {
    private struct Entry {
        var sequenceNumber: Int64 = .min
        /// Counts every byte ever claimed; the place in `storage` is this modulo the capacity.
        var position: Int64 = 0
        var length = 0
        var arrival = MonotonicTime.zero
    }

    /// How long a packet should be kept where the memory limit allows it.
    package let retention: Duration
    /// The ring never grows beyond this many bytes.
    package let maximumCapacity: Int
    /// Where the packets lie; read it through the ranges that `range(of:)` gives.
    package private(set) var storage: [UInt8] = []
    /// By sequence number modulo its count, which is a power of two.
    private var entries: [Entry]
    private var head: Int64 = 0
    /// No packet below this number is intact.
    private var oldest: Int64 = .max
    /// The highest sequence number stored; nil while empty.
    package private(set) var newest: Int64?

    private static let initialCapacity = 16 * 1024

    /// - Parameter maximumPackets: rounded up to a power of two.
    package init(maximumCapacity: Int, maximumPackets: Int, retention: Duration = .milliseconds(1_000)) {
        self.maximumCapacity = maximumCapacity
        self.retention = retention
        var count = 64
        while count < maximumPackets { count *= 2 }
        entries = Array(repeating: Entry(), count: count)
    }

    /// Copies `packet[range]` in.
    ///
    /// - Parameter sequenceNumber: extended, as the source counts. A packet far older than the newest is ignored.
    package mutating func store(
        _ packet: Span<UInt8>, _ range: Range<Int>, sequenceNumber: Int64, at now: MonotonicTime
    ) {
        guard range.lowerBound >= 0, range.upperBound <= packet.count, range.count <= Self.initialCapacity / 2
        else {
            return
        }
        if let newest, sequenceNumber <= newest &- Int64(entries.count) { return }
        let position = claim(range.count, at: now)
        let offset = Int(position % Int64(storage.count))
        var bytes = storage.mutableSpan
        for index in 0..<range.count { bytes[offset &+ index] = packet[range.lowerBound &+ index] }
        entries[slot(of: sequenceNumber)] = Entry(
            sequenceNumber: sequenceNumber, position: position, length: range.count, arrival: now)
        newest = max(newest ?? .min, sequenceNumber)
        oldest = min(oldest, sequenceNumber)
    }

    /// Where the packet lies in `storage`; nil if it never came or is no longer there.
    package func range(of sequenceNumber: Int64) -> Range<Int>? {
        let entry = entries[slot(of: sequenceNumber)]
        guard entry.sequenceNumber == sequenceNumber, isIntact(entry) else { return nil }
        let offset = Int(entry.position % Int64(storage.count))
        return offset..<(offset + entry.length)
    }

    /// Forgets everything, as when the source starts its sequence numbers anew.
    package mutating func removeAll() {
        for index in entries.indices { entries[index] = Entry() }
        newest = nil
        oldest = .max
    }

    private func slot(of sequenceNumber: Int64) -> Int {
        Int(truncatingIfNeeded: sequenceNumber) & (entries.count - 1)
    }

    private func isIntact(_ entry: Entry) -> Bool {
        entry.sequenceNumber != .min && head - entry.position <= Int64(storage.count)
    }

    /// Makes room for `length` bytes in one piece and returns their position.
    private mutating func claim(_ length: Int, at now: MonotonicTime) -> Int64 {
        if storage.isEmpty {
            storage = Array(repeating: 0, count: min(Self.initialCapacity, maximumCapacity))
        }
        while storage.count < maximumCapacity, overwritesYoungPacket(length, at: now) { grow() }
        var position = head
        let remainder = Int64(storage.count) - position % Int64(storage.count)
        if remainder < Int64(length) { position += remainder }
        head = position + Int64(length)
        return position
    }

    private mutating func overwritesYoungPacket(_ length: Int, at now: MonotonicTime) -> Bool {
        let limit = head + Int64(2 * length) - Int64(storage.count)
        guard limit > 0, let newest else { return false }
        // Only ever moves forward, so that finding the oldest packet costs one step per packet stored.
        while oldest <= newest {
            let entry = entries[slot(of: oldest)]
            if entry.sequenceNumber == oldest, isIntact(entry) {
                return entry.position < limit && entry.arrival > now - retention
            }
            oldest += 1
        }
        return false
    }

    private mutating func grow() {
        var larger: [UInt8] = []
        let capacity = min(storage.count * 2, maximumCapacity)
        larger.reserveCapacity(capacity)
        let old = entries
        entries = Array(repeating: Entry(), count: old.count)
        let intact = old.indices.filter { isIntact(old[$0]) }.sorted { old[$0].position < old[$1].position }
        for index in intact {
            let offset = Int(old[index].position % Int64(storage.count))
            entries[index] = old[index]
            entries[index].position = Int64(larger.count)
            larger += storage[offset..<(offset + old[index].length)]
        }
        head = Int64(larger.count)
        larger += repeatElement(0, count: capacity - larger.count)
        storage = larger
    }
}
