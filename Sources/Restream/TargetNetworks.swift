import Base

/// To which addresses a programme may be sent.
///
/// Hosts name the targets, and the server stands where they do not: by default it connects to nothing that the Internet
/// does not reach, so that nobody finds out by it what is in the operator's network.
package enum TargetNetworks: Equatable, Sendable {
    case publicOnly
    /// Those of the operator's own networks, and of this machine, too.
    case all

    /// Whether an address may be connected to.
    package func permits(_ address: IPAddress) -> Bool {
        switch self {
        case .publicOnly: address.isGloballyReachable
        // What names nobody is connected to in no case.
        case .all: !address.isUnspecified
        }
    }
}

extension IPAddress {
    /// Whether the Internet routes to it, as far as registries say; addresses that hold others are none of these.
    /// - Source: IANA's registries of special-purpose addresses (RFC 6890); RFC 4291 §2.4 and §2.5.5, RFC 6052 §2.1,
    ///   RFC 3056 §2, RFC 4380 §2.6.
    package var isGloballyReachable: Bool {
        guard let ipv4 else {
            // Of all that is IPv6 only 2000::/3 is unicast of the Internet, less what holds IPv4 or is for documents.
            let first = high >> 32
            return high >> 61 == 1 && first != 0x2001_0000 && first != 0x2001_0DB8 && first >> 16 != 0x2002
                && first >> 9 != 0x2001_0000 >> 9 && first >> 16 != 0x3FFF
        }
        return !Self.specialIPv4.contains { ipv4 >> (32 - $0.length) == $0.prefix >> (32 - $0.length) }
    }

    private static let specialIPv4: [(prefix: UInt32, length: UInt32)] = [
        (0x0000_0000, 8), (0x0A00_0000, 8), (0x6440_0000, 10), (0x7F00_0000, 8), (0xA9FE_0000, 16),
        (0xAC10_0000, 12), (0xC000_0000, 24), (0xC000_0200, 24), (0xC058_6300, 24), (0xC0A8_0000, 16),
        (0xC612_0000, 15), (0xC633_6400, 24), (0xCB00_7100, 24), (0xE000_0000, 4), (0xF000_0000, 4),
    ]
}
