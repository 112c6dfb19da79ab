import Base

/// Remembers what the process died of.
///
/// A source that it died of three times is not decoded for a while, and after each further death for twice as long.
struct DeathRegister: Sendable {
    /// So many deaths, and the source is not decoded.
    static let limit = 3
    /// Fewer deaths are forgotten after this; the first pause is as long.
    static let memory = Duration.seconds(600)
    static let longestPause = Duration.seconds(24 * 3_600)
    private static let sourceLimit = 1_000

    private struct Record {
        var count = 0
        var last: MonotonicTime

        /// From the last death on.
        var pause: Duration {
            guard count >= DeathRegister.limit else { return .zero }
            return min(
                DeathRegister.memory * (1 << min(count - DeathRegister.limit, 20)), DeathRegister.longestPause
            )
        }

        /// As long again as the pause nothing happened: it begins anew.
        func isForgotten(at now: MonotonicTime) -> Bool { now >= last + max(pause * 2, DeathRegister.memory) }
    }

    private var records: [SourceKey: Record] = [:]

    mutating func note(_ sources: some Sequence<SourceKey>, at now: MonotonicTime) {
        records = records.filter { !$0.value.isForgotten(at: now) }
        for source in Set(sources) {
            guard records[source] != nil || records.count < Self.sourceLimit else { continue }
            records[source, default: Record(last: now)].count += 1
            records[source]?.last = now
        }
    }

    func refuses(_ source: SourceKey, at now: MonotonicTime) -> Bool {
        records[source].map { now < $0.last + $0.pause } ?? false
    }

    func refusedCount(at now: MonotonicTime) -> Int { records.values.count { now < $0.last + $0.pause } }
}
