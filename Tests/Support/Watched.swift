import Dispatch
import Synchronization

/// A value that any thread changes, and for which tests wait: the change itself wakes them.
package final class Watched<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let isSo: @Sendable (Value) -> Bool
        let wake: @Sendable () -> Void
    }

    private struct State: Sendable {
        var value: Value
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>

    package init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    package var value: Value { state.withLock { $0.value } }

    /// - Returns: what `body` returns.
    @discardableResult
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        let (result, woken) = state.withLock { state -> (Result, [Waiter]) in
            let result = body(&state.value)
            let value = state.value
            let woken = state.waiters.filter { $0.isSo(value) }
            if !woken.isEmpty { state.waiters.removeAll { $0.isSo(value) } }
            return (result, woken)
        }
        for waiter in woken { waiter.wake() }
        return result
    }

    /// Waits until something is so.
    /// - Throws: `CancellationError` once the test's time is over.
    package func wait(until isSo: @escaping @Sendable (Value) -> Bool) async throws {
        let (end, wake) = AsyncStream<Never>.makeStream()
        if add(Waiter(isSo: isSo) { wake.finish() }) {
            for await _ in end {}
        }
        try Task.checkCancellation()
    }

    /// The same for tests that hold their thread.
    /// - Returns: false if it is not so for two minutes.
    package func waitHere(until isSo: @escaping @Sendable (Value) -> Bool) -> Bool {
        let semaphore = DispatchSemaphore(value: 0)
        guard add(Waiter(isSo: isSo) { semaphore.signal() }) else { return true }
        return semaphore.wait(timeout: .now() + 120) == .success
    }

    /// - Returns: false if it is so already.
    private func add(_ waiter: Waiter) -> Bool {
        state.withLock { state in
            guard !waiter.isSo(state.value) else { return false }
            state.waiters.append(waiter)
            return true
        }
    }
}
