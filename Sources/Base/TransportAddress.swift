/// An IPv4 or IPv6 address; IPv4 is stored in its IPv6-mapped form.
///
/// It has two machine words, so hashing and comparing it needs no heap memory.
/// - Source: RFC 4291 §2.5.5.2 (mapped form), RFC 5952 (text form).
package struct IPAddress: Hashable, Sendable {
    /// The first eight bytes, as a big-endian number.
    package let high: UInt64
    /// The last eight bytes; for an IPv4 address 0xFFFF and its four bytes.
    package let low: UInt64

    /// An IPv6 address, or an IPv4 address in mapped form.
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
/// The transport is part of it, because one client may use the same port for both. Its text form omits the transport.
package struct TransportAddress: Hashable, Sendable {
    /// The protocol that transports datagrams; over TCP they are framed (RFC 4571).
    package enum Transport: UInt8, Sendable {
        case udp, tcp
    }

    /// IPv4 is in mapped form.
    package let ip: IPAddress
    /// In host byte order.
    package let port: UInt16
    /// Compared and hashed like the rest.
    package let transport: Transport

    /// - Parameter transport: UDP, unless the address is that of a TCP connection.
    package init(ip: IPAddress, port: UInt16, transport: Transport = .udp) {
        self.ip = ip
        self.port = port
        self.transport = transport
    }

    /// The same address and port with another transport.
    package func over(_ transport: Transport) -> TransportAddress {
        TransportAddress(ip: ip, port: port, transport: transport)
    }
}
