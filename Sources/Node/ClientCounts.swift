import Base

/// How many of something each network has.
struct ClientCounts {
    private var counts: [ClientNetwork: Int] = [:]

    /// The networks that a client counts with, the narrowest first.
    ///
    /// Of an address that nobody knows there are none, nor of this machine's, which says nothing of who is behind it.
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

/// Sessions of those without a token, by where they come from: no single one takes all places.
struct StrangersSessions {
    /// An IPv6 site has at most so many times what one of its /64 has.
    private static let siteFactor = 4

    /// Of one address, or of one IPv6 /64.
    var limit: Int
    private var counts = ClientCounts()

    init(limit: Int) {
        self.limit = limit
    }

    func hasRoom(for client: IPAddress?) -> Bool {
        ClientCounts.networks(of: client).allSatisfy {
            counts[$0] < limit * min(Int($0.factor), Self.siteFactor)
        }
    }

    mutating func add(_ client: IPAddress?) { counts.add(client) }
    mutating func remove(_ client: IPAddress?) { counts.remove(client) }
}
