import Base

/// Distinguishes a stuck decoder from one that has not had enough CPU time.
struct Watchdog {
    /// An entry as first seen: since when, and the CPU time of its thread then.
    private struct Sight {
        let entry: DecodingRegister.Entry
        let since: MonotonicTime
        let used: Duration
    }

    /// Multiple of the limit, in real time, after which even a decoder that uses no CPU time counts as stuck.
    private static let waitingFactor = 6
    /// Shortest time between two checks.
    private static let interval = Duration.milliseconds(100)
    /// CPU time that decoding one frame may take.
    private let limit: Duration
    private var seen: [Int: Sight] = [:]
    private var nextLook = MonotonicTime.zero

    init(limit: Duration) {
        self.limit = limit
    }

    /// Checks the entries.
    /// - Parameters:
    ///   - entries: what is decoded now; to be checked at least once per second.
    ///   - used: CPU time that an entry's thread has used so far. Real time would blame decoders that wait on a busy
    ///     machine, and the process's CPU time includes other threads.
    /// - Returns: the sources whose decoders are stuck.
    mutating func stuck(
        _ entries: [Int: DecodingRegister.Entry], at now: MonotonicTime,
        used: (DecodingRegister.Entry) -> Duration
    ) -> [SourceKey] {
        guard now >= nextLook else { return [] }
        nextLook = now + Self.interval
        // An entry whose count has changed is another frame.
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
