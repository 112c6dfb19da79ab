import CWebSockets
import Synchronization

/// Passes commands from any thread to the one that serves outgoing WebSockets.
final class ClientMailbox: Sendable {
    enum Command: Sendable {
        case connect(WebSocketLink, WebSocketClient.Address)
        /// The link of that number has queued a message.
        case write(UInt64)
        /// Close with this code (RFC 6455 §7.4), after queued messages.
        case close(UInt64, code: UInt16)
    }

    private struct State {
        var commands: [Command] = []
        var lastNumber: UInt64 = 0
        /// Address of the libwebsockets context, which lives as long as the process; nil before it exists.
        var context: UInt?
        /// Set if no context could be created: every connection is refused.
        var isClosed = false
    }

    private let state = Mutex(State())

    /// A number for a new link; never 0, which in libwebsockets' user data means none.
    func nextNumber() -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// Queues a command and wakes the thread if the queue was empty.
    func post(_ command: Command) {
        let isClosed = state.withLock { state in
            guard !state.isClosed else { return true }
            state.commands.append(command)
            guard state.commands.count == 1, let context = state.context else { return false }
            // The only function of libwebsockets that may be called from any thread.
            unsafe lws_cancel_service(OpaquePointer(bitPattern: context))
            return false
        }
        if isClosed { Self.refuse(command) }
    }

    /// Fails all queued and future connections.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
        for command in left { Self.refuse(command) }
    }

    /// Reports a refused connection to its reader; other commands concern links that have failed already.
    private static func refuse(_ command: Command) {
        guard case .connect(let link, _) = command else { return }
        link.continuation.yield(.failed("libwebsockets cannot start"))
        link.continuation.finish()
    }

    /// Publishes the context, so that `post` can wake the thread.
    func open(_ context: OpaquePointer) {
        let address = UInt(bitPattern: context)
        state.withLock { $0.context = address }
    }

    /// Removes and returns all queued commands, in order.
    func take() -> [Command] {
        state.withLock { state in
            defer { state.commands.removeAll(keepingCapacity: true) }
            return state.commands
        }
    }
}

/// The thread of outgoing WebSockets: owns libwebsockets' client context and the state of each connection.
@safe final class ClientLoop {
    private struct Connection {
        let link: WebSocketLink
        /// Set while the WebSocket is open; nil during the handshake.
        var wsi: LibraryConnection?
        /// Fragments of a message that is not complete yet (RFC 6455 §5.4).
        var partial: [UInt8] = []
        /// Whether the reader is too far behind; what still arrives until the close is complete is ignored.
        var isRefusing = false
        /// Code and reason of the peer's close frame, once it has arrived.
        var closing: (code: UInt16, reason: String)?
        /// Code to close with, once queued messages have been written; nil unless `close` was called.
        var closesWith: UInt16?
    }

    private let mailbox: ClientMailbox
    private var connections: [UInt64: Connection] = [:]
    // The library keeps a pointer for the life of the process, so this is never freed.
    private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    private let prefix = Int(cws_prefix())

    init(_ mailbox: ClientMailbox) {
        self.mailbox = mailbox
    }

    /// Serves until the process ends; returns only if no context can be created.
    func run() {
        let user = unsafe Unmanaged.passUnretained(self).toOpaque()
        let (context, _) = unsafe LibraryComplaints.collect {
            unsafe cws_client_create(clientCallback, protocols, user)
        }
        guard let context = unsafe context else {
            // Every attempt to connect fails with a message from now on.
            return mailbox.close()
        }
        unsafe mailbox.open(context)
        while true {
            unsafe perform(mailbox.take(), context)
            // Waits for a socket event or `lws_cancel_service`; the timeout parameter is obsolete and ignored.
            _ = unsafe lws_service(context, 0)
        }
    }

    // MARK: Commands

    private func perform(_ commands: [ClientMailbox.Command], _ context: OpaquePointer) {
        for command in commands {
            switch command {
            case .connect(let link, let address): unsafe connect(link, address, context)
            case .write(let number): wantToWrite(number)
            case .close(let number, let code):
                guard connections[number]?.closesWith == nil else { continue }
                connections[number]?.closesWith = code
                wantToWrite(number)
            }
        }
    }

    /// Starts a handshake; its outcome arrives as a callback.
    private func connect(
        _ link: WebSocketLink, _ address: WebSocketClient.Address, _ context: OpaquePointer
    ) {
        connections[link.number] = Connection(link: link)
        // `Host` has an IPv6 address in brackets and omits the scheme's default port (RFC 9110 §7.2, RFC 3986 §3.2.2).
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        let isUsual = address.port == (address.isSecure ? 443 : 80)
        let begun = unsafe cws_client_connect(
            context, link.number, address.host, isUsual ? host : "\(host):\(address.port)",
            Int32(address.port), address.path, address.isSecure ? 1 : 0)
        if begun == 0 { end(link.number, .failed("no connection")) }
    }

    /// Requests a callback in which this connection may write; without effect before the handshake is complete.
    private func wantToWrite(_ number: UInt64) {
        guard let wsi = connections[number]?.wsi else { return }
        unsafe lws_callback_on_writable(wsi.pointer)
    }

    /// Reports the last event of a connection and forgets it; later calls for the same number have no effect.
    private func end(_ number: UInt64, _ event: WebSocketClient.Event) {
        guard let connection = connections.removeValue(forKey: number) else { return }
        end(connection.link, event)
    }

    private func end(_ link: WebSocketLink, _ event: WebSocketClient.Event) {
        link.continuation.yield(event)
        link.continuation.finish()
    }

    // MARK: What the library says

    /// Handles one event of libwebsockets.
    /// - Returns: 0 to go on, nonzero to close the connection.
    fileprivate func handle(
        _ reason: lws_callback_reasons, _ wsi: OpaquePointer, _ input: UnsafeRawBufferPointer
    ) -> CInt {
        let number = unsafe cws_client_number(wsi)
        guard number > 0 else { return 0 }
        switch reason {
        case LWS_CALLBACK_CLIENT_ESTABLISHED:
            guard connections[number] != nil else { return -1 }
            connections[number]?.wsi = unsafe LibraryConnection(pointer: wsi)
            connections[number]?.link.continuation.yield(.opened)
            wantToWrite(number)
        case LWS_CALLBACK_CLIENT_RECEIVE: return unsafe receive(number, wsi, input)
        case LWS_CALLBACK_CLIENT_WRITEABLE: return unsafe write(number, wsi)
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
            // A close frame may be empty, for which 1005 stands (RFC 6455 §7.1.5); otherwise it begins with the code in
            // network order (§5.5.1).
            guard input.count >= 2 else {
                connections[number]?.closing = (1_005, "")
                break
            }
            let code = unsafe UInt16(input[0]) << 8 | UInt16(input[1])
            connections[number]?.closing = unsafe (code, String(decoding: input.dropFirst(2), as: UTF8.self))
        case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
            let text = unsafe String(decoding: input, as: UTF8.self)
            end(number, .failed(text.isEmpty ? "no connection" : text))
        case LWS_CALLBACK_CLIENT_CLOSED, LWS_CALLBACK_WSI_DESTROY:
            // 1006: the connection ended without a close frame (RFC 6455 §7.4.1).
            let closing = connections[number]?.closing
            end(number, .closed(code: closing?.code ?? 1_006, reason: closing?.reason ?? ""))
        default: break
        }
        return 0
    }

    /// Collects the fragments of a message and delivers it when complete.
    /// - Returns: nonzero to close, if the message is too long or the reader is too far behind.
    private func receive(_ number: UInt64, _ wsi: OpaquePointer, _ input: UnsafeRawBufferPointer) -> CInt {
        // Removed while it is changed, so that `partial` is appended to in place and not copied.
        guard var connection = connections.removeValue(forKey: number) else { return -1 }
        guard !connection.isRefusing else {
            connections[number] = connection
            return 0
        }
        unsafe connection.partial.append(contentsOf: input)
        defer { connections[number] = connection }
        guard connection.partial.count <= WebSocketClient.maximumMessage else {
            // Message too big (RFC 6455 §7.4.1).
            unsafe cws_client_close_reason(wsi, 1_009)
            return -1
        }
        guard unsafe cws_client_is_end(wsi) != 0 else { return 0 }
        let result = connection.link.continuation.yield(.message(connection.partial))
        connection.partial = []
        if case .terminated = result { return 0 }
        // The last place is for the end of the connection.
        if case .enqueued(let remaining) = result, remaining > 1 { return 0 }
        connection.isRefusing = true
        // Policy violation: the reader would miss messages without noticing.
        unsafe cws_client_close_reason(wsi, 1_008)
        return -1
    }

    /// Writes one queued message, or closes if none is left and `close` was called.
    private func write(_ number: UInt64, _ wsi: OpaquePointer) -> CInt {
        guard let connection = connections[number] else { return -1 }
        guard let (message, isLast) = connection.link.takeMessage() else {
            guard let code = connection.closesWith else { return 0 }
            unsafe cws_client_close_reason(wsi, code)
            return -1
        }
        var buffer = [UInt8](repeating: 0, count: prefix) + message
        let written = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
            unsafe lws_write(
                wsi, bytes.baseAddress.map { unsafe $0 + prefix }, message.count, LWS_WRITE_TEXT)
        }
        guard written >= 0 else { return -1 }
        if !isLast || connection.closesWith != nil { unsafe lws_callback_on_writable(wsi) }
        return 0
    }
}

/// The callback of libwebsockets for all events; the input is valid only until this returns.
private func clientCallback(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ subject: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
) -> CInt {
    guard let wsi = unsafe wsi, let context = unsafe lws_get_context(wsi),
        let user = unsafe lws_context_user(context)
    else { return 0 }
    // Unretained is safe: the loop lives as long as the process.
    let loop = unsafe Unmanaged<ClientLoop>.fromOpaque(user).takeUnretainedValue()
    return unsafe loop.handle(
        reason, wsi, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
}
