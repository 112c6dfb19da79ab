import Base

/// Sessions that are not connected yet, which cost a client only a request and a packet or two.
///
/// Where viewers are public, anyone may request sessions. These limits keep one client from taking all places with
/// requests alone. When a limit is reached, the oldest session ends: a real client sends its first check within a
/// moment, and completes its handshake soon after.
struct HalfOpenSessions {
    /// How many there may be.
    struct Limits {
        /// Of one IPv4 address, or of one IPv6 /64, which is what one subscriber gets.
        let ofSubscriber: Int
        /// Of one IPv6 /56 or /48, which is what a site gets; limits the multiples of `ofSubscriber` for these
        /// networks.
        let ofSite: Int
        let ofAll: Int

        func of(_ network: ClientNetwork) -> Int { min(ofSubscriber * Int(network.factor), ofSite) }
    }

    /// Before the first ICE check, while nothing proves that the client is at the address that the request came from.
    ///
    /// When a stream begins, hundreds of people behind one address request it in the same moment, and each session
    /// waits some 100 ms for its check. Because the oldest ends, such a session is lost only to more than a thousand
    /// requests a second from its own address, or to twenty thousand from all.
    static let unchecked = Limits(ofSubscriber: 100, ofSite: 450, ofAll: 2_000)
    /// After the first check and before the end of the handshake.
    ///
    /// A check is a single packet, keyed by the password in the answer. A handshake may take some seconds, and all
    /// clients of a school, behind one address, may begin to watch at the same time.
    static let checked = Limits(ofSubscriber: 200, ofSite: 800, ofAll: 8_000)

    /// Sessions that wait for their first check.
    private var waiting = Line(limits: unchecked)
    /// Sessions that were checked and wait for the end of their handshake.
    private var answering = Line(limits: checked)

    var count: Int { waiting.count + answering.count }

    /// Notes a new session.
    ///
    /// - Parameter client: nil if unknown. An unknown or loopback address counts toward the limit of all sessions
    ///   only.
    /// - Returns: the session that has to end for it; nil if there was room.
    mutating func add(_ id: SessionID, of client: IPAddress?) -> SessionID? {
        waiting.add(id, of: client)
    }

    /// Moves a session from the first line to the second, because its first check came.
    /// - Returns: the session that has to end for it; nil if there was room, or if the session is not in the first
    ///   line.
    mutating func noteCheck(of id: SessionID) -> SessionID? {
        waiting.remove(id).flatMap { answering.add(id, of: $0.client) }
    }

    /// Removes a session that has connected or ended.
    mutating func remove(_ id: SessionID) {
        if waiting.remove(id) == nil { answering.remove(id) }
    }

    /// The sessions in one of the two phases.
    private struct Line {
        struct Entry {
            let client: IPAddress?
            /// Increases with each entry; the lowest belongs to the oldest session.
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

        /// - Returns: the session that has to end for it, already removed from here; nil if there was room.
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

        /// The oldest session of the narrowest network in which this client has reached the limit, or of all sessions
        /// if their limit is reached; nil while there is room.
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
