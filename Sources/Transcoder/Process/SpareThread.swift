import CSandbox
import Dispatch
import Foundation
import Synchronization

/// Does one thing after the other in time that nobody else has a use for.
///
/// Whoever wakes while this runs takes its CPU at once: a thread that forwards packets does not wait for the end of
/// its turn, as it would for one that is merely less important. What is made meanwhile is handed out by a second
/// thread, because locks that others need must not be held by one that may not run for seconds.
final class SpareThread: Sendable {
    typealias Work = @Sendable () -> Void

    /// Of the process: it lives as long.
    static let shared = SpareThread()

    private let making = WorkQueue()
    private let handingOut = WorkQueue()

    /// To be made by a thread of usual rank, which both inherit.
    private init() {
        Self.start("spare") { [making] in
            csandbox_yield_to_all()
            making.run()
        }
        Self.start("spare-out") { [handingOut] in handingOut.run() }
    }

    private static func start(_ name: String, _ body: @escaping Work) {
        let thread = Thread(block: body)
        thread.name = name
        thread.start()
    }

    /// - Parameter make: what takes its time.
    /// - Parameter handOut: what is done with it.
    func run<Result: Sendable>(
        _ make: @escaping @Sendable () -> Result, then handOut: @escaping @Sendable (Result) -> Void
    ) {
        making.add { [handingOut] in
            let result = make()
            handingOut.add { handOut(result) }
        }
    }
}

/// Work that waits for its thread; as much of it as there can be jobs.
private final class WorkQueue: Sendable {
    private let waiting = Mutex<[SpareThread.Work]>([])
    private let filled = DispatchSemaphore(value: 0)

    func add(_ work: @escaping SpareThread.Work) {
        waiting.withLock { $0.append(work) }
        filled.signal()
    }

    /// The body of a thread.
    func run() {
        while true {
            filled.wait()
            waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
        }
    }
}
