import Base

/// Wakes whoever keeps the feed when the next thing of it is due.
struct FeedTimer {
    private var task: Task<Void, Never>?
    private var deadline: MonotonicTime?

    /// Waits until then, instead of for something later.
    mutating func set(
        to new: MonotonicTime, at now: MonotonicTime, _ wake: @escaping @Sendable () async -> Void
    ) {
        if let deadline, deadline <= new { return }
        task?.cancel()
        deadline = new
        let wait = max(new - now, .milliseconds(1))
        task = Task {
            do { try await Task.sleep(for: wait) } catch { return }
            await wake()
        }
    }

    /// It has woken.
    mutating func clear() { deadline = nil }

    func cancel() { task?.cancel() }
}
