import CLinux
import Glibc
import Synchronization

/// Wakes one thread's loop from any thread; several wake-ups before the loop looks count as one.
package final class Waker: Sendable {
    let descriptor: Int32
    /// Whether the eventfd was signaled and not cleared since; saves a system call for each further wake-up.
    private let pending = Atomic(false)

    /// - Throws: if the process has no descriptor left.
    package init() throws(NetError) {
        descriptor = clinux_event_open()
        guard descriptor >= 0 else { throw .system(operation: "open an eventfd", code: -descriptor) }
    }

    deinit {
        clinux_close(descriptor)
    }

    /// Makes the loop run once more, after which its handler's `endOfBatch` follows.
    package func wake() {
        guard !pending.exchange(true, ordering: .acquiringAndReleasing) else { return }
        clinux_event_signal(descriptor)
    }

    /// Whether the loop was woken and has not looked since.
    ///
    /// A thread that has seen the consequence of something done after a wake-up reads true here. Workers rely on that
    /// to perform commands before the datagrams that they caused.
    package var isPending: Bool { pending.load(ordering: .acquiring) }

    /// Resets the wake-up; called by the loop before it looks for work.
    ///
    /// In the other order, work that is posted between the look and the reset would wait for the next wake-up.
    package func clear() {
        clinux_event_clear(descriptor)
        pending.store(false, ordering: .sequentiallyConsistent)
    }
}
