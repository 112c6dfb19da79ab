import CWebSockets
import Synchronization

/// The way from any thread to the one that serves WebSockets to others.
final class ClientMailbox: Sendable {
    enum Command: Sendable {
        case connect(WebSocketLink, WebSocketClient.Address)
        /// There is something to send.
        case write(UInt64)
        case close(UInt64, code: UInt16)
    }

    private struct State {
        var commands: [Command] = []
        var lastNumber: UInt64 = 0
        /// Address of the context, once there is one; it stays as long as the process.
        var context: UInt?
        /// Nothing is served.
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Never 0, which means none.
    func nextNumber() -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    func post(_ command: Command) {
        let isClosed = state.withLock { state in
            guard !state.isClosed else { return true }
            state.commands.append(command)
            guard state.commands.count == 1, let context = state.context else { return false }
            // The one function of the library that any thread may call.
            unsafe lws_cancel_service(OpaquePointer(bitPattern: context))
            return false
        }
        if isClosed { Self.refuse(command) }
    }

    /// Refuses all connections from now on.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
        for command in left { Self.refuse(command) }
    }

    private static func refuse(_ command: Command) {
        guard case .connect(let link, _) = command else { return }
        link.continuation.yield(.failed("libwebsockets cannot start"))
        link.continuation.finish()
    }

    func open(_ context: OpaquePointer) {
        let address = UInt(bitPattern: context)
        state.withLock { $0.context = address }
    }

    func take() -> [Command] {
        state.withLock { state in
            defer { state.commands.removeAll(keepingCapacity: true) }
            return state.commands
        }
    }
}

/// What the thread of WebSockets to others owns: libwebsockets' context, and what each connection has under way.
@safe final class ClientLoop {
    private struct Connection {
        let link: WebSocketLink
        /// Once it is open, and until the library says that it is gone.
        var wsi: LibraryConnection?
        /// Of a message that has not come whole.
        var partial: [UInt8] = []
        /// The close frame's, once one came.
        var closing: (code: UInt16, reason: String)?
        /// Close with that code as soon as it may be written.
        var closesWith: UInt16?
    }

    private let mailbox: ClientMailbox
    private var connections: [UInt64: Connection] = [:]
    // The library keeps a pointer, as long as the process.
    private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    private let prefix = Int(cws_prefix())

    init(_ mailbox: ClientMailbox) {
        self.mailbox = mailbox
    }

    /// Serves for ever.
    func run() {
        let user = unsafe Unmanaged.passUnretained(self).toOpaque()
        let (context, _) = unsafe LibraryComplaints.collect {
            unsafe cws_client_create(clientCallback, protocols, user)
        }
        guard let context = unsafe context else {
            // Without memory for it nobody connects, and each is told so.
            return mailbox.close()
        }
        unsafe mailbox.open(context)
        while true {
            unsafe perform(mailbox.take(), context)
            // Waits until a socket has something or somebody calls; the number has no meaning any more.
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

    private func connect(
        _ link: WebSocketLink, _ address: WebSocketClient.Address, _ context: OpaquePointer
    ) {
        connections[link.number] = Connection(link: link)
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        let isUsual = address.port == (address.isSecure ? 443 : 80)
        let begun = unsafe cws_client_connect(
            context, link.number, address.host, isUsual ? host : "\(host):\(address.port)",
            Int32(address.port), address.path, address.isSecure ? 1 : 0)
        if begun == 0 { end(link.number, .failed("no connection")) }
    }

    private func wantToWrite(_ number: UInt64) {
        guard let wsi = connections[number]?.wsi else { return }
        unsafe lws_callback_on_writable(wsi.pointer)
    }

    private func end(_ number: UInt64, _ event: WebSocketClient.Event) {
        guard let connection = connections.removeValue(forKey: number) else { return }
        end(connection.link, event)
    }

    private func end(_ link: WebSocketLink, _ event: WebSocketClient.Event) {
        link.continuation.yield(event)
        link.continuation.finish()
    }

    // MARK: What the library says

    /// - Returns: nonzero to close the connection.
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
            guard input.count >= 2 else { break }
            let code = unsafe UInt16(input[0]) << 8 | UInt16(input[1])
            connections[number]?.closing = unsafe (code, String(decoding: input.dropFirst(2), as: UTF8.self))
        case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
            let text = unsafe String(decoding: input, as: UTF8.self)
            end(number, .failed(text.isEmpty ? "no connection" : text))
        case LWS_CALLBACK_CLIENT_CLOSED, LWS_CALLBACK_WSI_DESTROY:
            let closing = connections[number]?.closing
            end(number, .closed(code: closing?.code ?? 1_006, reason: closing?.reason ?? ""))
        default: break
        }
        return 0
    }

    private func receive(_ number: UInt64, _ wsi: OpaquePointer, _ input: UnsafeRawBufferPointer) -> CInt {
        guard var connection = connections.removeValue(forKey: number) else { return -1 }
        unsafe connection.partial.append(contentsOf: input)
        defer { connections[number] = connection }
        guard connection.partial.count <= WebSocketClient.maximumMessage else {
            unsafe cws_client_close_reason(wsi, 1_009)
            return -1
        }
        guard unsafe cws_client_is_end(wsi) != 0 else { return 0 }
        let result = connection.link.continuation.yield(.message(connection.partial))
        connection.partial = []
        guard case .dropped = result else { return 0 }
        unsafe cws_client_close_reason(wsi, 1_008)
        return -1
    }

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

/// What libwebsockets calls, for everything; the input is the library's until this returns.
private func clientCallback(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ subject: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
) -> CInt {
    guard let wsi = unsafe wsi, let context = unsafe lws_get_context(wsi),
        let user = unsafe lws_context_user(context)
    else { return 0 }
    // The loop runs as long as the process.
    let loop = unsafe Unmanaged<ClientLoop>.fromOpaque(user).takeUnretainedValue()
    return unsafe loop.handle(
        reason, wsi, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
}
