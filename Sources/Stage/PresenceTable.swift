import Base

/// Who is connected, and who was until a moment ago.
///
/// Bounded by what the server lets connect; nothing of it outlives a restart.
struct PresenceTable: Equatable, Sendable {
    private struct Entry: Equatable, Sendable {
        var name: String?
        var mayJoinBackstage: Bool
        var mayModerate: Bool
        var connections: Set<Stage.Connection>
        /// Set while there is no connection.
        var goneAt: MonotonicTime?
        /// Grows in the order in which they came.
        let order: UInt64
    }

    private var entries: [ParticipantID: Entry] = [:]
    private var nextOrder: UInt64 = 0
    private var anonymousSockets = 0
    private var anonymousSessions = 0
    /// All graces are equally long, so this is in order of time; what is outdated is skipped.
    private var departures: [(id: ParticipantID, at: MonotonicTime)] = []
    private var firstDeparture = 0
    private var listed: [ParticipantID] = []

    static func == (left: PresenceTable, right: PresenceTable) -> Bool {
        left.entries == right.entries && left.anonymousSockets == right.anonymousSockets
            && left.anonymousSessions == right.anonymousSessions
    }

    func contains(_ id: ParticipantID) -> Bool { entries[id] != nil }
    func isConnected(_ id: ParticipantID) -> Bool { entries[id].map { !$0.connections.isEmpty } ?? false }
    func name(of id: ParticipantID) -> String? { entries[id]?.name }

    // MARK: Coming and going

    /// - Returns: whether they were not here before.
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

    /// - Returns: whether it was the last connection.
    mutating func disconnect(
        _ id: ParticipantID, by connection: Stage.Connection, until time: MonotonicTime
    ) -> Bool {
        // Somebody who was removed may still have connections that close, and others since.
        guard var entry = entries[id], entry.connections.remove(connection) != nil else { return false }
        if entry.connections.isEmpty {
            entry.goneAt = time
            departures.append((id, time))
        }
        entries[id] = entry
        return entry.connections.isEmpty
    }

    /// Notes somebody who gave a sign of life without being connected.
    mutating func touch(
        _ id: ParticipantID, name: String?, mayJoinBackstage: Bool = false, until time: MonotonicTime
    ) {
        guard entries[id] == nil else { return }
        insert(
            id, name: name, mayJoinBackstage: mayJoinBackstage, mayModerate: false, connections: [],
            goneAt: time)
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

    /// Those who are away for long enough; they are still in the table.
    mutating func takeDeparted(by now: MonotonicTime) -> [ParticipantID] {
        var departed: [ParticipantID] = []
        while firstDeparture < departures.count, departures[firstDeparture].at <= now {
            let (id, time) = departures[firstDeparture]
            firstDeparture += 1
            if entries[id]?.goneAt == time { departed.append(id) }
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

    /// Connected viewers: those who may come in backstage, and all others with those who have no name.
    func viewerCounts(isOnStage: (ParticipantID) -> Bool) -> (privileged: Int, others: Int) {
        // Somebody without a name who watches and follows too cannot be told from two people.
        var counts = (privileged: 0, others: max(anonymousSockets, anonymousSessions))
        for (id, entry) in entries where !entry.connections.isEmpty && !isOnStage(id) {
            if entry.mayJoinBackstage { counts.privileged += 1 } else { counts.others += 1 }
        }
        return counts
    }

    /// - Parameter leaders: who is listed before others, if they are there.
    mutating func list(
        limit: Int, leaders: [ParticipantID], isOnStage: (ParticipantID) -> Bool
    ) -> [Stage.ListedViewer] {
        let first = leaders.filter { isConnected($0) && !isOnStage($0) }.prefix(limit)
        listed = listed.filter { isConnected($0) && !isOnStage($0) }
        let missing = first.filter { !listed.contains($0) }
        // Who came last makes room.
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
