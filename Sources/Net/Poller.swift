import Base
import CLinux
import Glibc

/// An epoll instance that watches one waker, one socket and the TCP connections; closed when its last owner is gone.
final class EventQueue: Sendable {
    fileprivate let descriptor: Int32

    init(waker: Waker, socket: DatagramSocket, streams: TCPEvents) throws(NetError) {
        descriptor = clinux_poll_open()
        guard descriptor >= 0 else { throw .system(operation: "open an epoll instance", code: -descriptor) }
        for (token, watched) in [
            (Poller.Token.waker, waker.descriptor), (.socket, socket.descriptor),
            (.streams, streams.descriptor),
        ] {
            let result = clinux_poll_set(descriptor, watched, token.rawValue, 0, 1)
            guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
        }
    }

    deinit {
        clinux_close(descriptor)
    }
}

/// The waiting side of an event queue, owned by the worker's thread.
struct Poller: ~Copyable {
    /// Which of the watched descriptors an event is about.
    enum Token: UInt32 {
        case waker = 1
        case socket = 2
        case streams = 3
    }

    /// What the last wait found.
    struct Ready {
        /// Another thread woke the loop, as after posting a command.
        var waker = false
        var readable = false
        var writable = false
        var streams = false
    }

    /// Shared with the `WorkerThread`, which opens it before the thread starts so that a failure can be thrown.
    private let queue: EventQueue
    /// One call never returns more than these; the rest come with the next call.
    private var events = [clinux_ready](repeating: clinux_ready(), count: 16)
    private var watchesWritable = false

    init(_ queue: EventQueue) {
        self.queue = queue
    }

    /// Starts or stops waiting for room in the socket's send buffer.
    ///
    /// It is watched only while a send is blocked: a socket with room is always writable, so the loop would never
    /// sleep.
    mutating func watchWritable(_ wanted: Bool, of socket: DatagramSocket) {
        guard wanted != watchesWritable else { return }
        watchesWritable = wanted
        _ = clinux_poll_set(queue.descriptor, socket.descriptor, Token.socket.rawValue, wanted ? 1 : 0, 0)
    }

    /// Waits for the next event.
    /// - Parameter nanoseconds: the longest wait; nil for no limit. Negative values count as 0.
    mutating func wait(nanoseconds: Int64?) -> Ready {
        var ready = Ready()
        let count = unsafe Int(
            clinux_poll_wait(queue.descriptor, &events, nanoseconds.map { max($0, 0) } ?? -1))
        for index in 0..<max(count, 0) {
            let event = events[index]
            switch Token(rawValue: event.token) {
            case .waker: ready.waker = true
            case .socket:
                ready.readable = event.is_readable != 0
                ready.writable = event.is_writable != 0
            case .streams: ready.streams = true
            case nil: continue
            }
        }
        return ready
    }
}
