import Base
import CLinux
import CSandbox
import Dispatch
import Foundation
import Synchronization

/// Runs tasks one at a time, at idle priority.
///
/// Any thread that wakes preempts an idle-priority thread immediately, so packet forwarding does not wait for the end
/// of a time slice, as it would behind a thread of merely lower priority. On a machine that is always busy an
/// idle-priority thread would never finish. A second thread with a small share of the CPU therefore runs tasks that
/// have waited for a while, and the first result counts. A third thread at normal priority delivers results, because a
/// thread that may not run for seconds must not hold locks that others need.
final class SpareThread: Sendable {
    typealias Work = @Sendable () -> Void

    /// The instance of the process; its threads never end.
    static let shared = SpareThread()

    /// How long a task waits for idle CPU time before the second thread runs it.
    private static let patience = Duration.seconds(1)

    /// Tasks of the idle thread, of the second thread, and results to deliver.
    private let errands = WorkQueue()
    private let lateErrands = WorkQueue()
    private let handingOut = WorkQueue()

    /// Starts the threads, which inherit the priority of the caller: it must be a thread of normal priority.
    private init() {
        Self.start("spare") { [errands] in
            csandbox_yield_to_all()
            errands.run()
        }
        Self.start("spare-late") { [lateErrands] in
            csandbox_yield_to_most()
            lateErrands.run()
        }
        Self.start("spare-out") { [handingOut] in handingOut.run() }
    }

    private static func start(_ name: String, _ body: @escaping Work) {
        let thread = Thread(block: body)
        thread.name = name
        thread.start()
    }

    private static var now: MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

    /// Runs a task, and delivers its result.
    /// - Parameters:
    ///   - make: the task; on a busy machine it may run twice.
    ///   - handOut: called once with the result, at normal priority.
    func run<Result: Sendable>(
        _ make: @escaping @Sendable () -> Result, then handOut: @escaping @Sendable (Result) -> Void
    ) {
        let due = Self.now + Self.patience
        let errand = Errand { [handingOut] isFirst in
            let result = make()
            guard isFirst() else { return }
            handingOut.add { handOut(result) }
        }
        errands.add { errand.run() }
        lateErrands.add {
            let rest = due.nanoseconds(since: Self.now)
            if rest > 0, !errand.isDone { Thread.sleep(forTimeInterval: Double(rest) / 1e9) }
            errand.run()
        }
    }
}

/// A task that two threads may run, of which only the first result counts.
private final class Errand: Sendable {
    private let work: @Sendable (_ isFirst: () -> Bool) -> Void
    private let done = Atomic(false)

    init(_ work: @escaping @Sendable (_ isFirst: () -> Bool) -> Void) {
        self.work = work
    }

    var isDone: Bool { done.load(ordering: .relaxed) }

    /// Runs the task unless it is done.
    func run() {
        guard !isDone else { return }
        work { !done.exchange(true, ordering: .acquiringAndReleasing) }
    }
}

/// The queue of one thread, bounded by the number of jobs.
private final class WorkQueue: Sendable {
    private let waiting = Mutex<[SpareThread.Work]>([])
    private let filled = DispatchSemaphore(value: 0)

    func add(_ work: @escaping SpareThread.Work) {
        waiting.withLock { $0.append(work) }
        filled.signal()
    }

    /// The body of the thread; never returns.
    func run() {
        while true {
            filled.wait()
            waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
        }
    }
}
