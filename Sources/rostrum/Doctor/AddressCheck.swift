import Base
import Node

/// Checks whether clients on other networks can reach the addresses in ICE candidates.
enum AddressCheck {
    private static let subject = "addresses"

    /// Examines the addresses that a server with this configuration would announce.
    static func examine(_ configuration: Configuration) -> Finding {
        judge(Server.nodeConfiguration(configuration).advertised(for: configuration.udp.ip))
    }

    /// - Parameter addresses: the addresses in candidates.
    static func judge(_ addresses: [IPAddress]) -> Finding {
        let text = "clients are given \(addresses.prefix(6).map(\.description).joined(separator: ", "))"
        if addresses.allSatisfy(\.isLoopback) {
            return .warn(
                subject, text,
                remedy: "other machines get no media; set --udp 0.0.0.0:7000, and --public-address if needed")
        }
        if addresses.allSatisfy({ $0.isLoopback || $0.isPrivate }) {
            return .warn(
                subject, text + ", which the Internet cannot reach",
                remedy: "behind a NAT that forwards the ports, set its address: --public-address 203.0.113.7")
        }
        return .ok(subject, text + "; open /check from another network to see what gets through")
    }
}

extension IPAddress {
    /// Whether the address belongs to a network that the Internet does not route to.
    ///
    /// Networks: 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16 (private), 100.64.0.0/10 (carrier-grade NAT),
    /// 169.254.0.0/16 (link-local), fc00::/7 (unique local) and fe80::/10 (link-local).
    /// - Source: RFC 1918, RFC 6598, RFC 3927, RFC 4193 and RFC 4291 §2.5.6.
    var isPrivate: Bool {
        guard let ipv4 else { return high >> 57 == 0xFC >> 1 || high >> 54 == 0x3FA }
        return ipv4 >> 24 == 10 || ipv4 >> 20 == 0xAC1 || ipv4 >> 16 == 0xC0A8 || ipv4 >> 22 == 0x6440 >> 6
            || ipv4 >> 16 == 0xA9FE
    }
}
