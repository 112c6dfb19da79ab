import Synchronization

/// A closure that is set and called from any thread.
///
/// `Mutex<((Input) -> Void)?>` is none: each access in place wraps the closure in two more thunks, from the generic
/// calling convention to its own and back, and they stay. Whoever calls it for the ten thousandth time goes through
/// twenty thousand of them, until the stack has no room left. A structure around the closure is left as it is.
package final class SharedAction<Input: Sendable, Output: Sendable>: Sendable {
    private struct Action {
        let call: @Sendable (Input) -> Output
    }

    private let action: Mutex<Action?>

    /// - Parameter action: nil where it is set later.
    package init(_ action: (@Sendable (Input) -> Output)? = nil) {
        self.action = Mutex(action.map { Action(call: $0) })
    }

    /// - Parameter action: nil for nothing any more.
    package func set(_ action: (@Sendable (Input) -> Output)?) {
        let new = action.map { Action(call: $0) }
        self.action.withLock { $0 = new }
    }

    /// Calls it without the lock.
    /// - Returns: nil where none is set.
    @discardableResult
    package func callAsFunction(_ input: Input) -> Output? {
        action.withLock { $0 }?.call(input)
    }
}
