import CLinux
import Glibc
import Synchronization

/// A thread of the operating system that runs one closure.
///
/// A worker needs one because it blocks in the kernel, which a task of Swift's thread pool must not do, and because
/// its packets must not wait behind other work in that pool.
package final class NativeThread: Sendable {
    /// Whether the thread is restricted to the requested CPU.
    package let isPinned: Bool
    private let handle: UInt64
    /// Whether the thread was joined; it must be either joined or detached, and only once.
    private let isOver = Mutex(false)

    /// An object, because C passes a single pointer to the new thread.
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Starts the thread.
    /// - Parameters:
    ///   - name: at most 15 bytes are kept.
    ///   - cpu: the only CPU that the thread may run on; nil for any. A refusal is no error, see `isPinned`.
    /// - Throws: if the system has no more threads.
    package init(name: String, cpu: Int?, _ run: @escaping @Sendable () -> Void) throws(NetError) {
        // Retained for the thread, which releases it when it begins to run; released here if no thread was started.
        let body = unsafe Unmanaged.passRetained(Body(run))
        var handle: UInt64 = 0
        var pinned: Int32 = 0
        let result = unsafe clinux_thread_start(
            &handle, name, Int32(clamping: cpu ?? -1), &pinned,
            { context in
                guard let context = unsafe context else { return }
                unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
            }, unsafe body.toOpaque())
        guard result == 0 else {
            unsafe body.release()
            throw .system(operation: "start a thread", code: -result)
        }
        self.handle = handle
        isPinned = pinned != 0
    }

    // A thread that was never joined is detached, so that the system frees it when it ends.
    deinit {
        guard !isOver.withLock({ $0 }) else { return }
        _ = clinux_thread_detach(handle)
    }

    /// Whether the calling thread is this one.
    var isCurrent: Bool { clinux_thread_is_current(handle) != 0 }

    /// Blocks until the thread has ended.
    ///
    /// Returns immediately if it was joined before or is the calling thread, which cannot wait for itself. The lock
    /// is held while waiting, so that a second caller returns no earlier than the first.
    package func join() {
        guard !isCurrent else { return }
        isOver.withLock { isOver in
            guard !isOver else { return }
            isOver = true
            _ = clinux_thread_join(handle)
        }
    }
}
