import Base
import Forwarding
import Peer
import Stage
import Wire

/// Everybody's sessions: whose they are, which worker carries them, what happened to each, and whether there is a place
/// for another.
struct SessionCensus {
    /// How many there may be.
    struct Limits {
        let ofAll: Int
        /// Of one address, for those without a token.
        let ofStrangersAddress: Int
    }

    private var limits: Limits
    private var records: [SessionID: SessionRecord] = [:]
    /// What happened to each of them, and to those that ended lately.
    private(set) var histories = SessionHistories()
    /// How many sessions each worker has.
    private var loads: [Int]
    private var halfOpen = HalfOpenSessions()
    /// What a late `DELETE` may still mean.
    private(set) var ended = EndedSessions()
    private var strangers: StrangersSessions
    /// The place of the next session in the order in which they are made.
    private(set) var nextOrder: UInt64 = 1

    init(workers: Int, limits: Limits) {
        self.limits = limits
        loads = Array(repeating: 0, count: workers)
        strangers = StrangersSessions(limit: limits.ofStrangersAddress)
    }

    /// Who is in stays.
    mutating func setLimits(_ limits: Limits) {
        self.limits = limits
        strangers.limit = limits.ofStrangersAddress
    }

    var count: Int { records.count }
    /// By what they are for.
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
    /// In no order.
    var all: [SessionRecord] { Array(records.values) }

    /// Sessions that are to end by now, and why.
    func due(at now: MonotonicTime) -> [(id: SessionID, reason: String)] {
        let due = records.values.compactMap { record -> (id: SessionID, reason: String)? in
            if let end = record.closesAt, now >= end { return (record.id, "replaced") }
            guard let deadline = record.waitsUntil, now >= deadline else { return nil }
            return (record.id, "waited in vain")
        }
        return due.sorted { $0.id < $1.id }
    }

    subscript(_ id: SessionID) -> SessionRecord? { records[id] }

    /// The worker with the fewest sessions, the first of several.
    var leastLoadedWorker: Int { loads.indices.min { loads[$0] < loads[$1] } ?? 0 }

    /// Whether there is a place: not all are for everybody, so that strangers cannot keep those out who have a part,
    /// nor one of them all others.
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

    /// - Returns: a place after all sessions that there are.
    mutating func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Takes a new session in, whether there is a place or not.
    /// - Returns: one that has to end, because too many have asked and not come.
    mutating func add(_ record: SessionRecord, at now: MonotonicTime) -> SessionID? {
        guard records.updateValue(record, forKey: record.id) == nil else { return nil }
        nextOrder += 1
        histories.begin(record.id, at: now)
        if loads.indices.contains(record.worker) { loads[record.worker] += 1 }
        if record.isStrangers { strangers.add(record.request.clientAddress) }
        return halfOpen.add(record.id, of: record.request.clientAddress)
    }

    /// Changes what is known of a session, if it is still there.
    mutating func update(_ id: SessionID, _ change: (inout SessionRecord) -> Void) {
        guard var record = records[id] else { return }
        change(&record)
        records[id] = record
    }

    /// A session's first ICE check came.
    /// - Returns: one that has to end, because too many have come and not shaken hands.
    mutating func noteCheck(of id: SessionID) -> SessionID? { halfOpen.noteCheck(of: id) }

    /// A worker says something of a session.
    /// - Returns: what follows for that session alone.
    mutating func receive(_ event: WorkerEvent, at now: MonotonicTime) -> [LiveAction] {
        guard let id = event.session else { return [] }
        if let news = SessionEvent(event) { histories.note(news, of: id, at: now) }
        if case .connected = event { halfOpen.remove(id) }
        return records[id]?.receive(event) ?? []
    }

    /// A session's client asks for something on its control channel.
    /// - Returns: nil for what the stage of its stream has to arrange.
    mutating func receive(_ wish: ControlRequest, from id: SessionID, at now: MonotonicTime) -> [LiveAction]?
    {
        if case .prefer(let patch) = wish { return [prefer(patch, by: id, at: now)].compactMap(\.self) }
        return records[id]?.receive(wish)
    }

    /// A session's client wants other pictures, or none.
    /// - Returns: nil if there is no such session any more.
    mutating func prefer(_ patch: DeliveryPatch, by id: SessionID, at now: MonotonicTime) -> LiveAction? {
        guard let action = records[id]?.prefer(patch), let wanted = records[id]?.preferences else {
            return nil
        }
        histories.note(.preferred(wanted), of: id, at: now)
        return action
    }

    /// A session is the source of its stream: who waited for one waits no longer.
    mutating func noteSource(_ id: SessionID, watchedBy audience: Set<SessionID>, at now: MonotonicTime) {
        histories.note(.becameSource, of: id, at: now)
        for viewer in audience { records[viewer]?.waitsUntil = nil }
    }

    /// A session has other ICE credentials.
    mutating func restartICE(
        of id: SessionID, entityTag: String, remote: ICECredentials, at now: MonotonicTime
    ) {
        records[id]?.entityTag = entityTag
        records[id]?.plan.remoteCredentials = remote
        histories.note(.restartedICE, of: id, at: now)
    }

    /// Forgets what happened to sessions that ended long ago.
    mutating func advance(to now: MonotonicTime) { histories.advance(to: now) }

    /// A session has ended.
    /// - Returns: what was known of it; nil for one that was not there.
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

    /// The client of a session that has ended knows it.
    /// - Returns: whether there was such a session lately.
    mutating func acknowledgeEnd(of id: SessionID) -> Bool { ended.acknowledge(id) }

    /// Forgets all of them.
    mutating func removeAll() { self = SessionCensus(workers: loads.count, limits: limits) }
}
