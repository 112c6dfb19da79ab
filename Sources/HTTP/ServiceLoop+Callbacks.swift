import Base
import CWebSockets
import Glibc

/// The callback of libwebsockets for all events, on the service thread.
///
/// Returning 0 means go on, anything else closes the connection. The input belongs to the library and is valid only
/// until this returns, so everything that is kept is copied.
func serviceCallback(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ subject: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
) -> CInt {
    guard let wsi = unsafe wsi, let context = unsafe lws_get_context(wsi),
        let user = unsafe lws_context_user(context)
    else { return 0 }
    let loop = unsafe Unmanaged<ServiceLoop>.fromOpaque(user).takeUnretainedValue()
    // Called while the context is being created, before any connection exists.
    if reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS {
        unsafe loop.certificates.attach(to: subject)
        return 0
    }
    let connection = unsafe LibraryConnection(pointer: wsi)
    return unsafe loop.handle(
        reason, connection, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
}

extension ServiceLoop {
    /// Dispatches an event of one connection.
    fileprivate func handle(
        _ reason: lws_callback_reasons, _ wsi: LibraryConnection, _ input: UnsafeRawBufferPointer
    ) -> CInt {
        switch reason {
        case LWS_CALLBACK_HTTP: return beginExchange(wsi)
        case LWS_CALLBACK_HTTP_BODY: return unsafe receiveBody(wsi, input)
        case LWS_CALLBACK_HTTP_BODY_COMPLETION: return endBody(wsi)
        case LWS_CALLBACK_HTTP_WRITEABLE: return continueSending(wsi)
        case LWS_CALLBACK_CLOSED_HTTP: forgetExchange(wsi)

        case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return confirmUpgrade(wsi)
        case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return confirmSocket(wsi)
        case LWS_CALLBACK_ESTABLISHED: return beginSocket(wsi)
        case LWS_CALLBACK_RECEIVE: return unsafe receiveMessage(wsi, input)
        case LWS_CALLBACK_RECEIVE_PONG: noteSign(of: wsi)
        case LWS_CALLBACK_SERVER_WRITEABLE: return sendMessage(wsi)
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE: unsafe peerCloses(wsi, input)
        case LWS_CALLBACK_CLOSED: endSocket(wsi)

        case LWS_CALLBACK_RAW_RX: return unsafe refuseGarbage(wsi, input)
        case LWS_CALLBACK_WSI_DESTROY: forgetConnection(wsi)
        default: break
        }
        return 0
    }

    func connection(of wsi: LibraryConnection) -> Connection? {
        connections[wsi]
    }

    /// Removes a connection from all tables; libwebsockets frees its memory after this call.
    private func forgetConnection(_ wsi: LibraryConnection) {
        forgetExchange(wsi)
        endSocket(wsi)
        upgrades[wsi] = nil
        guard let connection = connections.removeValue(forKey: wsi) else { return }
        counters.add(-1, counters.connections)
        release(connection)
    }

    /// Answers bytes in which libwebsockets did not recognize a request: an unknown method, or no HTTP at all.
    /// - Source: RFC 9110 §15.6.2 (501 for an unknown method).
    private func refuseGarbage(_ wsi: LibraryConnection, _ input: UnsafeRawBufferPointer) -> CInt {
        guard let connection = connection(of: wsi), !connection.isRefused else { return 0 }
        connection.isRefused = true
        // Closing now, with bytes unread, resets the connection, and the client may lose the answer (RFC 9112 §9.6).
        connection.deadline = now + 1_000
        let line = unsafe input.prefix { $0 != 0x0D && $0 != 0x0A }.prefix(1_024)
        let words = unsafe line.split(separator: 0x20, omittingEmptySubsequences: false)
        let isMethod = unsafe words.count == 3 && words[2].starts(with: Array("HTTP/1.".utf8))
        let response = handler.refusal(
            isMethod ? 501 : 400, isMethod ? "This method isn't supported." : "This isn't an HTTP request.")
        let head = ResponseHead(response, closing: true, now: time(nil))
        return write(wsi, head.bytes, response.body[...], LWS_WRITE_HTTP) ? 0 : -1
    }

    /// Writes head and body, together at most `2 * chunkLength` bytes; libwebsockets buffers what the socket rejects.
    /// - Returns: false if that is too much, or the connection is broken.
    func write(
        _ wsi: LibraryConnection, _ head: [UInt8], _ body: ArraySlice<UInt8>, _ kind: lws_write_protocol
    ) -> Bool {
        let count = head.count + body.count
        guard unsafe prefix + count <= scratch.count else { return false }
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: scratch[prefix...])
        unsafe room.copyBytes(from: head)
        unsafe UnsafeMutableRawBufferPointer(rebasing: room[head.count...]).copyBytes(from: body)
        let start = unsafe room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return unsafe lws_write(wsi.pointer, start, count, kind) >= 0
    }
}
