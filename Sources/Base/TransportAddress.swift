/// An IPv4 or IPv6 address; IPv4 is held in its IPv6-mapped form.
///
/// Two machine words, so that it hashes and compares without touching the heap.
/// - Source: RFC 4291 §2.5.5.2 (mapped form), RFC 5952 (text form).
package struct IPAddress: Hashable, Sendable {
    /// The first and last eight bytes, in network order.
    package let high: UInt64
    /// Of an IPv4 address, 0xFFFF and its four bytes.
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An IPv4 address from its four bytes in network order.
    package init(ipv4 bits: UInt32) {
        high = 0
        low = 0xFFFF_0000_0000 | UInt64(bits)
    }

    /// 127.0.0.1.
    package static let loopback = IPAddress(ipv4: 0x7F00_0001)
    /// 0.0.0.0.
    package static let any = IPAddress(ipv4: 0)

    /// The four bytes of an IPv4 address; nil for IPv6.
    package var ipv4: UInt32? {
        high == 0 && low >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: low) : nil
    }

    /// Whether this is 127.0.0.0/8 or `::1`.
    package var isLoopback: Bool {
        if let ipv4 { return ipv4 >> 24 == 127 }
        return high == 0 && low == 1
    }

    /// Whether this is 0.0.0.0 or `::`, which stand for every local address.
    package var isUnspecified: Bool {
        if let ipv4 { return ipv4 == 0 }
        return high == 0 && low == 0
    }
}

/// An IP address and a port: one end of a UDP or TCP flow.
///
/// The transport is part of it, because one client may use the same port of both; its text form leaves it out.
package struct TransportAddress: Hashable, Sendable {
    /// What carries datagrams; over TCP they are framed (RFC 4571).
    package enum Transport: UInt8, Sendable {
        case udp, tcp
    }

    /// IPv4 in mapped form.
    package let ip: IPAddress
    /// In host order.
    package let port: UInt16
    /// Part of equality and hash.
    package let transport: Transport

    package init(ip: IPAddress, port: UInt16, transport: Transport = .udp) {
        self.ip = ip
        self.port = port
        self.transport = transport
    }

    /// The same address and port of another transport.
    package func over(_ transport: Transport) -> TransportAddress {
        TransportAddress(ip: ip, port: port, transport: transport)
    }
}
