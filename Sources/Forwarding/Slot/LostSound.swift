/// Audio that one viewer has lost and that may be sent once more.
///
/// Sending it again was refused for now, or the packet that was sent again may be lost as well.
struct LostSound {
    /// One lost packet.
    struct Packet {
        /// 48-bit packet index.
        let index: Int64
        /// Packets sent on the whole path before this one was sent again; nil while that was refused.
        let repeated: Int64?
    }

    /// Maximum number of packets, the oldest of which are forgotten first: no more can be sent again.
    static let limit = RepeatableNumbers.soundCapacity

    private var packets: [Packet] = []

    /// Whether no packet has to be looked at with the next report.
    var isEmpty: Bool { packets.isEmpty }

    /// Adds a packet, and forgets the oldest one if there are too many.
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
