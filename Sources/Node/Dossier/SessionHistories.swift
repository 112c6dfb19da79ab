import Base
import Forwarding

/// What operators can look up of sessions: the events of each, and for a while those sessions that have ended.
///
/// Bounded in events and in sessions; when there are too many ended sessions, the oldest is forgotten.
struct SessionHistories {
    /// A session that has ended.
    struct Ended: Sendable {
        let record: SessionRecord
        let log: SessionLog
        let at: MonotonicTime
        let reason: String
    }

    /// Ended sessions that are kept.
    static let endedLimit = 500
    /// How long an ended session is kept.
    static let retention = Duration.seconds(600)

    private var logs: [SessionID: SessionLog] = [:]
    /// Open sessions by their labels, which are unique among them.
    private var labels: [String: SessionID] = [:]
    /// In the order in which they ended.
    private(set) var ended: [Ended] = []
    /// Events in all logs, those of ended sessions included.
    private var entryCount = 0

    /// The open session with this ID or label.
    func find(_ name: String) -> SessionID? {
        guard let id = labels[String(name.prefix(SessionID.labelLength))] else { return nil }
        return id.label == name || id.description == name ? id : nil
    }

    /// The latest ended session with this ID or label.
    func findEnded(_ name: String) -> Ended? {
        ended.last { $0.record.id.label == name || $0.record.id.description == name }
    }

    /// Empty for a session that is not open.
    func log(of id: SessionID) -> SessionLog { logs[id] ?? SessionLog() }

    /// Starts the log of a session, with the answer to its offer as the first event.
    mutating func begin(_ id: SessionID, at now: MonotonicTime) {
        labels[id.label] = id
        logs[id] = SessionLog()
        note(.answered, of: id, at: now)
    }

    /// Logs an event of an open session.
    mutating func note(_ event: SessionEvent, of id: SessionID, at now: MonotonicTime) {
        guard let before = logs[id]?.count else { return }
        // Beyond the total limit, new sessions have short logs, and long ones stop growing.
        let limit = entryCount < SessionLog.totalLimit ? SessionLog.limit : SessionLog.shortLimit
        logs[id]?.append(event, at: now, limit: limit)
        entryCount += (logs[id]?.count ?? before) - before
    }

    /// Moves a session to those that have ended.
    mutating func end(_ record: SessionRecord, because reason: String, at now: MonotonicTime) {
        guard let log = logs.removeValue(forKey: record.id) else { return }
        if labels[record.id.label] == record.id { labels[record.id.label] = nil }
        if ended.count >= Self.endedLimit { drop(ended.count - Self.endedLimit + 1) }
        ended.append(Ended(record: record, log: log, at: now, reason: reason))
    }

    /// Forgets sessions that ended more than `retention` ago.
    mutating func advance(to now: MonotonicTime) {
        drop(ended.prefix { now >= $0.at + Self.retention }.count)
    }

    private mutating func drop(_ count: Int) {
        guard count > 0 else { return }
        for old in ended.prefix(count) { entryCount -= old.log.count }
        ended.removeFirst(count)
    }
}
