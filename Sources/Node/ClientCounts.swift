import Base

/// Counts of something per client network.
///
/// An IPv6 client counts with its /64, /56 and /48, so that a client with a large prefix cannot evade a limit by
/// changing addresses.
struct ClientCounts {
    /// Networks whose count is zero have no entry, so the table does not grow with the number of past clients.
    private var counts: [ClientNetwork: Int] = [:]

    /// The networks that a client counts with, the narrowest first.
    ///
    /// Empty for an unknown address, and for loopback, where a reverse proxy on this machine may stand for any number
    /// of clients.
    static func networks(of client: IPAddress?) -> [ClientNetwork] {
        guard let client, !client.isLoopback else { return [] }
        return ClientNetwork.all(of: client)
    }

    subscript(_ network: ClientNetwork) -> Int { counts[network] ?? 0 }

    mutating func add(_ client: IPAddress?) {
        for network in Self.networks(of: client) { counts[network, default: 0] += 1 }
    }

    mutating func remove(_ client: IPAddress?) {
        for network in Self.networks(of: client) {
            guard let count = counts[network] else { continue }
            counts[network] = count > 1 ? count - 1 : nil
        }
    }
}

/// Sessions without a token, counted by client network, so that no single network can take all places.
struct StrangersSessions {
    /// The largest multiple of `limit` that a wider IPv6 network may have: a /48 gets no more than a /56.
    private static let siteFactor = 4

    /// Sessions that one IPv4 address or one IPv6 /64 may have.
    var limit: Int
    private var counts = ClientCounts()

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether every network of the client is below its limit; always true for unknown and loopback addresses.
    func hasRoom(for client: IPAddress?) -> Bool {
        ClientCounts.networks(of: client).allSatisfy {
            counts[$0] < limit * min(Int($0.factor), Self.siteFactor)
        }
    }

    mutating func add(_ client: IPAddress?) { counts.add(client) }
    mutating func remove(_ client: IPAddress?) { counts.remove(client) }
}
