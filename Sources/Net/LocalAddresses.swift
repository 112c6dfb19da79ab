import Base
import CLinux

/// The addresses of this machine that a peer may be able to reach.
package enum LocalAddresses {
    /// Most addresses that are looked at; a machine full of containers has hundreds.
    private static let limit = 512

    /// One address of one interface.
    struct Entry {
        let ip: IPAddress
        let isUp: Bool
        let isLoopback: Bool
    }

    /// The addresses to advertise for a socket that is bound to `bound`.
    ///
    /// For a specific address that is the address itself. For 0.0.0.0 and `::` they are the addresses of all
    /// interfaces that are up, IPv4 first; for 0.0.0.0 IPv4 only. Link-local addresses are left out: an ICE candidate
    /// cannot contain their zone.
    /// - Parameter includeLoopback: also 127.0.0.1 and `::1`. They are included anyway if there are no others.
    /// - Returns: at least one address.
    package static func advertised(for bound: IPAddress, includeLoopback: Bool = false) -> [IPAddress] {
        advertised(for: bound, includeLoopback: includeLoopback, among: entries())
    }

    /// The same, among interfaces that tests choose.
    static func advertised(
        for bound: IPAddress, includeLoopback: Bool, among entries: [Entry]
    ) -> [IPAddress] {
        guard bound.isUnspecified else { return [bound] }
        let isIPv4Only = bound.ipv4 != nil
        var seen = Set<IPAddress>()
        let usable = entries.filter { entry in
            entry.isUp && !entry.ip.isLinkLocal && (entry.ip.ipv4 != nil || !isIPv4Only)
                && seen.insert(entry.ip).inserted
        }
        let ordered = usable.filter { $0.ip.ipv4 != nil } + usable.filter { $0.ip.ipv4 == nil }
        let outward = ordered.filter { !$0.isLoopback }
        let loopback = ordered.filter(\.isLoopback)
        let chosen = includeLoopback || outward.isEmpty ? outward + loopback : outward
        return chosen.isEmpty ? [.loopback] : chosen.map(\.ip)
    }

    /// The machine's interfaces as the kernel lists them; empty if it refuses.
    private static func entries() -> [Entry] {
        var interfaces = [clinux_interface](repeating: clinux_interface(), count: limit)
        let count = unsafe Int(clinux_interfaces(&interfaces, Int32(limit)))
        return interfaces.prefix(max(count, 0)).map { interface in
            Entry(
                ip: TransportAddress(interface.address).ip, isUp: interface.is_up != 0,
                isLoopback: interface.is_loopback != 0)
        }
    }
}

extension IPAddress {
    /// Whether it is in 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291 §2.5.6).
    package var isLinkLocal: Bool {
        if let ipv4 { return ipv4 >> 16 == 0xA9FE }
        return high >> 54 == 0x3FA
    }
}
