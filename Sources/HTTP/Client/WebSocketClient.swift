import Base
import CWebSockets
import Foundation
import Synchronization

/// WebSockets to other servers, on libwebsockets and one thread for all of them.
///
/// FoundationNetworking has them only where libcurl was built with them, which Debian 12 does not do.
package final class WebSocketClient: Sendable {
    /// What happens on a connection, in order; the last is `closed` or `failed`.
    package enum Event: Equatable, Sendable {
        case opened
        /// Text or bytes, whole.
        case message([UInt8])
        /// With the code and the reason of the close frame; 1006 where none came.
        case closed(code: UInt16, reason: String)
        /// It never opened.
        case failed(String)
    }

    /// Where to connect to.
    package struct Address: Equatable, Sendable {
        /// A name or an address, without brackets.
        package var host: String
        package var port: UInt16
        /// Path and query.
        package var path: String
        /// Whether by TLS, whose certificate is verified by those that the system trusts.
        package var isSecure: Bool

        package init(host: String, port: UInt16, path: String, isSecure: Bool) {
            self.host = host
            self.port = port
            self.path = path
            self.isSecure = isSecure
        }
    }

    /// Of one message that comes, in bytes; a longer one closes its connection.
    package static let maximumMessage = 4 << 20
    /// Messages that may wait to be read; more close their connection, as nobody could tell which are missing.
    static let maximumWaiting = 256
    /// Bytes that may wait to be sent.
    static let maximumUnsent = 1 << 20

    private let mailbox: ClientMailbox

    /// The process's one: contexts of libwebsockets are not made to come and go.
    package static let shared = WebSocketClient()

    private init() {
        let mailbox = ClientMailbox()
        self.mailbox = mailbox
        let thread = Thread { ClientLoop(mailbox).run() }
        thread.name = "websockets"
        thread.start()
    }

    /// Begins to connect.
    package func connect(_ address: Address) -> WebSocketLink {
        let (events, continuation) = AsyncStream<Event>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maximumWaiting))
        let link = WebSocketLink(
            number: mailbox.nextNumber(), events: events, continuation: continuation, mailbox: mailbox)
        mailbox.post(.connect(link, address))
        return link
    }
}

/// One connection of a `WebSocketClient`; nothing ends it but `close`, or the other side.
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

    /// What happens next, for one reader at a time; nil once it is over.
    ///
    /// Who is cancelled while waiting is told nil, too.
    package func next() async -> WebSocketClient.Event? {
        for await event in events { return event }
        return nil
    }

    /// Sends a message of text.
    /// - Returns: false if too much waits already.
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

    /// Says goodbye; `next` says so once that is done.
    package func close(code: UInt16 = 1_000) {
        mailbox.post(.close(number, code: code))
    }

    /// The next message to send, and whether another one waits.
    func takeMessage() -> (message: [UInt8], isLast: Bool)? {
        outgoing.withLock { outgoing in
            guard !outgoing.messages.isEmpty else { return nil }
            let message = outgoing.messages.removeFirst()
            outgoing.bytes -= message.count
            return (message, outgoing.messages.isEmpty)
        }
    }
}
