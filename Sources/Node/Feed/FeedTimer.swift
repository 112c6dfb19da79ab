import Base

/// Wakes the feed at its next deadline.
///
/// Owned by the node's actor; only one task sleeps at a time.
struct FeedTimer {
    private var task: Task<Void, Never>?
    private var deadline: MonotonicTime?

    /// Sets the timer to a deadline, unless it is set to an earlier one.
    mutating func set(
        to new: MonotonicTime, at now: MonotonicTime, _ wake: @escaping @Sendable () async -> Void
    ) {
        if let deadline, deadline <= new { return }
        task?.cancel()
        deadline = new
        // At least a millisecond, so that a deadline in the past cannot make a busy loop.
        let wait = max(new - now, .milliseconds(1))
        task = Task {
            do { try await Task.sleep(for: wait) } catch { return }
            await wake()
        }
    }

    /// To be called when the timer has fired, before it is set again.
    mutating func clear() { deadline = nil }

    func cancel() { task?.cancel() }
}
