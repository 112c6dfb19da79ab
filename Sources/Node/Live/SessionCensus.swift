import Base
import Forwarding
import Peer
import Stage
import Wire

/// All sessions of the node: their records, their workers, their histories, and the limits for new ones.
struct SessionCensus {
    /// The number of sessions that may be open.
    struct Limits {
        let ofAll: Int
        /// Sessions without a token from one address.
        let ofStrangersAddress: Int
    }

    private var limits: Limits
    private var records: [SessionID: SessionRecord] = [:]
    /// The events of open sessions, and of those that ended lately.
    private(set) var histories = SessionHistories()
    /// The number of sessions of each worker.
    private var loads: [Int]
    /// The sessions that are not connected yet.
    private var halfOpen = HalfOpenSessions()
    /// Sessions for which a `DELETE` may still come.
    private(set) var ended = EndedSessions()
    /// The sessions without a token, by address.
    private var strangers: StrangersSessions
    /// The place of the next session in the order in which sessions are made.
    private(set) var nextOrder: UInt64 = 1

    init(workers: Int, limits: Limits) {
        self.limits = limits
        loads = Array(repeating: 0, count: workers)
        strangers = StrangersSessions(limit: limits.ofStrangersAddress)
    }

    /// Applies to sessions that begin from now on; open sessions stay.
    mutating func setLimits(_ limits: Limits) {
        self.limits = limits
        strangers.limit = limits.ofStrangersAddress
    }

    var count: Int { records.count }
    /// The number of open sessions, by purpose.
    var counts: SessionCounts {
        var counts = SessionCounts()
        for record in records.values {
            switch record.purpose {
            case .publish: counts.publishing += 1
            case .play: counts.playing += 1
            case .feed: counts.inFeed += 1
            case .stage where record.request.isAudience: counts.inAudience += 1
            case .stage: counts.onStage += 1
            }
        }
        return counts
    }
    /// In no particular order.
    var all: [SessionRecord] { Array(records.values) }

    /// The sessions that have to end by now, and why, in the order of their IDs.
    func due(at now: MonotonicTime) -> [(id: SessionID, reason: String)] {
        let due = records.values.compactMap { record -> (id: SessionID, reason: String)? in
            if let end = record.closesAt, now >= end { return (record.id, "replaced") }
            guard let deadline = record.waitsUntil, now >= deadline else { return nil }
            return (record.id, "waited in vain")
        }
        return due.sorted { $0.id < $1.id }
    }

    subscript(_ id: SessionID) -> SessionRecord? { records[id] }

    /// The worker with the fewest sessions; the first one if several have equally few.
    var leastLoadedWorker: Int { loads.indices.min { loads[$0] < loads[$1] } ?? 0 }

    /// Throws if there is no place for another session.
    ///
    /// A tenth of all places is reserved for publishers and a tenth for clients with a token, so that anonymous
    /// viewers cannot shut them out. The limit per address keeps one anonymous client from shutting out the others.
    func checkPlace(for request: SessionRequest) throws(SessionRefusal) {
        let kept = limits.ofAll / 10
        var places = limits.ofAll
        if request.isWatching { places -= kept }
        if request.sender == nil { places -= kept }
        guard records.count < places else { throw .overloaded }
        guard request.sender != nil || strangers.hasRoom(for: request.clientAddress) else {
            throw .tooManySessions
        }
    }

    /// - Returns: a place after those of all sessions so far.
    mutating func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Adds a new session, without checking the limits.
    /// - Returns: a session that has to end, because too many sessions wait for their first check.
    mutating func add(_ record: SessionRecord, at now: MonotonicTime) -> SessionID? {
        guard records.updateValue(record, forKey: record.id) == nil else { return nil }
        nextOrder += 1
        histories.begin(record.id, at: now)
        if loads.indices.contains(record.worker) { loads[record.worker] += 1 }
        if record.isStrangers { strangers.add(record.request.clientAddress) }
        return halfOpen.add(record.id, of: record.request.clientAddress)
    }

    /// Changes the record of a session, if it is still open.
    mutating func update(_ id: SessionID, _ change: (inout SessionRecord) -> Void) {
        guard var record = records[id] else { return }
        change(&record)
        records[id] = record
    }

    /// Notes a session's first ICE check.
    /// - Returns: a session that has to end, because too many sessions wait for the end of their handshake.
    mutating func noteCheck(of id: SessionID) -> SessionID? { halfOpen.noteCheck(of: id) }

    /// Notes a worker's event in the session's history.
    /// - Returns: what follows for that session alone.
    mutating func receive(_ event: WorkerEvent, at now: MonotonicTime) -> [LiveAction] {
        guard let id = event.session else { return [] }
        if let news = SessionEvent(event) { histories.note(news, of: id, at: now) }
        if case .connected = event { halfOpen.remove(id) }
        return records[id]?.receive(event) ?? []
    }

    /// Handles a request from a session's control channel.
    /// - Returns: nil if the stage has to handle it.
    mutating func receive(_ wish: ControlRequest, from id: SessionID, at now: MonotonicTime) -> [LiveAction]?
    {
        if case .prefer(let patch) = wish { return [prefer(patch, by: id, at: now)].compactMap(\.self) }
        return records[id]?.receive(wish)
    }

    /// Changes a client's preferences for pictures.
    /// - Returns: nil if there is no such session.
    mutating func prefer(_ patch: DeliveryPatch, by id: SessionID, at now: MonotonicTime) -> LiveAction? {
        guard let action = records[id]?.prefer(patch), let wanted = records[id]?.preferences else {
            return nil
        }
        histories.note(.preferred(wanted), of: id, at: now)
        return action
    }

    /// Notes that a session has become the source of its stream; viewers who waited for a source stop waiting.
    mutating func noteSource(_ id: SessionID, watchedBy audience: Set<SessionID>, at now: MonotonicTime) {
        histories.note(.becameSource, of: id, at: now)
        for viewer in audience { records[viewer]?.waitsUntil = nil }
    }

    /// Notes a session's new ICE credentials.
    mutating func restartICE(
        of id: SessionID, entityTag: String, remote: ICECredentials, at now: MonotonicTime
    ) {
        records[id]?.entityTag = entityTag
        records[id]?.plan.remoteCredentials = remote
        histories.note(.restartedICE, of: id, at: now)
    }

    /// Forgets the histories of sessions that ended long ago.
    mutating func advance(to now: MonotonicTime) { histories.advance(to: now) }

    /// Removes a session that has ended.
    /// - Returns: its record; nil if it was not open.
    mutating func remove(
        _ id: SessionID, because reason: String, at now: MonotonicTime
    ) -> SessionRecord? {
        guard let record = records.removeValue(forKey: id) else { return nil }
        histories.end(record, because: reason, at: now)
        if loads.indices.contains(record.worker) { loads[record.worker] -= 1 }
        halfOpen.remove(id)
        if record.isStrangers { strangers.remove(record.request.clientAddress) }
        ended.add(record)
        return record
    }

    /// Notes that the client of an ended session knows of the end.
    /// - Returns: whether there was such a session lately.
    mutating func acknowledgeEnd(of id: SessionID) -> Bool { ended.acknowledge(id) }

    /// Forgets all sessions and their histories.
    mutating func removeAll() { self = SessionCensus(workers: loads.count, limits: limits) }
}
