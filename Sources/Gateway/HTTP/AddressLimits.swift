import Base

/// Counts what each address does, so that no single one takes all of the server.
///
/// An IPv6 client counts with its whole /64, which is what one subscriber gets, and, as providers give away whole
/// sites, with its /56 and its /48, which may do 4 and 16 times as much.
struct AddressLimits {
    /// Who is counted.
    struct Client: Hashable {
        let ip: IPAddress
        /// A proxy speaks for it; then the address of this machine is no reason to trust it.
        var isForwarded = false
    }

    /// A network, whose addresses count together.
    struct Network: Hashable {
        fileprivate let bits: UInt64
        /// How many times the limits of one client it has.
        fileprivate let factor: UInt8

        /// The widest one that an address counts with.
        init(widestOf ip: IPAddress) {
            self = ip.ipv4.map { Network(UInt64($0), 1) } ?? Network(ip.high & ~0xFFFF, 16)
        }

        fileprivate init(_ bits: UInt64, _ factor: UInt8) {
            self.bits = bits
            self.factor = factor
        }

        fileprivate static func all(of ip: IPAddress) -> [Network] {
            // IPv4 lies in ::ffff:0:0/96, whose first half is zero; no routed /64 starts with that.
            if let bits = ip.ipv4 { return [Network(UInt64(bits), 1)] }
            return [
                Network(ip.high, 1), Network(ip.high & ~0xFF, 4), Network(ip.high & ~0xFFFF, 16),
            ]
        }
    }

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

    init(_ settings: HTTPServerSettings) {
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
    /// - Returns: nil when it may go on, else the seconds to wait.
    mutating func request(_ client: Client, at now: UInt64) -> Int? {
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
    mutating func charge(_ cost: Double, to client: Client, at now: UInt64) {
        guard cost > 0, !isExempt(client) else { return }
        for network in Network.all(of: client.ip) where entries[network] != nil {
            let lowest = -settings.requestBurstPerAddress * Double(network.factor)
            withEntry(network, now) { $0.tokens = max(lowest, $0.tokens - cost) }
        }
    }

    /// Forgets addresses that have no connection and a full allowance.
    mutating func forgetIdle(at now: UInt64) {
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
