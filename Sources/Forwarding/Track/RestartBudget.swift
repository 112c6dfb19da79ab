import Base

/// Decides how often a source may begin anew, since all who watch it begin anew with it.
///
/// A few times at once, as where a network comes and goes, and then once in a second.
struct RestartBudget {
    /// So many at once.
    static let burst = 4
    /// Until there is room for another one.
    static let interval = Duration.seconds(1)

    /// When all that were taken are made up for.
    private var madeUp = MonotonicTime.zero

    /// - Returns: whether the source may begin anew now; if so, it counts.
    mutating func take(at now: MonotonicTime) -> Bool {
        let start = max(madeUp, now)
        guard start <= now + Self.interval * (Self.burst - 1) else { return false }
        madeUp = start + Self.interval
        return true
    }
}
