import Base

/// What is left out of the log, and told of later: strangers decide how often sessions begin and end, and how much
/// comes to queues that are full.
struct LogOmissions {
    /// Of lines about sessions that were made or have ended.
    private var sessionLines = LineRate()
    /// What queues had dropped when that was told last.
    private var dropped: [String: UInt64] = [:]

    /// Whether another line may tell that a session began or ended.
    mutating func admitSessionLine(at now: MonotonicTime) -> Bool { sessionLines.admit(at: now) }

    /// Says what was left out and what queues dropped since the last time.
    mutating func tell(_ queues: [String: InboxCounters], to log: Log) {
        for (name, counters) in queues.sorted(by: { $0.key < $1.key }) {
            let told = dropped.updateValue(counters.dropped, forKey: name) ?? 0
            guard counters.dropped > told else { continue }
            log.warning("events.dropped", ["queue": name, "events": counters.dropped - told])
        }
        let omitted = sessionLines.takeOmitted()
        if omitted > 0 { log.info("session.lines-omitted", ["lines": omitted]) }
    }
}
/// How many log lines of one kind may be written: strangers decide how often some things happen.
struct LineRate {
    /// A second, and at once.
    static let limit = 200

    private var second: Int64 = .min
    private var count = 0
    private var omitted = 0

    /// Whether another may be written.
    mutating func admit(at now: MonotonicTime) -> Bool {
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            second = current
            count = 0
        }
        count += 1
        guard count > Self.limit else { return true }
        omitted += 1
        return false
    }

    /// How many were left out since the last call.
    mutating func takeOmitted() -> Int {
        defer { omitted = 0 }
        return omitted
    }
}
