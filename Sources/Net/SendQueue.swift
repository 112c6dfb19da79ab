import Base
import Crypto

/// Datagrams waiting to be sent, in one arena, chained by destination.
///
/// Fan-out writes each packet for all viewers before the next packet, so the datagrams of one viewer are not
/// adjacent. The chains let the queue gather them into one message per viewer without copying, in their order.
struct SendQueue: ~Copyable {
    /// Limits of the arena, which is allocated once.
    struct Capacity {
        var bytes: Int
        var datagrams: Int
    }

    /// A run of datagrams for one destination that one message contains.
    struct Message {
        /// Index into `destinations`.
        let destination: Int
        /// Indices into `entries`: its first one, and the one after its last (-1 if none).
        let first: Int
        let following: Int
        /// Datagrams in the message, and their bytes.
        let count: Int
        let byteCount: Int
    }

    /// One datagram in the arena.
    private struct Entry {
        let offset: Int
        let length: Int
        /// The next datagram for the same destination; -1 ends the chain.
        var next: Int
    }

    /// An address with the chain of its datagrams.
    private struct Destination {
        let address: TransportAddress
        /// Its place in `table`, so that `reset` clears only the places in use.
        let slot: Int
        /// Its first unsent entry and its last entry; -1 if all are sent.
        var first: Int
        var last: Int
    }

    /// Messages prepared at a time, for one `sendmmsg`.
    private static let windowMessages = 256
    private static let windowVectors = 2_048
    /// The most that the kernel cuts: UDP_MAX_SEGMENTS before Linux 6.9, and the bytes of one IP packet less its
    /// headers.
    private static let segments = 64
    private static let messageBytes = 65_000

    let capacity: Capacity
    private var memory: MessageMemory
    /// Where the next datagram begins in the arena.
    private(set) var usedBytes = 0
    /// Authentication tags still missing from the latest datagrams.
    private var tags = TagGroup()
    private var entries: [Entry] = []
    private var destinations: [Destination] = []
    /// Hash table by address, with open addressing: the index of a destination plus one; 0 is free.
    ///
    /// Its size is a power of two and at least twice the number of datagrams, so a free place is always near.
    private var table: [Int32]
    private let tableShift: UInt64
    /// Odd and secret: clients choose their addresses, and must not be able to make hashes collide.
    private let hashKey: UInt64
    /// The destination looked up last, checked before the table: several datagrams in a row often have the same one.
    private var latest = 0
    /// The first destination that may have unsent entries.
    private var cursor = 0
    /// The messages that `prepareWindow` prepared.
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

    /// Whether `count` datagrams of `bytes` each still fit, so that `append` may be called.
    func hasRoom(for bytes: Int, times count: Int = 1) -> Bool {
        entries.count + count <= capacity.datagrams && usedBytes + bytes * count <= capacity.bytes
    }

    // MARK: Filling

    /// Appends a datagram that `write` fills in place.
    ///
    /// The caller has checked `hasRoom`, with four bytes more if there is a channel.
    /// - Parameters:
    ///   - channel: writes a ChannelData header with this number before the datagram; nil for none.
    ///   - write: returns the length; 0 leaves the datagram out.
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

    /// Bytes of a ChannelData header: the channel's number and the datagram's length.
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

    /// Appends several datagrams for one destination, which `write` fills in place; a length of 0 leaves one out.
    ///
    /// The caller has checked `hasRoom`, with four bytes more for each if there is a channel.
    mutating func append(
        _ count: Int, to address: TransportAddress, capacity: Int, channel: UInt16? = nil,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        let head = channel == nil ? 0 : Self.channelHead
        // Only a destination with a datagram counts: `hasRoom` bounds datagrams, and with them the names.
        var index: Int?
        for number in 0..<count {
            let start = usedBytes + head
            let packet = memory.withBytes(at: start, count: capacity) { write(number, &$0) }
            guard packet.length > 0, packet.length <= capacity else { continue }
            if let channel { writeHead(channel, packet.length) }
            if let tag = packet.pendingTag { tags.append(tag, at: start) }
            let place = index ?? destination(for: address)
            index = place
            link(length: head + packet.length, to: place)
            if tags.isFull { completeTags() }
        }
    }

    /// Computes the missing authentication tags: sixteen at a time while the packets are cached, the rest before
    /// sending.
    private mutating func completeTags() {
        guard !tags.isEmpty else { return }
        memory.withBytes(at: 0, count: usedBytes) { tags.complete(in: &$0) }
    }

    /// Adds the bytes that were just written at `usedBytes` to the chain of their destination.
    private mutating func link(length: Int, to index: Int) {
        let entry = entries.count
        entries.append(Entry(offset: usedBytes, length: length, next: -1))
        usedBytes += length
        let last = destinations[index].last
        if last >= 0 { entries[last].next = entry } else { destinations[index].first = entry }
        destinations[index].last = entry
        // A partly sent queue may get another datagram for a destination that the cursor has passed.
        if index < cursor { cursor = index }
    }

    /// The index of an address, added if it is new.
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

    /// Removes all datagrams, sent or not, and keeps the memory.
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
    /// - Parameter segmenting: combines runs of equal size, of which the last may be smaller, into one message.
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

    /// Writes the message at the end of the window; it ends at a larger datagram, after a smaller one, or at a limit.
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

    /// Passes a part of the window to the kernel.
    /// - Returns: how many messages it accepted, or a negative errno about the first of them.
    mutating func send(_ range: Range<Int>, through socket: DatagramSocket) -> Int {
        memory.send(range, through: socket)
    }

    /// The destination of a prepared message.
    func address(of message: Message) -> TransportAddress { destinations[message.destination].address }

    /// Marks a message, and all earlier datagrams of its destination, as done.
    mutating func finish(_ message: Message) {
        finish(message.destination, upTo: message.following)
    }

    private mutating func finish(_ destination: Int, upTo entry: Int) {
        destinations[destination].first = entry
        if entry < 0 { destinations[destination].last = -1 }
        while cursor < destinations.count, destinations[cursor].first < 0 { cursor += 1 }
    }

    /// Prepares the datagrams of a message one by one, behind the window, which stays as it is.
    /// - Returns: the indices by which to send them.
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
    /// - Returns: its length; 0 if there is none.
    mutating func finishFirst(of destination: Int) -> Int {
        let first = destinations[destination].first
        guard first >= 0 else { return 0 }
        let entry = entries[first]
        finish(destination, upTo: entry.next)
        return entry.length
    }

    /// Copies every unsent datagram to `other`, as far as allowed, and empties this queue.
    /// - Parameter isWelcome: decides by `other` and the length; a datagram that it refuses is lost.
    /// - Returns: how many were copied and how many were lost.
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
