import Base
import CWebSockets
import Glibc

/// An accepted handshake that libwebsockets has not completed yet.
struct Upgrade {
    let request: HTTPRequest
    let conversation: @Sendable (WebSocketConnection) async -> Void
}

/// State of one WebSocket; belongs to the service thread.
final class SocketSession {
    let wsi: LibraryConnection
    let connection: WebSocketConnection
    /// Runs the handler's closure; cancelled when the client disconnects.
    var conversation: Task<Void, Never>?
    /// Fragments of a message that is not complete yet.
    var message: [UInt8] = []
    /// The client's close frame, once it has arrived; nothing may be sent after that (RFC 6455 §5.5.1).
    var peerClose: WebSocketClose?
    /// When the client last sent anything, pongs included, in milliseconds of the loop's clock.
    var heardAt: UInt64 = 0
    /// When the client was last pinged, in milliseconds of the loop's clock.
    var pingedAt: UInt64 = 0
    /// Messages that the client may still send now; nil before the first.
    private var allowance: Double?
    /// When the allowance was last increased, in milliseconds of the loop's clock.
    private var allowedAt: UInt64 = 0

    init(wsi: LibraryConnection, connection: WebSocketConnection) {
        self.wsi = wsi
        self.connection = connection
    }

    /// Charges the client for a message.
    ///
    /// A client that sends the next message as soon as it has read an answer never fills the queue of unread messages,
    /// but still makes the server work.
    /// - Returns: false if the client sends too many.
    func admitMessage(_ settings: HTTPServerSettings, at now: UInt64) -> Bool {
        let refill = Double(now - min(now, allowedAt)) / 1_000 * Double(settings.messagesPerSecond)
        let left =
            min(Double(settings.messageBurst), (allowance ?? Double(settings.messageBurst)) + refill) - 1
        allowedAt = now
        allowance = max(left, 0)
        return left >= 0
    }
}

/// WebSockets: handshake, messages and close.
extension ServiceLoop {
    // MARK: Opening

    /// Called for a request with an `Upgrade` field; decides whether it may become a WebSocket.
    func confirmUpgrade(_ wsi: LibraryConnection) -> CInt {
        // libwebsockets itself has refused every other protocol before this call. On a kept-alive connection it has
        // freed the headers by then (CVE-2025-11677): they must not be read, and only a nonzero result closes.
        guard let name = wsi.text(WSI_TOKEN_UPGRADE)?.lowercased(), name == "websocket" || name == "h2c",
            let connection = connection(of: wsi)
        else { return -1 }
        let response: HTTPResponse
        switch decide(wsi, connection) {
        case .accept(let upgrade):
            upgrades[wsi] = upgrade
            return 0
        case .refuse(let refusal): response = refusal
        }
        connection.isClosing = true
        let head = ResponseHead(response, closing: true, now: time(nil))
        _ = write(wsi, head.bytes, response.body.prefix(Self.chunkLength), LWS_WRITE_HTTP)
        return -1
    }

    /// Called again for a WebSocket before the handshake is answered; closes one that was not accepted.
    func confirmSocket(_ wsi: LibraryConnection) -> CInt {
        upgrades[wsi] == nil ? -1 : 0
    }

    /// Outcome of a request for an upgrade.
    private enum Decision {
        case accept(Upgrade)
        case refuse(HTTPResponse)
    }

    /// Validates a handshake, applies limits, and asks the handler.
    /// - Source: RFC 6455 §4.2.1 (what a handshake contains), §4.2.2 (how it is refused).
    private func decide(_ wsi: LibraryConnection, _ connection: Connection) -> Decision {
        let head: RequestHead
        do throws(RequestHead.Refusal) {
            head = try RequestHead(reading: wsi, maximumBytes: settings.maximumHeaderBytes)
        } catch {
            return .refuse(handler.refusal(error.status, error.detail))
        }
        let client = client(of: connection, head)
        if let seconds = count(client, on: connection) {
            var response = handler.refusal(429, "Too many requests. Wait a moment.")
            response.headers.set(rateLimit(wait: seconds).headers)
            return .refuse(response)
        }
        guard stopDeadline == nil else { return .refuse(handler.refusal(503, "The server is stopping.")) }
        if let response = handshakeRefusal(head) { return .refuse(response) }
        let request = request(head, on: connection, from: client)
        switch handler.upgrade(request) {
        case .refuse(let response): return .refuse(response)
        case .accept(let conversation): return .accept(Upgrade(request: request, conversation: conversation))
        }
    }

    /// The response to an invalid handshake; nil for a valid one.
    /// - Source: RFC 6455 §4.2.1, §4.4 (versions); RFC 9110 §15.5.22 (426).
    private func handshakeRefusal(_ head: RequestHead) -> HTTPResponse? {
        guard head.headers["upgrade"]?.lowercased() == "websocket" else {
            var response = handler.refusal(426, "The only supported upgrade is websocket.")
            response.headers.set("Upgrade", "websocket")
            return response
        }
        guard head.method == .get, head.framing == .none,
            head.headers["connection"]?.lowercased().contains("upgrade") == true,
            head.headers["sec-websocket-key"]?.utf8.count == 24
        else { return handler.refusal(400, "This isn't a WebSocket handshake.") }
        guard head.headers["sec-websocket-version"] == "13" else {
            var response = handler.refusal(426, "The only supported WebSocket version is 13.")
            response.headers.set("Sec-WebSocket-Version", "13")
            return response
        }
        guard head.headers["sec-websocket-protocol"] == nil else {
            return handler.refusal(400, "WebSocket subprotocols aren't supported.")
        }
        return nil
    }

    /// The handshake is complete: starts the conversation.
    func beginSocket(_ wsi: LibraryConnection) -> CInt {
        guard let upgrade = upgrades.removeValue(forKey: wsi), let connection = connection(of: wsi) else {
            return -1
        }
        // The heartbeats replace the deadline.
        connection.deadline = nil
        let link = link
        let socket = WebSocketConnection(
            id: nextID(), remoteAddress: connection.address, settings: settings,
            wake: { link.serveSocket($0) })
        let session = SocketSession(wsi: wsi, connection: socket)
        session.heardAt = now
        vigil.add(socket.id, at: now)
        sockets[socket.id] = session
        socketOf[wsi] = session
        counters.add(1, counters.webSockets)
        log.debug(
            "websocket-opened", ["target": upgrade.request.loggedTarget, "address": connection.address])
        let conversation = upgrade.conversation
        session.conversation = Task {
            await conversation(socket)
            socket.close()
        }
        return 0
    }

    // MARK: Talking

    /// Collects the fragments of a message and delivers it when complete.
    func receiveMessage(_ wsi: LibraryConnection, _ bytes: UnsafeRawBufferPointer) -> CInt {
        guard let session = socketOf[wsi] else { return -1 }
        // A close waits for room in the socket. Meanwhile a client that reads nothing must neither be heard nor hold
        // the connection open.
        guard !session.connection.isClosing else { return 0 }
        session.heardAt = now
        guard session.message.count + bytes.count <= settings.maximumMessageBytes else {
            return close(session, .messageTooBig)
        }
        unsafe session.message.append(contentsOf: bytes)
        guard unsafe lws_is_final_fragment(wsi.pointer) != 0,
            unsafe lws_remaining_packet_payload(wsi.pointer) == 0
        else {
            // Each piece costs this thread as much as a message, and there may be any number of empty ones.
            guard bytes.count >= Self.smallPiece || session.admitMessage(settings, at: now) else {
                return close(session, .policyViolation)
            }
            return 0
        }
        guard session.admitMessage(settings, at: now) else { return close(session, .policyViolation) }
        let bytes = session.message
        session.message = []
        let message =
            unsafe lws_frame_is_binary(wsi.pointer) != 0
            ? WebSocketMessage.binary(bytes) : .text(String(decoding: bytes, as: UTF8.self))
        return session.connection.deliver(message) ? 0 : close(session, .policyViolation)
    }

    /// Bytes below which a piece of a message counts as one; a few pieces are that small only because of where packets
    /// end.
    private static let smallPiece = 256

    /// Writes queued messages without waiting for a writable event.
    ///
    /// The socket nearly always has room. To wait for the event would cost three system calls per client instead of
    /// one.
    func serve(_ session: SocketSession) {
        for _ in 0..<Self.messagesAtOnce
        where unsafe lws_partial_buffered(session.wsi.pointer) == 0 && session.peerClose == nil {
            guard let message = session.connection.nextMessage() else { break }
            guard write(message, to: session.wsi) else { return unsafe cws_kill(session.wsi.pointer) }
        }
        if session.connection.hasOutput { unsafe lws_callback_on_writable(session.wsi.pointer) }
    }

    /// Messages per socket and turn, so that a long queue does not delay other sockets.
    private static let messagesAtOnce = 16

    private func write(_ message: WebSocketMessage, to wsi: LibraryConnection) -> Bool {
        switch message {
        case .text(var text):
            text.withUTF8 { unsafe writeMessage(wsi, UnsafeRawBufferPointer($0), LWS_WRITE_TEXT) }
        case .binary(let bytes):
            unsafe bytes.withUnsafeBytes { unsafe writeMessage(wsi, $0, LWS_WRITE_BINARY) }
        }
    }

    /// Writes one message, or closes, when the socket has become writable.
    func sendMessage(_ wsi: LibraryConnection) -> CInt {
        guard let session = socketOf[wsi] else { return -1 }
        switch session.connection.nextOutput() {
        case .nothing: return 0
        case .close(let reason):
            let text = reason.sentReason
            unsafe cws_close_socket(wsi.pointer, reason.code, text, text.count)
            return 0
        case .send(let message, let more):
            guard write(message, to: wsi) else { return -1 }
            if more { unsafe lws_callback_on_writable(wsi.pointer) }
            return 0
        }
    }

    /// Writes one message as a single frame; one larger than `scratch` from a temporary buffer.
    private func writeMessage(
        _ wsi: LibraryConnection, _ bytes: UnsafeRawBufferPointer, _ kind: lws_write_protocol
    ) -> Bool {
        let size = prefix + bytes.count
        let isLarge = unsafe size > scratch.count
        let buffer = unsafe isLarge ? .allocate(byteCount: size, alignment: 16) : scratch
        defer { if isLarge { unsafe buffer.deallocate() } }
        unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[prefix...]).copyBytes(from: bytes)
        let start = unsafe buffer.baseAddress?.advanced(by: prefix).assumingMemoryBound(to: UInt8.self)
        return unsafe lws_write(wsi.pointer, start, bytes.count, kind) >= 0
    }

    // MARK: Closing

    /// Makes libwebsockets send a close frame; only valid within the callback for received data.
    /// - Returns: the callback's result.
    private func close(_ session: SocketSession, _ reason: WebSocketClose) -> CInt {
        session.connection.close(reason)
        var text = reason.sentReason
        unsafe lws_close_reason(
            session.wsi.pointer, lws_close_status(rawValue: UInt32(reason.code)), &text, text.count)
        return -1
    }

    /// Stores the client's close frame; one without a code counts as 1005 (RFC 6455 §7.1.5).
    func peerCloses(_ wsi: LibraryConnection, _ payload: UnsafeRawBufferPointer) {
        guard let session = socketOf[wsi] else { return }
        guard payload.count >= 2 else {
            session.peerClose = WebSocketClose(code: 1005)
            return
        }
        let code = unsafe UInt16(bigEndian: payload.loadUnaligned(as: UInt16.self))
        session.peerClose = unsafe WebSocketClose(
            code: code, reason: String(decoding: payload.dropFirst(2), as: UTF8.self))
    }

    /// The connection has ended: cancels the conversation and reports the reason.
    func endSocket(_ wsi: LibraryConnection) {
        guard let session = socketOf.removeValue(forKey: wsi) else { return }
        sockets[session.connection.id] = nil
        counters.add(-1, counters.webSockets)
        session.connection.didClose(session.peerClose ?? .lost)
        session.conversation?.cancel()
        log.debug(
            "websocket-closed",
            [
                "code": session.connection.closeReason?.code ?? 0,
                "address": session.connection.remoteAddress,
            ])
        endStopIfDone()
    }
}
