import Base

/// Tells a decoder that is stuck from one that has not had its turn.
struct Watchdog {
    private struct Sight {
        let entry: DecodingRegister.Entry
        let since: MonotonicTime
        let used: Duration
    }

    /// One that uses no time at all, and for so many limits, waits for something that does not come.
    private static let waitingFactor = 6
    /// Between two looks.
    private static let interval = Duration.milliseconds(100)
    private let limit: Duration
    private var seen: [Int: Sight] = [:]
    private var nextLook = MonotonicTime.zero

    init(limit: Duration) {
        self.limit = limit
    }

    /// - Parameters:
    ///   - entries: what is decoded now; looked at every second or more often.
    ///   - used: CPU time that an entry's thread has taken so far: on a busy machine decoders wait, and what other
    ///     threads of the process use is not theirs.
    /// - Returns: the sources whose decoders are stuck.
    mutating func stuck(
        _ entries: [Int: DecodingRegister.Entry], at now: MonotonicTime,
        used: (DecodingRegister.Entry) -> Duration
    ) -> [SourceKey] {
        guard now >= nextLook else { return [] }
        nextLook = now + Self.interval
        seen = seen.filter { entries[$0.key] == $0.value.entry }
        for (index, entry) in entries where seen[index] == nil {
            seen[index] = Sight(entry: entry, since: now, used: used(entry))
        }
        return seen.values.compactMap { sight in
            if now >= sight.since + limit * Self.waitingFactor { return sight.entry.source }
            let limit = min(limit, sight.entry.limit ?? limit)
            guard now >= sight.since + limit, used(sight.entry) - sight.used >= limit else { return nil }
            return sight.entry.source
        }
    }
}
