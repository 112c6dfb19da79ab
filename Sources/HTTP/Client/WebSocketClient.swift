import Base
import CWebSockets
import Foundation
import Synchronization

/// A client for WebSockets to other servers, on libwebsockets with one thread for all connections.
///
/// FoundationNetworking supports WebSockets only if libcurl was built with them, which is not so on Debian 12.
package final class WebSocketClient: Sendable {
    /// An event of a connection; the last one is `closed` or `failed`.
    package enum Event: Equatable, Sendable {
        case opened
        /// A complete text or binary message.
        case message([UInt8])
        /// Code and reason of the peer's close frame: 1005 if it had no code, 1006 if there was no such frame.
        case closed(code: UInt16, reason: String)
        /// The handshake failed; the text is libwebsockets' message, for logs.
        case failed(String)
    }

    /// Where to connect to.
    package struct Address: Equatable, Sendable {
        /// A host name or IP address; IPv6 without brackets.
        package var host: String
        /// TCP port, also where it is the scheme's default.
        package var port: UInt16
        /// Path and query, as in the request line.
        package var path: String
        /// Whether to use TLS (`wss`); the certificate is verified against the system's trust store.
        package var isSecure: Bool

        package init(host: String, port: UInt16, path: String, isSecure: Bool) {
            self.host = host
            self.port = port
            self.path = path
            self.isSecure = isSecure
        }
    }

    /// Limit of one incoming message, in bytes; a longer one closes the connection with 1009.
    package static let maximumMessage = 4 << 20
    /// Limit of events that wait to be read; beyond it the connection closes with 1008 rather than losing messages.
    static let maximumWaiting = 256
    /// Limit of bytes that wait to be sent; `send` refuses more.
    static let maximumUnsent = 1 << 20

    private let mailbox: ClientMailbox

    /// The only instance: libwebsockets contexts cannot be created and destroyed repeatedly without harm.
    package static let shared = WebSocketClient()

    private init() {
        let mailbox = ClientMailbox()
        self.mailbox = mailbox
        let thread = Thread { ClientLoop(mailbox).run() }
        thread.name = "websockets"
        thread.start()
    }

    /// Starts to connect; the outcome is the link's first event.
    package func connect(_ address: Address) -> WebSocketLink {
        // Room for the one event that is too many, and for the last one, which tells why there are no more.
        let (events, continuation) = AsyncStream<Event>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maximumWaiting + 2))
        let link = WebSocketLink(
            number: mailbox.nextNumber(), events: events, continuation: continuation, mailbox: mailbox)
        mailbox.post(.connect(link, address))
        return link
    }
}

/// One connection of a `WebSocketClient`.
///
/// It ends only by `close`, by the peer or by a failure: releasing the last reference does not close it.
package final class WebSocketLink: Sendable {
    let number: UInt64
    private let events: AsyncStream<WebSocketClient.Event>
    let continuation: AsyncStream<WebSocketClient.Event>.Continuation
    private let mailbox: ClientMailbox
    private let outgoing = Mutex<(messages: [[UInt8]], bytes: Int)>(([], 0))

    init(
        number: UInt64, events: AsyncStream<WebSocketClient.Event>,
        continuation: AsyncStream<WebSocketClient.Event>.Continuation, mailbox: ClientMailbox
    ) {
        self.number = number
        self.events = events
        self.continuation = continuation
        self.mailbox = mailbox
    }

    /// The next event, for one reader at a time; nil after the last one, and for a task that is cancelled.
    package func next() async -> WebSocketClient.Event? {
        for await event in events { return event }
        return nil
    }

    /// Queues a text message.
    /// - Returns: false if the queue has no room, and nothing was queued.
    @discardableResult
    package func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        let hasRoom = outgoing.withLock { outgoing in
            guard outgoing.bytes + bytes.count <= WebSocketClient.maximumUnsent else { return false }
            outgoing.messages.append(bytes)
            outgoing.bytes += bytes.count
            return true
        }
        if hasRoom { mailbox.post(.write(number)) }
        return hasRoom
    }

    /// Closes after the queued messages; `next` then returns `closed`.
    /// - Parameter code: of the close frame (RFC 6455 §7.4).
    package func close(code: UInt16 = 1_000) {
        mailbox.post(.close(number, code: code))
    }

    /// Removes the next message to send, and tells whether it is the last one queued.
    func takeMessage() -> (message: [UInt8], isLast: Bool)? {
        outgoing.withLock { outgoing in
            guard !outgoing.messages.isEmpty else { return nil }
            let message = outgoing.messages.removeFirst()
            outgoing.bytes -= message.count
            return (message, outgoing.messages.isEmpty)
        }
    }
}
