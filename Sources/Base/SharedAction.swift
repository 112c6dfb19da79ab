import Synchronization

/// A closure that may be set and called from any thread.
///
/// It exists because `Mutex<((Input) -> Void)?>` does not work: each access in place wraps the closure in two more
/// thunks, to the generic calling convention and back, which are never removed. The ten thousandth call passes
/// through twenty thousand of them, until the stack overflows. A closure inside a struct stays as it is.
package final class SharedAction<Input: Sendable, Output: Sendable>: Sendable {
    private struct Action {
        let call: @Sendable (Input) -> Output
    }

    private let action: Mutex<Action?>

    /// - Parameter action: nil if it is set later.
    package init(_ action: (@Sendable (Input) -> Output)? = nil) {
        self.action = Mutex(action.map { Action(call: $0) })
    }

    /// Replaces the closure.
    /// - Parameter action: nil removes it.
    package func set(_ action: (@Sendable (Input) -> Output)?) {
        let new = action.map { Action(call: $0) }
        self.action.withLock { $0 = new }
    }

    /// Calls the closure, outside the lock, so that it may block or set another one.
    /// - Returns: nil if none is set.
    @discardableResult
    package func callAsFunction(_ input: Input) -> Output? {
        action.withLock { $0 }?.call(input)
    }
}
