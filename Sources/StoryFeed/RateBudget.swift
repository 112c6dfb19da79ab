import Base

/// Limits how often something may happen: a burst first, then once per interval.
///
/// - Source: the generic cell rate algorithm (ITU-T I.371, virtual scheduling); its only state is one timestamp.
struct RateBudget: Equatable, Sendable {
    private let interval: Int64
    private let slack: Int64
    private var nextDue = MonotonicTime(nanoseconds: .min)

    /// - Parameter burst: at least 1.
    init(interval: Duration, burst: Int) {
        self.interval = max(interval.wholeNanoseconds, 0)
        slack = self.interval.multipliedReportingOverflow(by: Int64(max(burst - 1, 0))).partialValue
    }

    /// Consumes one occurrence if the limit allows it now.
    /// - Returns: whether it does.
    mutating func spend(at now: MonotonicTime) -> Bool {
        guard nextDue.nanoseconds(since: now) <= slack else { return false }
        nextDue = max(nextDue, now).advanced(byNanoseconds: interval)
        return true
    }
}
