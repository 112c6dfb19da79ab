/// Audio that one viewer has lost and that may be sent once more: sending it again was refused for now, or that packet
/// may be lost as well.
struct LostSound {
    struct Packet {
        /// 48-bit packet index.
        let index: Int64
        /// Packets sent on the whole path before this one was sent again; nil while that was refused.
        let repeated: Int64?
    }

    /// Maximum number of packets, the oldest of which are forgotten first: no more can be sent again.
    static let limit = RepeatableNumbers.soundCapacity

    private var packets: [Packet] = []

    var isEmpty: Bool { packets.isEmpty }

    mutating func add(_ packet: Packet) {
        if packets.count >= Self.limit { packets.removeFirst() }
        packets.append(packet)
    }

    /// Returns all packets in the order in which they were added, and forgets them.
    mutating func takeAll() -> [Packet] {
        defer { packets.removeAll() }
        return packets
    }
}
