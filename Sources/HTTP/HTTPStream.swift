import Synchronization

/// The body of an answer that is made while it is sent, such as events (`text/event-stream`).
///
/// Any task may send. What the client has not taken waits here, up to a limit: then `send` says so, and whoever makes
/// the body decides what to leave out. A client that takes nothing of it for the server's `sendTimeout` is let go of.
package final class HTTPStream: Sendable, Equatable {
    /// What became of a part.
    package enum SendResult: Sendable {
        case queued
        /// Nothing was queued: the client reads too slowly.
        case full
        /// Nothing was queued: the body has ended, or the client is gone.
        case closed
    }

    /// What the service thread does next.
    enum Output: Equatable {
        case nothing
        case part([UInt8])
        /// All has been sent, and nothing more comes.
        case end
    }

    private struct State {
        var queue: StreamQueue
        /// Asks the service thread to look at this body; nil before the head was sent and after the end.
        var wake: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let produce: @Sendable (HTTPStream) async -> Void

    /// - Parameters:
    ///   - limit: bytes that may wait for the client.
    ///   - produce: makes the body, which ends when it returns. It runs as a task of its own once the head is on its
    ///     way, is cancelled when the client goes away or the server stops, and is not run at all for a client that
    ///     went before or asked by `HEAD`.
    package init(limit: Int = 64 * 1024, produce: @escaping @Sendable (HTTPStream) async -> Void) {
        state = Mutex(State(queue: StreamQueue(limit: limit)))
        self.produce = produce
    }

    package static func == (left: HTTPStream, right: HTTPStream) -> Bool { left === right }

    /// Queues a part of the body, whole or not at all.
    @discardableResult
    package func send(_ part: some Collection<UInt8>) -> SendResult {
        let (result, wake) = state.withLock { state in
            let wasEmpty = state.queue.isEmpty
            let result = state.queue.append(part)
            return (result, wasEmpty && result == .queued ? state.wake : nil)
        }
        wake?()
        return result
    }

    /// Ends the body once everything queued has been sent.
    package func finish() {
        let wake = state.withLock { $0.queue.finish() ? $0.wake : nil }
        wake?()
    }

    // MARK: The service thread's side

    /// Runs whatever makes the body.
    func begin(wake: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        state.withLock { $0.wake = wake }
        return Task { [self] in
            await produce(self)
            finish()
        }
    }

    /// - Parameter count: bytes at most.
    func next(_ count: Int) -> Output { state.withLock { $0.queue.next(count) } }

    /// Nobody is left to read it.
    func close() {
        state.withLock { state in
            state.queue.close()
            state.wake = nil
        }
    }
}

/// Parts of a body that wait for their client.
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

    /// - Returns: whether that is news.
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

/// Puts the chunked transfer coding on the body of an answer.
/// - Source: RFC 9112 §7.1.
enum ChunkedCoding {
    /// - Parameter part: not empty, because an empty chunk is the end.
    static func chunk(_ part: [UInt8]) -> [UInt8] {
        Array((String(part.count, radix: 16) + "\r\n").utf8) + part + [0x0D, 0x0A]
    }

    static let end = Array("0\r\n\r\n".utf8)
}
