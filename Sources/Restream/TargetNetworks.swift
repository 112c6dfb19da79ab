import Base

/// The networks to which programmes may be sent.
///
/// Hosts choose the targets, but the connections come from the server's network. By default the server connects to
/// public Internet addresses only, so that targets cannot be used to probe the operator's internal network.
package enum TargetNetworks: Equatable, Sendable {
    /// Only addresses that are reachable over the public Internet.
    case publicOnly
    /// Addresses of private networks and of this machine as well.
    case all

    /// Whether the server may connect to an address.
    package func permits(_ address: IPAddress) -> Bool {
        switch self {
        case .publicOnly: address.isGloballyReachable
        // Linux connects to this machine where the address is unspecified, which is never what a host means.
        case .all: !address.isUnspecified
        }
    }
}

extension IPAddress {
    /// Whether the public Internet routes to this address, according to the registries.
    ///
    /// IPv6 addresses that embed an IPv4 address (6to4, Teredo, NAT64) count as not reachable, because the embedded
    /// address may be a private one.
    /// - Source: IANA's registries of special-purpose addresses (RFC 6890); RFC 4291 §2.4 and §2.5.5, RFC 6052 §2.1,
    ///   RFC 3056 §2, RFC 4380 §2.6.
    package var isGloballyReachable: Bool {
        guard let ipv4 else {
            // Only 2000::/3 is global unicast. Excluded are Teredo (2001::/32), documentation (2001:db8::/32,
            // 3fff::/20), 6to4 (2002::/16) and the rest of the protocol assignments in 2001::/23.
            let first = high >> 32
            return high >> 61 == 1 && first != 0x2001_0000 && first != 0x2001_0DB8 && first >> 16 != 0x2002
                && first >> 9 != 0x2001_0000 >> 9 && first >> 16 != 0x3FFF
        }
        return !Self.specialIPv4.contains { ipv4 >> (32 - $0.length) == $0.prefix >> (32 - $0.length) }
    }

    /// Special-purpose blocks: this network, private, shared, loopback, link-local, protocol assignments,
    /// documentation, 6to4 relays, benchmarking, multicast and reserved.
    private static let specialIPv4: [(prefix: UInt32, length: UInt32)] = [
        (0x0000_0000, 8), (0x0A00_0000, 8), (0x6440_0000, 10), (0x7F00_0000, 8), (0xA9FE_0000, 16),
        (0xAC10_0000, 12), (0xC000_0000, 24), (0xC000_0200, 24), (0xC058_6300, 24), (0xC0A8_0000, 16),
        (0xC612_0000, 15), (0xC633_6400, 24), (0xCB00_7100, 24), (0xE000_0000, 4), (0xF000_0000, 4),
    ]
}
