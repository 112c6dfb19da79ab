import Base

/// Whom clients of this node's TURN ports may name, and where they are: the workers, and nobody else.
///
/// A worker that is announced at several addresses can be named by one of each family: by the address alone from which
/// a worker answers nobody knows at which of them it was asked.
struct TURNPeers: Equatable, Sendable {
    /// How the workers are reached by one family of addresses.
    struct Family: Equatable, Sendable {
        /// Where addresses in clients' names are opened.
        let relayed: IPAddress
        /// Where on this machine those are that clients name.
        fileprivate(set) var targets: [TransportAddress: TransportAddress] = [:]
        /// The other way about.
        fileprivate(set) var names: [TransportAddress: TransportAddress] = [:]
    }

    /// Where a worker listens by UDP, and what candidates say of it.
    struct Worker: Sendable {
        let bound: TransportAddress
        let advertised: [TransportAddress]
    }

    private let ipv4: Family?
    private let ipv6: Family?

    /// - Parameters:
    ///   - workers: bound to one address, to one port or each to its own.
    ///   - local: what that address stands for on this machine.
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

    /// The first that others reach, too; browsers do not pair loopback with anything else.
    private static func best(_ addresses: [IPAddress], isIPv4: Bool) -> IPAddress? {
        let usable = addresses.filter { ($0.ipv4 != nil) == isIPv4 }
        return usable.first { !$0.isLoopback } ?? usable.first
    }

    /// What clients may name.
    var named: Set<TransportAddress> {
        Set([ipv4, ipv6].compactMap(\.self).flatMap(\.targets.keys))
    }

    /// Nil where there is nobody by that family.
    func relayed(isIPv4: Bool) -> IPAddress? { (isIPv4 ? ipv4 : ipv6)?.relayed }

    /// Where the one is whom a client names; nil for a stranger.
    func target(of name: TransportAddress) -> TransportAddress? {
        (name.ip.ipv4 != nil ? ipv4 : ipv6)?.targets[name]
    }

    /// How clients name what sent something; nil for a stranger.
    func name(of source: TransportAddress) -> TransportAddress? {
        (source.ip.ipv4 != nil ? ipv4 : ipv6)?.names[source]
    }
}
