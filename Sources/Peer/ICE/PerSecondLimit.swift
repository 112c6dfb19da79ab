import Base

/// Allows a fixed number of events a second, counted from the first of them.
package struct PerSecondLimit: Sendable {
    private let limit: Int
    private var since = MonotonicTime.zero
    private var count = 0

    /// - Parameter limit: events a second.
    package init(_ limit: Int) {
        self.limit = limit
    }

    /// When another event is allowed, at the latest; `.zero` while the limit is not reached.
    var next: MonotonicTime { count < limit ? .zero : since + .seconds(1) }

    /// Counts an event.
    ///
    /// - Returns: false if the limit is reached; the event must not happen.
    package mutating func take(at now: MonotonicTime) -> Bool {
        if count == 0 || now - since >= .seconds(1) { (since, count) = (now, 0) }
        guard count < limit else { return false }
        count += 1
        return true
    }
}
