import Synchronization

/// A question to a worker, which is answered once: by the worker, or by nobody.
package final class Inquiry<Answer: Sendable>: Sendable {
    private struct Receiver {
        let call: @Sendable (Answer?) -> Void
    }

    private let receiver: Mutex<Receiver?>

    /// - Parameter receiver: called on the worker's thread, and must not wait; with nil where nobody can answer.
    package init(_ receiver: @escaping @Sendable (Answer?) -> Void) {
        self.receiver = Mutex(Receiver(call: receiver))
    }

    /// A worker that knows nothing of what was asked for, or ends, lets go of it.
    deinit { answer(nil) }

    func answer(_ answer: Answer?) {
        let receiver = receiver.withLock { $0.take() }
        receiver?.call(answer)
    }
}
