import Synchronization

/// A response body that is produced while it is sent, such as `text/event-stream`.
///
/// Any task may send. Unsent bytes are queued up to a limit; when it is reached, `send` returns `full` and the producer
/// decides what to leave out. A client that reads nothing for the server's `sendTimeout` is disconnected.
package final class HTTPStream: Sendable, Equatable {
    /// Outcome of `send`.
    package enum SendResult: Sendable {
        case queued
        /// Nothing was queued: the client reads too slowly.
        case full
        /// Nothing was queued: the body has been finished, or the client is gone.
        case closed
    }

    /// What the service thread has to do next.
    enum Output: Equatable {
        case nothing
        case part([UInt8])
        /// Everything has been sent and the body is finished.
        case end
    }

    private struct State {
        var queue: StreamQueue
        /// Notifies the service thread of new bytes; nil before the head was sent and after the end.
        var wake: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let produce: @Sendable (HTTPStream) async -> Void

    /// - Parameters:
    ///   - limit: bytes that may be queued for the client.
    ///   - produce: sends the body, which ends when it returns. It runs in its own task from when the head is sent, is
    ///     cancelled when the client disconnects or the server stops, and never runs for `HEAD` or for a client that
    ///     disconnected before.
    package init(limit: Int = 64 * 1024, produce: @escaping @Sendable (HTTPStream) async -> Void) {
        state = Mutex(State(queue: StreamQueue(limit: limit)))
        self.produce = produce
    }

    package static func == (left: HTTPStream, right: HTTPStream) -> Bool { left === right }

    /// Queues a part of the body, entirely or not at all.
    @discardableResult
    package func send(_ part: some Collection<UInt8>) -> SendResult {
        // One wake-up is enough until the queue is empty: the service thread goes on whenever the socket has room.
        let (result, wake) = state.withLock { state in
            let wasEmpty = state.queue.isEmpty
            let result = state.queue.append(part)
            return (result, wasEmpty && result == .queued ? state.wake : nil)
        }
        wake?()
        return result
    }

    /// Ends the body after everything queued; later calls have no effect.
    package func finish() {
        let wake = state.withLock { $0.queue.finish() ? $0.wake : nil }
        wake?()
    }

    // MARK: The service thread's side

    /// Starts the producer in a task of its own.
    /// - Parameter wake: called on any thread when the queue is no longer empty, and at the end.
    func begin(wake: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        state.withLock { $0.wake = wake }
        return Task { [self] in
            await produce(self)
            finish()
        }
    }

    /// Removes up to `count` bytes, or reports that there are none or that the body has ended.
    func next(_ count: Int) -> Output { state.withLock { $0.queue.next(count) } }

    /// Discards the queue because the client is gone.
    func close() {
        state.withLock { state in
            state.queue.close()
            state.wake = nil
        }
    }
}

/// The queue of unsent bytes of a body; a value, so that it can be tested without threads.
struct StreamQueue {
    private let limit: Int
    private var waiting: [UInt8] = []
    private var isFinished = false
    private var isClosed = false

    /// - Parameter limit: bytes that may wait.
    init(limit: Int) {
        self.limit = limit
    }

    var isEmpty: Bool { waiting.isEmpty }

    mutating func append(_ part: some Collection<UInt8>) -> HTTPStream.SendResult {
        guard !isFinished else { return .closed }
        guard part.count <= limit - waiting.count else { return .full }
        waiting.append(contentsOf: part)
        return .queued
    }

    /// - Returns: false if it was finished before.
    mutating func finish() -> Bool {
        defer { isFinished = true }
        return !isFinished
    }

    mutating func close() {
        isFinished = true
        isClosed = true
        waiting = []
    }

    /// - Parameter count: bytes at most.
    mutating func next(_ count: Int) -> HTTPStream.Output {
        guard !waiting.isEmpty else { return isFinished && !isClosed ? .end : .nothing }
        guard waiting.count > count else {
            defer { waiting.removeAll() }
            return .part(waiting)
        }
        defer { waiting.removeFirst(count) }
        return .part(Array(waiting.prefix(count)))
    }
}

/// Encodes a response body with the chunked transfer coding.
/// - Source: RFC 9112 §7.1.
enum ChunkedCoding {
    /// - Parameter part: must not be empty, because an empty chunk ends the body.
    static func chunk(_ part: [UInt8]) -> [UInt8] {
        Array((String(part.count, radix: 16) + "\r\n").utf8) + part + [0x0D, 0x0A]
    }

    static let end = Array("0\r\n\r\n".utf8)
}
