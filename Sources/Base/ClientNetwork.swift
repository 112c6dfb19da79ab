/// A network, whose addresses count together where what one client may do is limited.
///
/// An IPv6 client counts with its whole /64, which is what one subscriber gets, and, as providers give away whole
/// sites, with its /56 and its /48, which may do 4 and 16 times as much.
package struct ClientNetwork: Hashable, Sendable {
    private let bits: UInt64
    /// How many times the limits of one client it has.
    package let factor: UInt8

    private init(_ bits: UInt64, _ factor: UInt8) {
        self.bits = bits
        self.factor = factor
    }

    /// The widest one that an address counts with.
    package init(widestOf ip: IPAddress) {
        self = ip.ipv4.map { ClientNetwork(UInt64($0), 1) } ?? ClientNetwork(ip.high & ~0xFFFF, 16)
    }

    /// All that an address counts with, the narrowest first.
    package static func all(of ip: IPAddress) -> [ClientNetwork] {
        // IPv4 lies in ::ffff:0:0/96, whose first half is zero; no routed /64 starts with that.
        if let bits = ip.ipv4 { return [ClientNetwork(UInt64(bits), 1)] }
        return [
            ClientNetwork(ip.high, 1), ClientNetwork(ip.high & ~0xFF, 4),
            ClientNetwork(ip.high & ~0xFFFF, 16),
        ]
    }
}
