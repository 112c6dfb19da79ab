import CLinux
import Glibc
import Synchronization

/// Wakes one worker's loop from any thread; many wake-ups before it looks count as one.
package final class Waker: Sendable {
    let descriptor: Int32
    private let pending = Atomic(false)

    package init() throws(NetError) {
        descriptor = clinux_event_open()
        guard descriptor >= 0 else { throw .system(operation: "open an eventfd", code: -descriptor) }
    }

    deinit {
        clinux_close(descriptor)
    }

    /// Makes the loop run once more: its handler's `endOfBatch` comes after this.
    package func wake() {
        guard !pending.exchange(true, ordering: .acquiringAndReleasing) else { return }
        clinux_event_signal(descriptor)
    }

    /// Whether it was woken and has not looked since; true to whoever learns of something that came after the wake-up.
    package var isPending: Bool { pending.load(ordering: .acquiring) }

    /// Called by the loop before it looks for work, so that no wake-up falls between.
    package func clear() {
        clinux_event_clear(descriptor)
        pending.store(false, ordering: .sequentiallyConsistent)
    }
}
