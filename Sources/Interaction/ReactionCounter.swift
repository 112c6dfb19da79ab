import Base

/// Counts taps, and decides when others are notified of the counts and when these are saved.
///
/// A single tap is neither announced nor saved, because there may be thousands per second.
package struct ReactionCounter: Equatable, Sendable {
    /// The count of one kind, as it is announced.
    package struct Count: Equatable, Sendable {
        /// Taps since the stream was created.
        package let total: Int
        /// Taps per second, as of the last moments.
        package let rate: Int
    }

    /// Time between two notifications.
    package static let tellInterval = Duration.milliseconds(500)
    /// Time between two saves, and so the taps that a crash may lose.
    package static let saveInterval = Duration.seconds(5)
    /// The longest time over which a rate is measured; after that it is 0.
    private static let rateWindow = Duration.seconds(1)

    /// Taps by kind.
    package private(set) var totals: [String: Int]
    /// Taps of kinds that were removed from the settings.
    private var former: Int
    /// Taps of all kinds that there ever were; it never decreases.
    package var taps: Int { totals.values.reduce(former, Self.sum) }
    /// The counts that were last announced; at first those that were restored.
    private var told: [String: Int]
    /// When the counts were last announced; nil before the first time.
    private var toldAt: MonotonicTime?
    /// Whether a rate other than 0 was announced, so that the 0 has to be announced, too.
    private var isRunning = false
    /// The counts that were last saved.
    private var saved: [String: Int]
    private var savedAt: MonotonicTime?

    /// - Parameters:
    ///   - totals: taps by kind, as restored.
    ///   - former: taps of kinds that were removed.
    init(totals: [String: Int], former: Int = 0) {
        self.totals = totals
        self.former = former
        told = totals
        saved = totals
    }

    mutating func add(_ taps: Int, of kind: String) {
        totals[kind, default: 0] += taps
    }

    /// Adds two counts, up to the largest integer.
    static func sum(_ one: Int, _ other: Int) -> Int {
        let (total, overflow) = one.addingReportingOverflow(other)
        return overflow ? .max : total
    }

    /// Removes the kinds that the settings no longer name; their taps remain in the count of all.
    mutating func keep(_ kinds: [String]) {
        for (kind, total) in totals where !kinds.contains(kind) { former = Self.sum(former, total) }
        totals = totals.filter { kinds.contains($0.key) }
        told = told.filter { kinds.contains($0.key) }
        saved = saved.filter { kinds.contains($0.key) }
    }

    /// When counts have to be announced or saved; nil if nothing is due.
    package var deadline: MonotonicTime? {
        var next: MonotonicTime?
        if totals != told {
            next = toldAt.map { $0 + Self.tellInterval } ?? .zero
        } else if isRunning {
            next = toldAt.map { $0 + Self.rateWindow }
        }
        if totals != saved {
            let due = savedAt.map { $0 + Self.saveInterval } ?? .zero
            next = min(next ?? due, due)
        }
        return next
    }

    /// Takes the counts to announce now; nil if nothing is due.
    package mutating func tell(at now: MonotonicTime) -> [String: Count]? {
        let hasNews = totals != told
        let wait = hasNews ? Self.tellInterval : Self.rateWindow
        guard hasNews || isRunning, toldAt.map({ $0 + wait <= now }) ?? true else { return nil }
        let counts = self.counts(at: now)
        told = totals
        toldAt = now
        isRunning = counts.values.contains { $0.rate > 0 }
        return counts
    }

    /// The counts as of now by kind, for a client that has just joined.
    package func counts(at now: MonotonicTime) -> [String: Count] {
        let passed = toldAt.map { min(now - $0, Self.rateWindow) } ?? Self.rateWindow
        let seconds = Double(max(passed.wholeNanoseconds, Self.tellInterval.wholeNanoseconds)) / 1e9
        return Dictionary(
            uniqueKeysWithValues: totals.map { kind, total in
                let rate = Double(max(total - (told[kind] ?? 0), 0)) / seconds
                return (kind, Count(total: total, rate: Int(min(rate.rounded(.up), 1e9))))
            })
    }

    /// Takes the counts to save now; nil if nothing is due.
    /// - Parameter isLast: whether there will be no later call.
    package mutating func save(at now: MonotonicTime, isLast: Bool) -> [String: Int]? {
        guard totals != saved, isLast || savedAt.map({ $0 + Self.saveInterval <= now }) ?? true else {
            return nil
        }
        saved = totals
        savedAt = now
        return totals
    }

    /// Returns to the counts that are durable because saving failed, so that it is tried again.
    ///
    /// Kinds that a refused change of the settings had removed come back with the counts that are durable.
    mutating func revert(to totals: [String: Int], former: Int) {
        for (kind, count) in totals where self.totals[kind] == nil {
            self.totals[kind] = count
            told[kind] = count
        }
        self.former = former
        saved = totals
    }
}
