import Base

/// The participants who are connected, or were until a moment ago.
///
/// Its size is bounded by the server's limits on connections. Nothing of it survives a restart.
struct PresenceTable: Equatable, Sendable {
    /// One participant who is connected or within the grace time.
    private struct Entry: Equatable, Sendable {
        var name: String?
        var mayJoinBackstage: Bool
        var mayModerate: Bool
        var connections: Set<Stage.Connection>
        /// When the grace time ends; set only while there is no connection.
        var goneAt: MonotonicTime?
        /// Increases in the order in which participants came.
        let order: UInt64
    }

    private var entries: [ParticipantID: Entry] = [:]
    private var nextOrder: UInt64 = 0
    private var anonymousSockets = 0
    private var anonymousSessions = 0
    /// The ends of grace times, sorted, because all are equally long.
    ///
    /// An entry is outdated if its participant has connected since; it is skipped.
    private var departures: [(id: ParticipantID, at: MonotonicTime)] = []
    /// Index of the first entry of `departures` that has not been looked at.
    private var firstDeparture = 0
    /// The viewers listed by name last time, so that the same ones stay listed.
    private var listed: [ParticipantID] = []

    static func == (left: PresenceTable, right: PresenceTable) -> Bool {
        left.entries == right.entries && left.anonymousSockets == right.anonymousSockets
            && left.anonymousSessions == right.anonymousSessions
    }

    /// Whether a participant is connected, or within the grace time.
    func contains(_ id: ParticipantID) -> Bool { entries[id] != nil }
    func isConnected(_ id: ParticipantID) -> Bool { entries[id].map { !$0.connections.isEmpty } ?? false }
    func name(of id: ParticipantID) -> String? { entries[id]?.name }

    // MARK: Coming and going

    /// Adds a connection, and updates the participant's name and rights from the token.
    /// - Returns: whether the participant was not in the table before.
    mutating func connect(
        _ sender: Stage.Sender, by connection: Stage.Connection
    ) -> Bool {
        let (id, name) = (sender.id, sender.name)
        guard var entry = entries[id] else {
            insert(
                id, name: name, mayJoinBackstage: sender.mayJoinBackstage, mayModerate: sender.mayModerate,
                connections: [connection], goneAt: nil)
            return true
        }
        entry.connections.insert(connection)
        entry.goneAt = nil
        entry.name = name ?? entry.name
        entry.mayJoinBackstage = sender.mayJoinBackstage
        entry.mayModerate = sender.mayModerate
        entries[id] = entry
        return false
    }

    /// Removes a connection.
    /// - Parameter time: when the grace time ends, if this was the last connection.
    /// - Returns: whether it was the participant's last connection.
    mutating func disconnect(
        _ id: ParticipantID, by connection: Stage.Connection, until time: MonotonicTime
    ) -> Bool {
        // A participant who was removed may still have old connections that close, and may have opened new ones
        // since.
        guard var entry = entries[id], entry.connections.remove(connection) != nil else { return false }
        if entry.connections.isEmpty {
            entry.goneAt = time
            departures.append((id, time))
        }
        entries[id] = entry
        return entry.connections.isEmpty
    }

    /// Adds a participant who acted without being connected, for the grace time; does nothing for one who is in the
    /// table.
    mutating func touch(
        _ id: ParticipantID, name: String?, mayJoinBackstage: Bool = false, until time: MonotonicTime
    ) {
        guard entries[id] == nil else { return }
        insert(
            id, name: name, mayJoinBackstage: mayJoinBackstage, mayModerate: false, connections: [],
            goneAt: time)
        departures.append((id, time))
    }

    /// Grants a participant without a connection the grace time anew, because they have acted; does nothing for others.
    /// - Parameter time: when the grace time ends, which is never before the end of any that was granted earlier.
    mutating func prolong(_ id: ParticipantID, until time: MonotonicTime) {
        // Once a second at most, so that the list of departures does not grow with what they do.
        guard let goneAt = entries[id]?.goneAt, goneAt + .seconds(1) <= time else { return }
        entries[id]?.goneAt = time
        departures.append((id, time))
    }

    private mutating func insert(
        _ id: ParticipantID, name: String?, mayJoinBackstage: Bool, mayModerate: Bool,
        connections: Set<Stage.Connection>, goneAt: MonotonicTime?
    ) {
        entries[id] = Entry(
            name: name, mayJoinBackstage: mayJoinBackstage, mayModerate: mayModerate,
            connections: connections, goneAt: goneAt, order: nextOrder)
        nextOrder += 1
    }

    mutating func remove(_ id: ParticipantID) {
        entries[id] = nil
    }

    /// Counts a connection of an anonymous viewer.
    mutating func addAnonymous(_ connection: Stage.Connection) {
        switch connection {
        case .socket: anonymousSockets += 1
        case .session: anonymousSessions += 1
        }
    }

    mutating func removeAnonymous(_ connection: Stage.Connection) {
        switch connection {
        case .socket: anonymousSockets = max(anonymousSockets - 1, 0)
        case .session: anonymousSessions = max(anonymousSessions - 1, 0)
        }
    }

    // MARK: Time

    var deadline: MonotonicTime? {
        guard firstDeparture < departures.count else { return nil }
        return departures[firstDeparture].at
    }

    /// Returns the participants whose grace time has ended; they stay in the table until `remove`.
    ///
    /// Entries already looked at are dropped in batches of 1,024, because removing from the front of an array moves
    /// the rest.
    mutating func takeDeparted(by now: MonotonicTime) -> [ParticipantID] {
        var departed: [ParticipantID] = []
        while firstDeparture < departures.count, departures[firstDeparture].at <= now {
            let (id, time) = departures[firstDeparture]
            firstDeparture += 1
            guard entries[id]?.goneAt == time else { continue }
            // Whoever came and went again within one moment is in the list twice.
            entries[id]?.goneAt = nil
            departed.append(id)
        }
        if firstDeparture == departures.count {
            departures.removeAll(keepingCapacity: false)
            firstDeparture = 0
        } else if firstDeparture >= 1_024 {
            departures.removeFirst(firstDeparture)
            firstDeparture = 0
        }
        return departed
    }

    // MARK: Numbers and names

    /// Counts connected viewers: `privileged` ones may come in backstage; `others` include anonymous viewers.
    func viewerCounts(isOnStage: (ParticipantID) -> Bool) -> (privileged: Int, others: Int) {
        // An anonymous viewer's session and socket cannot be matched, so the larger of the two counts is the best
        // estimate.
        var counts = (privileged: 0, others: max(anonymousSockets, anonymousSessions))
        for (id, entry) in entries where !entry.connections.isEmpty && !isOnStage(id) {
            if entry.mayJoinBackstage { counts.privileged += 1 } else { counts.others += 1 }
        }
        return counts
    }

    /// Chooses the connected viewers to be listed by name; those listed before stay listed while they are connected.
    /// - Parameters:
    ///   - limit: how many to list at most.
    ///   - leaders: participants to list before all others, if they are connected viewers.
    mutating func list(
        limit: Int, leaders: [ParticipantID], isOnStage: (ParticipantID) -> Bool
    ) -> [Stage.ListedViewer] {
        let first = leaders.filter { isConnected($0) && !isOnStage($0) }.prefix(limit)
        listed = listed.filter { isConnected($0) && !isOnStage($0) }
        let missing = first.filter { !listed.contains($0) }
        // The viewers listed last make room for new leaders.
        let surplus = listed.count + missing.count - limit
        if surplus > 0 {
            let dropped = Set(listed.filter { !first.contains($0) }.suffix(surplus))
            listed.removeAll { dropped.contains($0) }
        }
        listed += missing
        if listed.count < limit, entries.count > listed.count {
            let known = Set(listed)
            let others = entries.filter { id, entry in
                !entry.connections.isEmpty && !known.contains(id) && !isOnStage(id)
            }
            let next = others.sorted { $0.value.order < $1.value.order }.prefix(limit - listed.count)
            listed += next.map(\.key)
        }
        let others = listed.filter { !first.contains($0) }
        return (first + others).map { id in
            Stage.ListedViewer(
                id: id, name: entries[id]?.name, isModerator: entries[id]?.mayModerate ?? false)
        }
    }
}
