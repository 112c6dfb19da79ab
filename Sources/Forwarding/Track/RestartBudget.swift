import Base

/// Limits how often a source may restart, because all its viewers restart with it.
///
/// A few restarts are allowed in a burst, as when a network comes and goes, and then one per second.
struct RestartBudget {
    /// Number of restarts in a burst.
    static let burst = 4
    /// Time after which another one is allowed.
    static let interval = Duration.seconds(1)

    /// When the full burst is available again.
    private var madeUp = MonotonicTime.zero

    /// Consumes one restart if the limit allows it now.
    /// - Returns: whether it does.
    mutating func take(at now: MonotonicTime) -> Bool {
        let start = max(madeUp, now)
        guard start <= now + Self.interval * (Self.burst - 1) else { return false }
        madeUp = start + Self.interval
        return true
    }
}
