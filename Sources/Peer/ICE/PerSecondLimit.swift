import Base

/// At most so many a second, counted from the first one.
package struct PerSecondLimit: Sendable {
    private let limit: Int
    private var since = MonotonicTime.zero
    private var count = 0

    package init(_ limit: Int) {
        self.limit = limit
    }

    /// When another one is allowed, at the latest.
    var next: MonotonicTime { count < limit ? .zero : since + .seconds(1) }

    /// - Returns: false if there were too many.
    package mutating func take(at now: MonotonicTime) -> Bool {
        if count == 0 || now - since >= .seconds(1) { (since, count) = (now, 0) }
        guard count < limit else { return false }
        count += 1
        return true
    }
}
