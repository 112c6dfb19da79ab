import Base
import Crypto

/// Datagrams that wait to leave, in one arena, chained by destination.
///
/// Fan-out writes packet by packet over all viewers, so one viewer's datagrams do not lie side by side. Chaining them
/// lets the queue gather them into one message per viewer without moving a byte, and keeps each viewer's order.
struct SendQueue: ~Copyable {
    struct Capacity {
        var bytes: Int
        var datagrams: Int
    }

    /// One system call's worth of a queue's datagrams for one destination.
    struct Message {
        let destination: Int
        /// The first of its entries, the one after its last (-1 if none), and how many it has.
        let first: Int
        let following: Int
        let count: Int
        let byteCount: Int
    }

    private struct Entry {
        let offset: Int
        let length: Int
        /// The next one for the same destination; -1 ends the chain.
        var next: Int
    }

    private struct Destination {
        let address: TransportAddress
        let slot: Int
        /// Its first unsent entry and its last one; -1 if all are sent.
        var first: Int
        var last: Int
    }

    /// Messages prepared at a time.
    private static let windowMessages = 256
    private static let windowVectors = 2_048
    /// What the kernel cuts at most: UDP_MAX_SEGMENTS before Linux 6.9, and one IP packet less its headers.
    private static let segments = 64
    private static let messageBytes = 65_000

    let capacity: Capacity
    private var memory: MessageMemory
    private(set) var usedBytes = 0
    /// Of datagrams at the end of the arena.
    private var tags = TagGroup()
    private var entries: [Entry] = []
    private var destinations: [Destination] = []
    /// Open addressing: index of a destination plus one; 0 is free.
    ///
    /// Twice the destinations at most, a power of two.
    private var table: [Int32]
    private let tableShift: UInt64
    /// Odd and unknown to strangers, who choose their addresses.
    private let hashKey: UInt64
    private var latest = 0
    /// The first destination that may have unsent entries.
    private var cursor = 0
    private(set) var window: [Message] = []

    init(_ capacity: Capacity, isIPv4: Bool, hashKey: UInt64) {
        self.capacity = capacity
        self.hashKey = hashKey | 1
        memory = MessageMemory(
            .init(
                bytes: capacity.bytes, messages: Self.windowMessages + Self.segments,
                vectors: Self.windowVectors + Self.segments, names: capacity.datagrams),
            isIPv4: isIPv4)
        var slots = 16
        while slots < capacity.datagrams * 2 { slots *= 2 }
        table = Array(repeating: 0, count: slots)
        tableShift = UInt64(64 - slots.trailingZeroBitCount)
        entries.reserveCapacity(capacity.datagrams)
        destinations.reserveCapacity(capacity.datagrams)
        window.reserveCapacity(Self.windowMessages)
    }

    var isEmpty: Bool { entries.isEmpty }
    var usedShare: Double { Double(usedBytes) / Double(max(capacity.bytes, 1)) }

    func hasRoom(for bytes: Int, times count: Int = 1) -> Bool {
        entries.count + count <= capacity.datagrams && usedBytes + bytes * count <= capacity.bytes
    }

    // MARK: Filling

    /// Appends a datagram that `write` fills in place.
    ///
    /// The caller has asked `hasRoom`.
    /// - Parameter channel: what goes before the datagram, in four bytes more, with its length; nil for nothing.
    mutating func append<Failure: Error>(
        to address: TransportAddress, capacity: Int, channel: UInt16? = nil,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        let head = channel == nil ? 0 : Self.channelHead
        let length = try memory.withBytes(at: usedBytes + head, count: capacity, write)
        guard length > 0 else { return }
        guard length <= capacity else {
            assertionFailure("a datagram of \(length) bytes was written into \(capacity)")
            return
        }
        if let channel { writeHead(channel, length) }
        link(length: head + length, to: destination(for: address))
    }

    /// - Source: RFC 8656 §12.4 (ChannelData).
    private static let channelHead = 4

    private mutating func writeHead(_ channel: UInt16, _ length: Int) {
        memory.withBytes(at: usedBytes, count: Self.channelHead) { head in
            head[0] = UInt8(truncatingIfNeeded: channel >> 8)
            head[1] = UInt8(truncatingIfNeeded: channel)
            head[2] = UInt8(truncatingIfNeeded: length >> 8)
            head[3] = UInt8(truncatingIfNeeded: length)
        }
    }

    /// Appends datagrams that `write` fills in place; it leaves one out by a length of 0.
    ///
    /// The caller has asked `hasRoom`.
    mutating func append(
        _ count: Int, to address: TransportAddress, capacity: Int, channel: UInt16? = nil,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        let index = destination(for: address)
        let head = channel == nil ? 0 : Self.channelHead
        for number in 0..<count {
            let start = usedBytes + head
            let packet = memory.withBytes(at: start, count: capacity) { write(number, &$0) }
            guard packet.length > 0, packet.length <= capacity else { continue }
            if let channel { writeHead(channel, packet.length) }
            if let tag = packet.pendingTag { tags.append(tag, at: start) }
            link(length: head + packet.length, to: index)
            if tags.isFull { completeTags() }
        }
    }

    /// Makes the tags that datagrams still lack: sixteen at a time while they are cached, the last before they leave.
    private mutating func completeTags() {
        guard !tags.isEmpty else { return }
        memory.withBytes(at: 0, count: usedBytes) { tags.complete(in: &$0) }
    }

    private mutating func link(length: Int, to index: Int) {
        let entry = entries.count
        entries.append(Entry(offset: usedBytes, length: length, next: -1))
        usedBytes += length
        let last = destinations[index].last
        if last >= 0 { entries[last].next = entry } else { destinations[index].first = entry }
        destinations[index].last = entry
        // A queue that still holds sent datagrams may get more for a destination already passed.
        if index < cursor { cursor = index }
    }

    private mutating func destination(for address: TransportAddress) -> Int {
        if latest < destinations.count, destinations[latest].address == address { return latest }
        let mixed = (address.ip.high &* 0x9E37_79B9_7F4A_7C15) ^ address.ip.low ^ UInt64(address.port) << 48
        var slot = Int(truncatingIfNeeded: (mixed &* hashKey) >> tableShift)
        while table[slot] != 0 {
            let index = Int(table[slot]) - 1
            if destinations[index].address == address {
                latest = index
                return index
            }
            slot = (slot + 1) & (table.count - 1)
        }
        latest = destinations.count
        table[slot] = Int32(truncatingIfNeeded: latest + 1)
        destinations.append(Destination(address: address, slot: slot, first: -1, last: -1))
        memory.setName(latest, to: address)
        return latest
    }

    /// Forgets everything, sent or not.
    mutating func reset() {
        for index in destinations.indices { table[destinations[index].slot] = 0 }
        destinations.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
        window.removeAll(keepingCapacity: true)
        usedBytes = 0
        cursor = 0
        latest = 0
    }

    // MARK: Emptying

    /// Prepares messages from the first unsent datagrams on.
    /// - Parameter segmenting: let runs of equal size, of which the last may be smaller, leave as one message.
    /// - Returns: false if nothing is left to send.
    mutating func prepareWindow(segmenting: Bool) -> Bool {
        completeTags()
        window.removeAll(keepingCapacity: true)
        var vector = 0
        for index in cursor..<destinations.count {
            var entry = destinations[index].first
            while entry >= 0 {
                guard window.count < Self.windowMessages, vector + Self.segments <= Self.windowVectors else {
                    return true
                }
                let message = prepareMessage(
                    from: entry, destination: index, vector: &vector, segmenting: segmenting)
                window.append(message)
                entry = message.following
            }
        }
        return !window.isEmpty
    }

    private mutating func prepareMessage(
        from start: Int, destination: Int, vector: inout Int, segmenting: Bool
    ) -> Message {
        let first = entries[start]
        let firstVector = vector
        memory.setVector(vector, offset: first.offset, count: first.length)
        vector += 1
        var end = first.offset + first.length
        var byteCount = first.length
        var count = 1
        var following = first.next
        var isOpen = segmenting
        while isOpen, following >= 0, count < Self.segments {
            let next = entries[following]
            guard next.length <= first.length, byteCount + next.length <= Self.messageBytes else { break }
            if next.offset == end {
                memory.extendVector(vector - 1, by: next.length)
            } else {
                memory.setVector(vector, offset: next.offset, count: next.length)
                vector += 1
            }
            end = next.offset + next.length
            byteCount += next.length
            count += 1
            following = next.next
            isOpen = next.length == first.length
        }
        memory.setMessage(
            window.count, name: destination, vectors: firstVector..<vector,
            segmentSize: count > 1 ? first.length : nil)
        return Message(
            destination: destination, first: start, following: following, count: count, byteCount: byteCount)
    }

    /// Hands a part of the window to the kernel.
    /// - Returns: how many messages it took, or a negative errno about the first of them.
    mutating func send(_ range: Range<Int>, through socket: DatagramSocket) -> Int {
        memory.send(range, through: socket)
    }

    /// The destination of a prepared message.
    func address(of message: Message) -> TransportAddress { destinations[message.destination].address }

    /// Marks everything up to and including `message` of its destination as done.
    mutating func finish(_ message: Message) {
        finish(message.destination, upTo: message.following)
    }

    private mutating func finish(_ destination: Int, upTo entry: Int) {
        destinations[destination].first = entry
        if entry < 0 { destinations[destination].last = -1 }
        while cursor < destinations.count, destinations[cursor].first < 0 { cursor += 1 }
    }

    /// Prepares the datagrams of a message one by one, outside the window.
    /// - Returns: the indices to send them by.
    mutating func preparePlain(_ message: Message) -> Range<Int> {
        var entry = message.first
        for index in 0..<message.count {
            let vector = Self.windowVectors + index
            memory.setVector(vector, offset: entries[entry].offset, count: entries[entry].length)
            memory.setMessage(
                Self.windowMessages + index, name: message.destination, vectors: vector..<(vector + 1),
                segmentSize: nil)
            entry = entries[entry].next
        }
        return Self.windowMessages..<(Self.windowMessages + message.count)
    }

    /// Marks the first unsent datagram of a destination as done.
    /// - Returns: its length.
    mutating func finishFirst(of destination: Int) -> Int {
        let first = destinations[destination].first
        guard first >= 0 else { return 0 }
        let entry = entries[first]
        finish(destination, upTo: entry.next)
        return entry.length
    }

    /// Hands every unsent datagram to `other` and forgets it.
    /// - Parameter isWelcome: decides by `other` and the length; a datagram that is not goes lost.
    /// - Returns: how many moved and how many were lost.
    mutating func move(
        to other: inout SendQueue, where isWelcome: (borrowing SendQueue, Int) -> Bool
    ) -> (moved: Int, lost: Int) {
        completeTags()
        var moved = 0
        var lost = 0
        for index in cursor..<destinations.count {
            var entry = destinations[index].first
            while entry >= 0 {
                let (offset, length) = (entries[entry].offset, entries[entry].length)
                if other.hasRoom(for: length), isWelcome(other, length) {
                    other.memory.copy(from: memory, at: offset, count: length, to: other.usedBytes)
                    other.link(length: length, to: other.destination(for: destinations[index].address))
                    moved += 1
                } else {
                    lost += 1
                }
                entry = entries[entry].next
            }
        }
        reset()
        return (moved, lost)
    }
}
