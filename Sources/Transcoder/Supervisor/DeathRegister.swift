import Base

/// Records which sources the process died of.
///
/// A source that caused three deaths is refused for a while, and twice as long after each further one.
struct DeathRegister: Sendable {
    /// Deaths after which a source is refused.
    static let limit = 3
    /// Time after which fewer deaths are forgotten; also the length of the first refusal.
    static let memory = Duration.seconds(600)
    /// Longest refusal.
    static let longestPause = Duration.seconds(24 * 3_600)
    /// Most sources recorded; publishers could otherwise fill memory.
    private static let sourceLimit = 1_000

    /// The deaths of one source.
    private struct Record {
        var count = 0
        var last: MonotonicTime

        /// How long the source is refused after its last death; zero below `limit`.
        var pause: Duration {
            guard count >= DeathRegister.limit else { return .zero }
            return min(
                DeathRegister.memory * (1 << min(count - DeathRegister.limit, 20)), DeathRegister.longestPause
            )
        }

        /// Whether the record has expired: after the refusal, no death for as long again.
        func isForgotten(at now: MonotonicTime) -> Bool { now >= last + max(pause * 2, DeathRegister.memory) }
    }

    private var records: [SourceKey: Record] = [:]

    /// Notes one death of the process, of which all these sources are suspected.
    mutating func note(_ sources: some Sequence<SourceKey>, at now: MonotonicTime) {
        records = records.filter { !$0.value.isForgotten(at: now) }
        for source in Set(sources) {
            guard records[source] != nil || records.count < Self.sourceLimit else { continue }
            records[source, default: Record(last: now)].count += 1
            records[source]?.last = now
        }
    }

    /// Whether a source is refused now.
    func refuses(_ source: SourceKey, at now: MonotonicTime) -> Bool {
        records[source].map { now < $0.last + $0.pause } ?? false
    }

    /// Sources that are refused now.
    func refusedCount(at now: MonotonicTime) -> Int { records.values.count { now < $0.last + $0.pause } }
}
