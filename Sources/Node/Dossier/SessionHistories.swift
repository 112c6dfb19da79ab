import Base
import Forwarding

/// What is kept of sessions for those who look into them: what happened to each, and for a while those that ended.
///
/// Bounded in events and in sessions: of those that ended the oldest goes first.
struct SessionHistories {
    /// A session that has ended.
    struct Ended: Sendable {
        let record: SessionRecord
        let log: SessionLog
        let at: MonotonicTime
        let reason: String
    }

    static let endedLimit = 500
    /// For how long one that has ended is kept.
    static let retention = Duration.seconds(600)

    private var logs: [SessionID: SessionLog] = [:]
    /// By what the log calls them, which is theirs alone while they live.
    private var labels: [String: SessionID] = [:]
    /// The earliest first.
    private(set) var ended: [Ended] = []
    /// Of all logs.
    private var entryCount = 0

    /// The session that lives under this name: its whole name, or what the log calls it.
    func find(_ name: String) -> SessionID? {
        guard let id = labels[String(name.prefix(SessionID.labelLength))] else { return nil }
        return id.label == name || id.description == name ? id : nil
    }

    /// The latest session under this name that has ended.
    func findEnded(_ name: String) -> Ended? {
        ended.last { $0.record.id.label == name || $0.record.id.description == name }
    }

    func log(of id: SessionID) -> SessionLog { logs[id] ?? SessionLog() }

    mutating func begin(_ id: SessionID, at now: MonotonicTime) {
        labels[id.label] = id
        logs[id] = SessionLog()
        note(.answered, of: id, at: now)
    }

    mutating func note(_ event: SessionEvent, of id: SessionID, at now: MonotonicTime) {
        guard let before = logs[id]?.count else { return }
        let limit = entryCount < SessionLog.totalLimit ? SessionLog.limit : SessionLog.shortLimit
        logs[id]?.append(event, at: now, limit: limit)
        entryCount += (logs[id]?.count ?? before) - before
    }

    mutating func end(_ record: SessionRecord, because reason: String, at now: MonotonicTime) {
        guard let log = logs.removeValue(forKey: record.id) else { return }
        if labels[record.id.label] == record.id { labels[record.id.label] = nil }
        if ended.count >= Self.endedLimit { drop(ended.count - Self.endedLimit + 1) }
        ended.append(Ended(record: record, log: log, at: now, reason: reason))
    }

    /// Forgets those that ended long ago.
    mutating func advance(to now: MonotonicTime) {
        drop(ended.prefix { now >= $0.at + Self.retention }.count)
    }

    private mutating func drop(_ count: Int) {
        guard count > 0 else { return }
        for old in ended.prefix(count) { entryCount -= old.log.count }
        ended.removeFirst(count)
    }
}
