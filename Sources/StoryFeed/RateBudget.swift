import Base

/// How often something may happen: a burst at once, then one per interval.
///
/// - Source: the generic cell rate algorithm (ITU-T I.371, virtual scheduling); one time stamp is all it keeps.
struct RateBudget: Equatable, Sendable {
    private let interval: Int64
    private let slack: Int64
    private var nextDue = MonotonicTime(nanoseconds: .min)

    /// - Parameter burst: at least 1.
    init(interval: Duration, burst: Int) {
        self.interval = max(interval.wholeNanoseconds, 0)
        slack = self.interval.multipliedReportingOverflow(by: Int64(max(burst - 1, 0))).partialValue
    }

    /// - Returns: whether it may happen now; if so, it is taken to happen.
    mutating func spend(at now: MonotonicTime) -> Bool {
        guard nextDue.nanoseconds(since: now) <= slack else { return false }
        nextDue = max(nextDue, now).advanced(byNanoseconds: interval)
        return true
    }
}
