import Base
import CLinux

/// The addresses of this machine that a peer could reach.
package enum LocalAddresses {
    /// At most this many are looked at; a machine full of containers has hundreds.
    private static let limit = 512

    /// One address of one interface.
    struct Entry {
        let ip: IPAddress
        let isUp: Bool
        let isLoopback: Bool
    }

    /// What to advertise for a socket bound to `bound`.
    ///
    /// The bound address itself, unless it stands for all: then the addresses of all interfaces that are up, IPv4 only
    /// for 0.0.0.0, both for `::`. Link-local addresses are left out: in an ICE candidate they lack their zone.
    /// - Parameter includeLoopback: also 127.0.0.1 and `::1`; they come anyway if there is nothing else.
    package static func advertised(for bound: IPAddress, includeLoopback: Bool = false) -> [IPAddress] {
        advertised(for: bound, includeLoopback: includeLoopback, among: entries())
    }

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
    /// 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291 §2.5.6).
    package var isLinkLocal: Bool {
        if let ipv4 { return ipv4 >> 16 == 0xA9FE }
        return high >> 54 == 0x3FA
    }
}
