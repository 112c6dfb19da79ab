import Base

/// Limits connections and requests per client network, so that no single one can occupy the server.
///
/// Each network has a token bucket of requests and a count of connections. Not synchronized: belongs to one thread, or
/// to a lock.
package struct AddressLimits: Sendable {
    /// The client that a request or connection counts for.
    package struct Client: Hashable, Sendable {
        let ip: IPAddress
        /// Whether the request came through a proxy; then a loopback address is no reason for an exemption.
        let isForwarded: Bool

        package init(ip: IPAddress, isForwarded: Bool = false) {
            self.ip = ip
            self.isForwarded = isForwarded
        }
    }

    typealias Network = ClientNetwork

    /// State of one network.
    private struct Entry {
        var connections = 0
        /// Requests that may be made now; negative after a request that cost more than there was.
        var tokens: Double
        /// When `tokens` was last refilled, in milliseconds.
        var refilledAt: UInt64
    }

    /// Bounds memory under a flood from many addresses: several times the default limit of connections.
    private static let maximumEntries = 65_536

    private let settings: HTTPServerSettings
    private var entries: [Network: Entry] = [:]

    /// - Parameter settings: only its limits per address are used.
    package init(_ settings: HTTPServerSettings) {
        self.settings = settings
    }

    /// Counts a new connection.
    /// - Parameter now: in milliseconds of a monotonic clock.
    /// - Returns: false if the address or one of its networks is at its limit, and nothing was counted.
    mutating func connect(_ client: Client, at now: UInt64) -> Bool {
        guard !isExempt(client) else { return true }
        let networks = Network.all(of: client.ip)
        guard hasRoom(for: networks) else { return false }
        guard networks.allSatisfy({ (entries[$0]?.connections ?? 0) < maximumConnections(of: $0) }) else {
            return false
        }
        for network in networks { withEntry(network, now) { $0.connections += 1 } }
        return true
    }

    /// Ends the count of a connection for which `connect` returned true.
    mutating func disconnect(_ client: Client) {
        guard !isExempt(client) else { return }
        for network in Network.all(of: client.ip) { entries[network]?.connections -= 1 }
    }

    /// Takes one request from the allowances of all networks of a client, or from none.
    /// - Parameter now: in milliseconds of a monotonic clock.
    /// - Returns: nil if the request may proceed, otherwise the seconds to wait, at least 1.
    package mutating func request(_ client: Client, at now: UInt64) -> Int? {
        guard !isExempt(client) else { return nil }
        let networks = Network.all(of: client.ip)
        guard hasRoom(for: networks) else { return 1 }
        var wait: Double?
        for network in networks {
            let tokens = withEntry(network, now) { $0.tokens }
            guard tokens < 1 else { continue }
            wait = max(wait ?? 0, (1 - tokens) / (settings.requestRatePerAddress * Double(network.factor)))
        }
        if let wait { return max(1, Int(wait.rounded(.up))) }
        charge(1, to: client, at: now)
        return nil
    }

    /// Charges a request's extra cost; an allowance that is too small becomes a debt, up to a whole burst.
    /// - Parameter cost: in requests; negative for a cheap request, which gets back at most what it was counted as:
    ///   one.
    mutating func charge(_ cost: Double, to client: Client, at now: UInt64) {
        guard cost != 0, !isExempt(client) else { return }
        for network in Network.all(of: client.ip) where entries[network] != nil {
            let lowest = -settings.requestBurstPerAddress * Double(network.factor)
            let highest = burst(of: network)
            withEntry(network, now) { $0.tokens = min(max(lowest, $0.tokens - max(cost, -1)), highest) }
        }
    }

    /// Removes networks without a connection and with a full allowance, which differ in nothing from unknown ones.
    ///
    /// Visits every entry, so it should run at intervals of a second or more.
    package mutating func forgetIdle(at now: UInt64) {
        entries = entries.filter { network, entry in
            entry.connections > 0 || refilled(entry, network, at: now) < burst(of: network)
        }
    }

    /// Number of networks remembered.
    var count: Int { entries.count }

    /// Whether these networks are known already or there is room for new ones; a full table refuses new addresses.
    private func hasRoom(for networks: [Network]) -> Bool {
        entries.count < Self.maximumEntries || networks.allSatisfy { entries[$0] != nil }
    }

    /// Modifies a network's entry, created or refilled as of `now`.
    @discardableResult
    private mutating func withEntry<Result>(
        _ network: Network, _ now: UInt64, _ body: (inout Entry) -> Result
    ) -> Result {
        var entry = entries[network] ?? Entry(tokens: burst(of: network), refilledAt: now)
        entry.tokens = refilled(entry, network, at: now)
        entry.refilledAt = now
        defer { entries[network] = entry }
        return body(&entry)
    }

    /// A network's limit of connections; a site gets at most half of all, however many networks it has.
    private func maximumConnections(of network: Network) -> Int {
        let each = settings.maximumConnectionsPerAddress
        return min(each * Int(network.factor), max(settings.maximumConnections / 2, each))
    }

    /// Size of a network's token bucket.
    private func burst(of network: Network) -> Double {
        settings.requestBurstPerAddress * Double(network.factor)
    }

    /// Tokens as of `now`, at most a full bucket.
    private func refilled(_ entry: Entry, _ network: Network, at now: UInt64) -> Double {
        let seconds = Double(now &- min(now, entry.refilledAt)) / 1_000
        let rate = settings.requestRatePerAddress * Double(network.factor)
        return min(burst(of: network), entry.tokens + seconds * rate)
    }

    /// Whether no limit applies: a direct connection from this machine.
    private func isExempt(_ client: Client) -> Bool {
        client.ip.isLoopback && !client.isForwarded && !settings.limitsLoopback
    }
}
