import Base

/// Sessions that are not connected yet: all that a request and a packet or two cost whoever makes them.
///
/// Where viewers are public, anybody may ask for sessions. These limits keep them from taking everybody's places by
/// asking alone: the oldest goes first, because a client that is there sends its first check within a moment, and
/// completes its handshake soon after.
struct HalfOpenSessions {
    /// How many there may be.
    struct Limits {
        /// Of one address, or of one IPv6 /64, which is what one subscriber gets.
        let ofSubscriber: Int
        /// Of one IPv6 /56 or /48, which are what sites get.
        let ofSite: Int
        let ofAll: Int

        func of(_ network: ClientNetwork) -> Int { min(ofSubscriber * Int(network.factor), ofSite) }
    }

    /// Before the first ICE check: nothing says that the client is where the request came from.
    static let unchecked = Limits(ofSubscriber: 20, ofSite: 100, ofAll: 2_000)
    /// After it: a check is one packet, whose password stands in the answer, but a handshake may take a few seconds,
    /// and a school begins to watch at once.
    static let checked = Limits(ofSubscriber: 64, ofSite: 256, ofAll: 8_000)

    private var waiting = Line(limits: unchecked)
    private var answering = Line(limits: checked)

    var count: Int { waiting.count + answering.count }

    /// Notes a new session.
    ///
    /// - Parameter client: nil where nobody knows. A loopback address says nothing of who is behind it, and counts
    ///   among all only.
    /// - Returns: the one that has to go for it.
    mutating func add(_ id: SessionID, of client: IPAddress?) -> SessionID? {
        waiting.add(id, of: client)
    }

    /// A session's first check came.
    /// - Returns: the one that has to go for it.
    mutating func noteCheck(of id: SessionID) -> SessionID? {
        waiting.remove(id).flatMap { answering.add(id, of: $0.client) }
    }

    /// A session is connected, or has ended.
    mutating func remove(_ id: SessionID) {
        if waiting.remove(id) == nil { answering.remove(id) }
    }

    /// Sessions that wait for the same.
    private struct Line {
        struct Entry {
            let client: IPAddress?
            /// The higher, the later.
            let number: UInt64
        }

        let limits: Limits
        private var entries: [SessionID: Entry] = [:]
        private var counts = ClientCounts()
        private var lastNumber: UInt64 = 0

        init(limits: Limits) {
            self.limits = limits
        }

        var count: Int { entries.count }

        /// - Returns: the one that has to go for it.
        mutating func add(_ id: SessionID, of client: IPAddress?) -> SessionID? {
            let crowded = crowded(by: client)
            if let crowded { remove(crowded) }
            lastNumber += 1
            entries[id] = Entry(client: client, number: lastNumber)
            counts.add(client)
            return crowded
        }

        @discardableResult
        mutating func remove(_ id: SessionID) -> Entry? {
            guard let entry = entries.removeValue(forKey: id) else { return nil }
            counts.remove(entry.client)
            return entry
        }

        /// The oldest one of those who fill what this client may have; nil while they do not.
        private func crowded(by client: IPAddress?) -> SessionID? {
            for network in ClientCounts.networks(of: client) where counts[network] >= limits.of(network) {
                return oldest { ClientCounts.networks(of: $0.client).contains(network) }
            }
            return entries.count >= limits.ofAll ? oldest { _ in true } : nil
        }

        private func oldest(where isMeant: (Entry) -> Bool) -> SessionID? {
            var oldest: (id: SessionID, number: UInt64)?
            for (id, entry) in entries where isMeant(entry) {
                if let number = oldest?.number, number < entry.number { continue }
                oldest = (id, entry.number)
            }
            return oldest?.id
        }
    }
}
