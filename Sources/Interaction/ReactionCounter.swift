import Base

/// Adds up what people tap, and says when others hear of it and when it is written down.
///
/// A tap itself is neither told nor written: thousands come every second.
package struct ReactionCounter: Equatable, Sendable {
    /// One kind, as all are told of it.
    package struct Count: Equatable, Sendable {
        /// Since the stream was made.
        package let total: Int
        /// A second, as of the last moment.
        package let rate: Int
    }

    /// Between two messages to everybody.
    package static let tellInterval = Duration.milliseconds(500)
    /// What a crash may lose.
    package static let saveInterval = Duration.seconds(5)
    /// The longest time over which a rate is taken, after which it is 0.
    private static let rateWindow = Duration.seconds(1)

    /// By kind.
    package private(set) var totals: [String: Int]
    /// Of kinds that are not there any more.
    private var former: Int
    /// Of all kinds that there ever were: it only grows.
    package var taps: Int { totals.values.reduce(former, Self.sum) }
    /// What was told: at first what was found.
    private var told: [String: Int]
    private var toldAt: MonotonicTime?
    /// Whether somebody was told of a rate that is not 0.
    private var isRunning = false
    private var saved: [String: Int]
    private var savedAt: MonotonicTime?

    init(totals: [String: Int], former: Int = 0) {
        self.totals = totals
        self.former = former
        told = totals
        saved = totals
    }

    mutating func add(_ taps: Int, of kind: String) {
        totals[kind, default: 0] += taps
    }

    /// As much as there can be counted.
    static func sum(_ one: Int, _ other: Int) -> Int {
        let (total, overflow) = one.addingReportingOverflow(other)
        return overflow ? .max : total
    }

    /// Forgets the kinds that are not there any more, but for what they add to all taps.
    mutating func keep(_ kinds: [String]) {
        for (kind, total) in totals where !kinds.contains(kind) { former = Self.sum(former, total) }
        totals = totals.filter { kinds.contains($0.key) }
        told = told.filter { kinds.contains($0.key) }
        saved = saved.filter { kinds.contains($0.key) }
    }

    /// When there is something to be told or written; nil if never.
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

    /// What to tell everybody now; nil for nothing.
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

    /// As of now, for those who come; by kind.
    package func counts(at now: MonotonicTime) -> [String: Count] {
        let passed = toldAt.map { min(now - $0, Self.rateWindow) } ?? Self.rateWindow
        let seconds = Double(max(passed.wholeNanoseconds, Self.tellInterval.wholeNanoseconds)) / 1e9
        return Dictionary(
            uniqueKeysWithValues: totals.map { kind, total in
                let rate = Double(max(total - (told[kind] ?? 0), 0)) / seconds
                return (kind, Count(total: total, rate: Int(min(rate.rounded(.up), 1e9))))
            })
    }

    /// What to write down now; nil for nothing.
    /// - Parameter isLast: whether there will be no later occasion.
    package mutating func save(at now: MonotonicTime, isLast: Bool) -> [String: Int]? {
        guard totals != saved, isLast || savedAt.map({ $0 + Self.saveInterval <= now }) ?? true else {
            return nil
        }
        saved = totals
        savedAt = now
        return totals
    }

    /// What was to be written could not be: it is tried again.
    mutating func revert(to totals: [String: Int]) {
        saved = totals
    }
}
