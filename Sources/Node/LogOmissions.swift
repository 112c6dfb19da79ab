import Base

/// Counts what is left out of the log, to report it in one line later.
///
/// Clients without a token control how often sessions begin and end, and how much is dropped from full queues.
/// Without a limit they could fill the log.
struct LogOmissions {
    /// Of lines that report a session's beginning or end.
    private var sessionLines = LineRate()
    /// The total that each queue had dropped when it was last reported, by queue name.
    private var dropped: [String: UInt64] = [:]

    /// Whether another line about a session's beginning or end may be written; counts it as omitted if not.
    mutating func admitSessionLine(at now: MonotonicTime) -> Bool { sessionLines.admit(at: now) }

    /// Logs how many lines were omitted, and how many elements each queue dropped, since the last call.
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
/// Limits the log lines of one kind whose frequency clients control.
struct LineRate {
    /// Lines per second; all of them may come in one burst.
    static let limit = 200

    /// The whole second that `count` belongs to; a new second begins from zero.
    private var second: Int64 = .min
    private var count = 0
    private var omitted = 0

    /// Whether another line may be written; counts it as omitted if not.
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

    /// How many lines were omitted since the last call.
    mutating func takeOmitted() -> Int {
        defer { omitted = 0 }
        return omitted
    }
}
