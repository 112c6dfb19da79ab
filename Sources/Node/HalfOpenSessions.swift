import Base

/// Sessions whose client has sent no ICE check yet: all that a request costs whoever makes it.
///
/// Where viewers are public, anybody may ask for sessions. These limits keep them from taking everybody's places by
/// asking alone: the oldest goes first, because a client that is there sends its first check within a moment.
struct HalfOpenSessions {
    /// Of one address, or of one IPv6 /64, which is what one subscriber gets.
    static let limitForEach = 20
    /// Of one IPv6 /48, which is what one site gets.
    static let limitForSite = 100
    static let limit = 2_000

    private struct Entry {
        let id: SessionID
        let client: IPAddress?
    }

    /// Oldest first.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Notes a new session.
    ///
    /// - Parameter client: nil where nobody knows. A loopback address says nothing of who is behind it, and counts
    ///   among all only.
    /// - Returns: the one that has to go for it.
    mutating func add(_ id: SessionID, of client: IPAddress?) -> SessionID? {
        let crowded = client.flatMap { crowd(with: $0) } ?? (entries.count >= Self.limit ? 0 : nil)
        let oldest = crowded.map { entries.remove(at: $0).id }
        entries.append(Entry(id: id, client: client))
        return oldest
    }

    /// A check came, or the session has ended.
    mutating func remove(_ id: SessionID) {
        entries.removeAll { $0.id == id }
    }

    /// The place of the oldest one of those who fill what this client may have; nil while they do not.
    private func crowd(with client: IPAddress) -> Int? {
        guard !client.isLoopback else { return nil }
        return oldest(of: Self.limitForEach) { $0.isSubscriber(with: client) }
            ?? oldest(of: Self.limitForSite) { $0.isSite(with: client) }
    }

    private func oldest(of limit: Int, where isMeant: (IPAddress) -> Bool) -> Int? {
        var first: Int?
        var count = 0
        for index in entries.indices where entries[index].client.map(isMeant) == true {
            first = first ?? index
            count += 1
        }
        return count >= limit ? first : nil
    }
}

extension IPAddress {
    /// Whether both are one IPv4 address, or of one IPv6 /64.
    fileprivate func isSubscriber(with other: IPAddress) -> Bool {
        ipv4 == other.ipv4 && (ipv4 != nil || high == other.high)
    }

    /// Whether both are of one IPv6 /48.
    fileprivate func isSite(with other: IPAddress) -> Bool {
        ipv4 == nil && other.ipv4 == nil && high >> 16 == other.high >> 16
    }
}
