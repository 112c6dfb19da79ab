import Base

/// Counts what each address does, so that no single one takes all of the server.
///
/// An IPv6 client counts with its whole /64, which is what one subscriber gets.
struct AddressLimits {
    struct Entry {
        var connections = 0
        var tokens: Double
        /// When `tokens` was last brought up to date, in milliseconds.
        var refilledAt: UInt64
    }

    /// Enough for every address that may hold a connection, and as many that recently did.
    private static let maximumEntries = 65_536

    private let settings: HTTPServerSettings
    private var entries: [UInt64: Entry] = [:]

    init(_ settings: HTTPServerSettings) {
        self.settings = settings
    }

    /// - Returns: false when the address has as many connections as it may.
    mutating func connect(_ ip: IPAddress, at now: UInt64) -> Bool {
        guard !isExempt(ip) else { return true }
        guard entries[Self.key(ip)] != nil || entries.count < Self.maximumEntries else { return false }
        let maximum = settings.maximumConnectionsPerAddress
        return withEntry(ip, now) { entry in
            guard entry.connections < maximum else { return false }
            entry.connections += 1
            return true
        }
    }

    mutating func disconnect(_ ip: IPAddress) {
        guard !isExempt(ip), entries[Self.key(ip)] != nil else { return }
        entries[Self.key(ip)]?.connections -= 1
    }

    /// Takes one request from the address's allowance.
    /// - Returns: nil when it may go on, else the seconds to wait.
    mutating func request(_ ip: IPAddress, at now: UInt64) -> Int? {
        guard !isExempt(ip) else { return nil }
        let rate = settings.requestRatePerAddress
        return withEntry(ip, now) { entry in
            guard entry.tokens < 1 else {
                entry.tokens -= 1
                return nil
            }
            return max(1, Int(((1 - entry.tokens) / rate).rounded(.up)))
        }
    }

    /// Forgets addresses that have no connection and a full allowance.
    mutating func forgetIdle(at now: UInt64) {
        entries = entries.filter { _, entry in
            entry.connections > 0 || refilled(entry, at: now) < settings.requestBurstPerAddress
        }
    }

    var count: Int { entries.count }

    private mutating func withEntry<Result>(
        _ ip: IPAddress, _ now: UInt64, _ body: (inout Entry) -> Result
    ) -> Result {
        let fresh = Entry(tokens: settings.requestBurstPerAddress, refilledAt: now)
        var entry = entries[Self.key(ip)] ?? fresh
        entry.tokens = refilled(entry, at: now)
        entry.refilledAt = now
        defer { entries[Self.key(ip)] = entry }
        return body(&entry)
    }

    private func refilled(_ entry: Entry, at now: UInt64) -> Double {
        let seconds = Double(now &- min(now, entry.refilledAt)) / 1_000
        return min(settings.requestBurstPerAddress, entry.tokens + seconds * settings.requestRatePerAddress)
    }

    private func isExempt(_ ip: IPAddress) -> Bool {
        ip.isLoopback && !settings.limitsLoopback
    }

    private static func key(_ ip: IPAddress) -> UInt64 {
        // IPv4 lies in ::ffff:0:0/96, whose first half is zero; no routed /64 starts with that.
        ip.ipv4.map { UInt64($0) } ?? ip.high
    }
}
