import Base
import Synchronization

/// A whole message, of however many frames (RFC 6455 §5.4).
package enum WebSocketMessage: Sendable, Equatable {
    case text(String)
    case binary([UInt8])

    /// In bytes on the wire, without framing.
    var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }
}

/// The reason a WebSocket was closed.
/// - Source: RFC 6455 §7.4.1.
package struct WebSocketClose: Sendable, Equatable {
    /// 1000 to 4999.
    package let code: UInt16
    /// At most 123 bytes.
    package let reason: String

    package init(code: UInt16, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Everything was said.
    package static let normal = WebSocketClose(code: 1000)
    /// The server stops.
    package static let goingAway = WebSocketClose(code: 1001, reason: "the server is going away")
    /// More messages wait than the settings allow.
    package static let policyViolation = WebSocketClose(code: 1008, reason: "too many messages at once")
    /// A message is longer than the settings allow.
    package static let messageTooBig = WebSocketClose(code: 1009, reason: "the message is too big")
    /// The code means that no close frame came.
    package static let lost = WebSocketClose(code: 1006)
}

/// The server's end of one WebSocket; any task may use it.
///
/// Messages out wait in a bounded queue: when it is full, `send` says so and the sender decides what to drop.
package final class WebSocketConnection: Sendable {
    /// What became of a message.
    package enum SendResult: Sendable {
        case queued
        /// Nothing was queued: the client reads too slowly.
        case full
        /// Nothing was queued: the connection is closing or gone.
        case closed
    }

    struct State {
        var outgoing: [WebSocketMessage] = []
        /// Index of the next message to send.
        var head = 0
        var outgoingBytes = 0
        /// Set once we want to close; what is queued goes out first.
        var closing: WebSocketClose?
        /// Set once the connection is gone.
        var closed: WebSocketClose?

        mutating func takeFirst() -> WebSocketMessage? {
            guard head < outgoing.count else { return nil }
            let message = outgoing[head]
            head += 1
            outgoingBytes -= message.size
            if head == outgoing.count {
                outgoing.removeAll(keepingCapacity: false)
                head = 0
            } else if head >= 64 {
                outgoing.removeFirst(head)
                head = 0
            }
            return message
        }
    }

    /// Messages from the client; ends when the connection does.
    package let incoming: AsyncStream<WebSocketMessage>
    /// The other end of the TCP connection, which may be a proxy's.
    package let remoteAddress: TransportAddress
    let id: UInt64

    private let received: AsyncStream<WebSocketMessage>.Continuation
    private let state = Mutex(State())
    private let maximumOutgoingBytes: Int
    /// Asks the service thread to look at this connection.
    private let wake: @Sendable (UInt64) -> Void

    init(
        id: UInt64, remoteAddress: TransportAddress, settings: HTTPServerSettings,
        wake: @escaping @Sendable (UInt64) -> Void
    ) {
        self.id = id
        self.remoteAddress = remoteAddress
        self.wake = wake
        maximumOutgoingBytes = settings.maximumOutgoingBytes
        (incoming, received) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(settings.maximumIncomingMessages))
    }

    /// Queues one message.
    /// - Parameter limit: bytes that may wait already; nil for what the server's settings say.
    @discardableResult
    package func send(_ message: WebSocketMessage, limit: Int? = nil) -> SendResult {
        let (result, isFirst) = state.withLock { state -> (SendResult, Bool) in
            guard state.closing == nil, state.closed == nil else { return (.closed, false) }
            guard state.outgoingBytes + message.size <= maximumOutgoingBytes,
                limit.map({ state.outgoingBytes <= $0 }) ?? true
            else { return (.full, false) }
            state.outgoing.append(message)
            state.outgoingBytes += message.size
            return (.queued, state.outgoing.count - state.head == 1)
        }
        if isFirst { wake(id) }
        return result
    }

    /// Queues a text message.
    @discardableResult
    package func send(_ text: String) -> SendResult { send(.text(text)) }

    /// Whether nothing waits to be sent.
    package var isDrained: Bool { state.withLock { $0.outgoingBytes == 0 } }

    /// Closes once everything queued has been sent.
    package func close(_ reason: WebSocketClose = .normal) {
        let isNew = state.withLock { state in
            guard state.closing == nil, state.closed == nil else { return false }
            state.closing = reason
            return true
        }
        if isNew { wake(id) }
    }

    /// Whether it is to be closed, as soon as what is queued has been sent.
    var isClosing: Bool { state.withLock { $0.closing != nil } }

    /// Why the connection ended; nil while it is open.
    package var closeReason: WebSocketClose? { state.withLock { $0.closed } }

    // MARK: The service thread's side

    /// The next thing to do for the service thread.
    enum Output {
        case nothing
        case send(WebSocketMessage, more: Bool)
        case close(WebSocketClose)
    }

    func nextOutput() -> Output {
        state.withLock { state in
            guard let message = state.takeFirst() else { return state.closing.map { .close($0) } ?? .nothing }
            return .send(message, more: !state.outgoing.isEmpty || state.closing != nil)
        }
    }

    /// The next message, while there are any.
    func nextMessage() -> WebSocketMessage? {
        state.withLock { $0.takeFirst() }
    }

    /// Whether there is anything to do for the service thread.
    var hasOutput: Bool { state.withLock { !$0.outgoing.isEmpty || $0.closing != nil } }

    /// - Returns: false when nobody reads what the client sends.
    func deliver(_ message: WebSocketMessage) -> Bool {
        switch received.yield(message) {
        case .dropped: false
        default: true
        }
    }

    /// The connection is gone; the first reason counts.
    func didClose(_ reason: WebSocketClose) {
        state.withLock { state in
            if state.closed == nil { state.closed = state.closing ?? reason }
            state.outgoing.removeAll()
            state.head = 0
            state.outgoingBytes = 0
        }
        received.finish()
    }
}
