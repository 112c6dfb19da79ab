import CLinux
import Glibc
import Synchronization

/// A thread of the operating system, which runs one closure.
///
/// A worker needs one of its own, not a task: it blocks in the kernel, and its packets must not wait behind other
/// people's work.
package final class NativeThread: Sendable {
    /// Whether the CPU asked for was granted.
    package let isPinned: Bool
    private let handle: UInt64
    /// A thread is joined or detached once.
    private let isOver = Mutex(false)

    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// - Parameters:
    ///   - name: at most 15 bytes are kept.
    ///   - cpu: the only CPU it may run on; nil for any.
    package init(name: String, cpu: Int?, _ run: @escaping @Sendable () -> Void) throws(NetError) {
        // Given to the thread, which gives it back once it runs; taken back here if there is none.
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

    deinit {
        guard !isOver.withLock({ $0 }) else { return }
        _ = clinux_thread_detach(handle)
    }

    var isCurrent: Bool { clinux_thread_is_current(handle) != 0 }

    /// Waits for the end of the thread; at once when it was waited for before, or is the caller's own.
    package func join() {
        guard !isCurrent else { return }
        isOver.withLock { isOver in
            guard !isOver else { return }
            isOver = true
            _ = clinux_thread_join(handle)
        }
    }
}
