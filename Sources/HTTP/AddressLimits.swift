import Base

/// Counts what each address does, so that no single one takes all of the server.
package struct AddressLimits: Sendable {
    /// Who is counted.
    package struct Client: Hashable, Sendable {
        let ip: IPAddress
        /// A proxy speaks for it; then the address of this machine is no reason to trust it.
        let isForwarded: Bool

        package init(ip: IPAddress, isForwarded: Bool = false) {
            self.ip = ip
            self.isForwarded = isForwarded
        }
    }

    typealias Network = ClientNetwork

    private struct Entry {
        var connections = 0
        var tokens: Double
        /// When `tokens` was last brought up to date, in milliseconds.
        var refilledAt: UInt64
    }

    /// Enough for every address that may hold a connection, and as many that recently did.
    private static let maximumEntries = 65_536

    private let settings: HTTPServerSettings
    private var entries: [Network: Entry] = [:]

    /// - Parameter settings: of which the limits per address count.
    package init(_ settings: HTTPServerSettings) {
        self.settings = settings
    }

    /// - Returns: false when the address, or its network, has as many connections as it may.
    mutating func connect(_ client: Client, at now: UInt64) -> Bool {
        guard !isExempt(client) else { return true }
        let networks = Network.all(of: client.ip)
        guard hasRoom(for: networks) else { return false }
        let maximum = settings.maximumConnectionsPerAddress
        guard
            networks.allSatisfy({ network in
                (entries[network]?.connections ?? 0) < maximum * Int(network.factor)
            })
        else { return false }
        for network in networks { withEntry(network, now) { $0.connections += 1 } }
        return true
    }

    mutating func disconnect(_ client: Client) {
        guard !isExempt(client) else { return }
        for network in Network.all(of: client.ip) { entries[network]?.connections -= 1 }
    }

    /// Takes one request from the address's allowance.
    /// - Parameter now: in milliseconds, by any clock that always goes forward.
    /// - Returns: nil when it may go on, else the seconds to wait.
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

    /// Takes from the allowance for what a request costs beyond others; what it does not hold is owed.
    /// - Parameter cost: in requests; negative for one that costs less, of which at most itself is given back.
    mutating func charge(_ cost: Double, to client: Client, at now: UInt64) {
        guard cost != 0, !isExempt(client) else { return }
        for network in Network.all(of: client.ip) where entries[network] != nil {
            let lowest = -settings.requestBurstPerAddress * Double(network.factor)
            let highest = burst(of: network)
            withEntry(network, now) { $0.tokens = min(max(lowest, $0.tokens - max(cost, -1)), highest) }
        }
    }

    /// Forgets addresses that have no connection and a full allowance.
    ///
    /// Looks at all of them, so not often.
    package mutating func forgetIdle(at now: UInt64) {
        entries = entries.filter { network, entry in
            entry.connections > 0 || refilled(entry, network, at: now) < burst(of: network)
        }
    }

    var count: Int { entries.count }

    private func hasRoom(for networks: [Network]) -> Bool {
        entries.count < Self.maximumEntries || networks.allSatisfy { entries[$0] != nil }
    }

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

    private func burst(of network: Network) -> Double {
        settings.requestBurstPerAddress * Double(network.factor)
    }

    private func refilled(_ entry: Entry, _ network: Network, at now: UInt64) -> Double {
        let seconds = Double(now &- min(now, entry.refilledAt)) / 1_000
        let rate = settings.requestRatePerAddress * Double(network.factor)
        return min(burst(of: network), entry.tokens + seconds * rate)
    }

    private func isExempt(_ client: Client) -> Bool {
        client.ip.isLoopback && !client.isForwarded && !settings.limitsLoopback
    }
}
