import Base
import CLinux
import CSandbox
import Dispatch
import Foundation
import Synchronization

/// Does one thing after another at idle priority.
///
/// Whoever wakes while this runs takes its CPU at once: a thread that forwards packets does not wait for the end of
/// its turn, as it would for one that is merely less important. On a machine that is always busy it would never come to
/// an end, so what has waited for a while is done by another thread, which has a small share of the time; whichever of
/// the two is first counts. A third one hands out what was made, because locks that others need must not be held by
/// threads that may not run for seconds.
final class SpareThread: Sendable {
    typealias Work = @Sendable () -> Void

    /// Of the process: it lives as long.
    static let shared = SpareThread()

    /// Nothing waits longer for time that is to spare.
    private static let patience = Duration.seconds(1)

    private let errands = WorkQueue()
    private let lateErrands = WorkQueue()
    private let handingOut = WorkQueue()

    /// To be made by a thread of usual rank, which they inherit.
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

    /// - Parameter make: what takes its time; on a busy machine it may be done twice.
    /// - Parameter handOut: what is done with it, once.
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

/// Something that two threads may do, and that counts once.
private final class Errand: Sendable {
    private let work: @Sendable (_ isFirst: () -> Bool) -> Void
    private let done = Atomic(false)

    init(_ work: @escaping @Sendable (_ isFirst: () -> Bool) -> Void) {
        self.work = work
    }

    var isDone: Bool { done.load(ordering: .relaxed) }

    func run() {
        guard !isDone else { return }
        work { !done.exchange(true, ordering: .acquiringAndReleasing) }
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
