/// A network whose addresses are counted together when the number of things per client is limited.
///
/// An IPv6 client is counted with its /64, which is what one subscriber gets. Because providers assign whole sites,
/// it is also counted with its /56 and its /48, which have 4 and 16 times the limit.
package struct ClientNetwork: Hashable, Sendable {
    /// The network's first 64 bits; for IPv4 the address.
    private let bits: UInt64
    /// By how much the limit of a single client is multiplied.
    package let factor: UInt8

    private init(_ bits: UInt64, _ factor: UInt8) {
        self.bits = bits
        self.factor = factor
    }

    /// The widest network that an address is counted with.
    package init(widestOf ip: IPAddress) {
        self = ip.ipv4.map { ClientNetwork(UInt64($0), 1) } ?? ClientNetwork(ip.high & ~0xFFFF, 16)
    }

    /// All networks that an address is counted with, the narrowest first.
    package static func all(of ip: IPAddress) -> [ClientNetwork] {
        // IPv4 is inside ::ffff:0:0/96, whose first 64 bits are zero; no routed /64 has those, so the two never
        // collide.
        if let bits = ip.ipv4 { return [ClientNetwork(UInt64(bits), 1)] }
        return [
            ClientNetwork(ip.high, 1), ClientNetwork(ip.high & ~0xFF, 4),
            ClientNetwork(ip.high & ~0xFFFF, 16),
        ]
    }
}
