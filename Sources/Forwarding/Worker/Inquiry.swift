import Synchronization

/// A question to a worker, which is answered exactly once, with nil if the worker cannot answer it.
package final class Inquiry<Answer: Sendable>: Sendable {
    private struct Receiver {
        let call: @Sendable (Answer?) -> Void
    }

    private let receiver: Mutex<Receiver?>

    /// - Parameter receiver: called once, usually on the worker's thread, which it must not block; nil if there is no
    ///   answer.
    package init(_ receiver: @escaping @Sendable (Answer?) -> Void) {
        self.receiver = Mutex(Receiver(call: receiver))
    }

    /// A worker that does not know the subject, or ends, releases the inquiry, which answers it.
    deinit { answer(nil) }

    /// Answers the question; further calls do nothing.
    func answer(_ answer: Answer?) {
        let receiver = receiver.withLock { $0.take() }
        receiver?.call(answer)
    }
}
