import Base
import Synchronization

/// A complete message, reassembled from its frames (RFC 6455 §5.4).
package enum WebSocketMessage: Sendable, Equatable {
    case text(String)
    case binary([UInt8])

    /// Payload size in bytes, without framing.
    var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }
}

/// The status code and reason of a close frame.
/// - Source: RFC 6455 §5.5.1 (length of the reason), §7.4.1 (codes).
package struct WebSocketClose: Sendable, Equatable {
    /// 1000 to 4999; codes from 4000 on are this application's own (RFC 6455 §7.4.2).
    package let code: UInt16
    /// Longer text than `maximumReason` is cut between characters when it is sent.
    package let reason: String
    /// Bytes of UTF-8, because a control frame has at most 125, of which two are the code.
    private static let maximumReason = 123

    package init(code: UInt16, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// The reason as it is sent.
    ///
    /// A character cut in two would make the peer fail the connection with 1007 instead (RFC 6455 §8.1).
    var sentReason: [UInt8] {
        var bytes: [UInt8] = []
        for scalar in reason.unicodeScalars {
            let encoded = String(scalar).utf8
            guard bytes.count + encoded.count <= Self.maximumReason else { break }
            bytes += encoded
        }
        return bytes
    }

    /// The conversation is complete.
    package static let normal = WebSocketClose(code: 1000)
    /// The server is stopping.
    package static let goingAway = WebSocketClose(code: 1001, reason: "the server is going away")
    /// More incoming messages are waiting than `maximumIncomingMessages`.
    package static let policyViolation = WebSocketClose(code: 1008, reason: "too many messages at once")
    /// A message is longer than `maximumMessageBytes`.
    package static let messageTooBig = WebSocketClose(code: 1009, reason: "the message is too big")
    /// The connection ended without a close frame; this code never appears on the wire.
    package static let lost = WebSocketClose(code: 1006)
}

/// The server's end of one WebSocket; any task may use it.
///
/// Outgoing messages wait in a bounded queue: when it is full, `send` returns `full` and the sender decides what to
/// drop.
package final class WebSocketConnection: Sendable {
    /// Outcome of `send`.
    package enum SendResult: Sendable {
        case queued
        /// Nothing was queued: the client reads too slowly.
        case full
        /// Nothing was queued: the connection is closing or gone.
        case closed
    }

    struct State {
        /// Messages to send; those before `head` have been sent.
        var outgoing: [WebSocketMessage] = []
        /// Index of the next message to send.
        var head = 0
        /// Payload bytes of the unsent messages.
        var outgoingBytes = 0
        /// Set once the server wants to close; queued messages are sent first.
        var closing: WebSocketClose?
        /// Set once the connection has ended.
        var closed: WebSocketClose?

        /// Removes the next message; the array is compacted every 64 messages, so that removal takes constant time.
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

    /// Messages from the client, for one reader; ends with the connection.
    package let incoming: AsyncStream<WebSocketMessage>
    /// Peer of the TCP connection, which may be a proxy.
    package let remoteAddress: TransportAddress
    /// Unique within the server; never reused.
    let id: UInt64

    private let received: AsyncStream<WebSocketMessage>.Continuation
    private let state = Mutex(State())
    private let maximumOutgoingBytes: Int
    /// Notifies the service thread that this connection has output.
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

    /// Queues a message, entirely or not at all.
    /// - Parameter limit: refuses if more bytes than this are queued already; nil to apply only `maximumOutgoingBytes`.
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

    /// Whether all queued messages have been handed to libwebsockets.
    package var isDrained: Bool { state.withLock { $0.outgoingBytes == 0 } }

    /// Closes after everything queued has been sent; only the first call counts.
    package func close(_ reason: WebSocketClose = .normal) {
        let isNew = state.withLock { state in
            guard state.closing == nil, state.closed == nil else { return false }
            state.closing = reason
            return true
        }
        if isNew { wake(id) }
    }

    /// Whether the server has decided to close.
    var isClosing: Bool { state.withLock { $0.closing != nil } }

    /// How the connection ended; nil while it is open.
    package var closeReason: WebSocketClose? { state.withLock { $0.closed } }

    // MARK: The service thread's side

    /// What the service thread has to do next.
    enum Output {
        case nothing
        /// Send this message; `more` if there is output after it.
        case send(WebSocketMessage, more: Bool)
        case close(WebSocketClose)
    }

    /// Removes the next message, or reports that the connection is to be closed.
    func nextOutput() -> Output {
        state.withLock { state in
            guard let message = state.takeFirst() else { return state.closing.map { .close($0) } ?? .nothing }
            return .send(message, more: !state.outgoing.isEmpty || state.closing != nil)
        }
    }

    /// Removes the next message; nil if none is queued.
    func nextMessage() -> WebSocketMessage? {
        state.withLock { $0.takeFirst() }
    }

    /// Whether messages or a close are waiting.
    var hasOutput: Bool { state.withLock { !$0.outgoing.isEmpty || $0.closing != nil } }

    /// Hands a message to the conversation.
    /// - Returns: false if the conversation is `maximumIncomingMessages` behind, and the message was dropped.
    func deliver(_ message: WebSocketMessage) -> Bool {
        switch received.yield(message) {
        case .dropped: false
        default: true
        }
    }

    /// Notes that the connection has ended; a close that the server had requested takes precedence over `reason`.
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
