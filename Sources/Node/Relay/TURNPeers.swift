import Base

/// The peers that clients of this node's TURN ports may name: its workers, and nothing else.
///
/// A worker that is announced at several addresses can be named by one address of each family only. A worker's
/// datagram does not show at which of its addresses the client named it, so the relay must always report the same
/// one.
struct TURNPeers: Equatable, Sendable {
    /// How workers are reached in one address family.
    struct Family: Equatable, Sendable {
        /// The address of this machine at which relayed addresses are opened.
        let relayed: IPAddress
        /// The addresses on this machine of the workers, by the addresses that clients name.
        fileprivate(set) var targets: [TransportAddress: TransportAddress] = [:]
        /// The inverse of `targets`.
        fileprivate(set) var names: [TransportAddress: TransportAddress] = [:]
    }

    /// Where a worker listens by UDP, and the addresses in its candidates.
    struct Worker: Sendable {
        let bound: TransportAddress
        let advertised: [TransportAddress]
    }

    private let ipv4: Family?
    private let ipv6: Family?

    /// - Parameters:
    ///   - workers: bound to one address, on a shared port or on one port each.
    ///   - local: the addresses of this machine that the bound address stands for.
    init(_ workers: [Worker], local: [IPAddress]) {
        ipv4 = Self.family(workers, local, isIPv4: true)
        ipv6 = Self.family(workers, local, isIPv4: false)
    }

    private static func family(_ workers: [Worker], _ local: [IPAddress], isIPv4: Bool) -> Family? {
        guard let relayed = best(local, isIPv4: isIPv4) else { return nil }
        var family = Family(relayed: relayed)
        for worker in workers {
            guard let ip = best(worker.advertised.map(\.ip), isIPv4: isIPv4),
                let name = worker.advertised.first(where: { $0.ip == ip })
            else { continue }
            let target = TransportAddress(ip: relayed, port: worker.bound.port)
            family.targets[name] = target
            family.names[target] = name
        }
        return family.targets.isEmpty ? nil : family
    }

    /// The first address of a family that other machines can reach, otherwise a loopback address.
    ///
    /// Browsers do not pair loopback with other addresses.
    private static func best(_ addresses: [IPAddress], isIPv4: Bool) -> IPAddress? {
        let usable = addresses.filter { ($0.ipv4 != nil) == isIPv4 }
        return usable.first { !$0.isLoopback } ?? usable.first
    }

    /// The addresses that clients may name.
    var named: Set<TransportAddress> {
        Set([ipv4, ipv6].compactMap(\.self).flatMap(\.targets.keys))
    }

    /// The address for relayed addresses of a family; nil if no worker is reached by it.
    func relayed(isIPv4: Bool) -> IPAddress? { (isIPv4 ? ipv4 : ipv6)?.relayed }

    /// The address on this machine of a peer that a client names; nil if it is no worker.
    func target(of name: TransportAddress) -> TransportAddress? {
        (name.ip.ipv4 != nil ? ipv4 : ipv6)?.targets[name]
    }

    /// The address by which clients name the source of a datagram; nil if it is no worker.
    func name(of source: TransportAddress) -> TransportAddress? {
        (source.ip.ipv4 != nil ? ipv4 : ipv6)?.names[source]
    }
}
