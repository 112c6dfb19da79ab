import CWebSockets
import Glibc

/// Responses whose bodies are produced while they are sent.
///
/// HTTP/1.1 clients get chunks, HTTP/1.0 clients plain bytes up to the end of the connection. The connection closes
/// afterwards in both cases: bytes that the client sent meanwhile would be taken for the next request.
/// - Source: RFC 9112 §6.1, §6.3 (framing by close).
extension ServiceLoop {
    /// Sends the head and starts the task that produces the body.
    func begin(_ stream: HTTPStream, _ response: HTTPResponse, _ exchange: Exchange) -> CInt {
        exchange.closesConnection = true
        let isChunked = exchange.head?.isOldHTTP == false
        let head = ResponseHead(response, closing: true, isChunked: isChunked, now: time(nil))
        let (id, link) = (exchange.id, link)
        counters.add(1, counters.streams)
        exchange.phase = .streaming(
            Exchange.Streaming(
                stream: stream, isChunked: isChunked,
                producer: stream.begin { link.post(.streamed(id)) }))
        exchange.deadline = now + settings.sendTimeout.milliseconds
        noteAnswer(to: exchange, response)
        guard write(exchange.wsi, head.bytes, [], LWS_WRITE_HTTP) else { return -1 }
        return proceed(exchange, with: stream, isChunked: isChunked)
    }

    /// Writes queued parts of the body until the queue is empty or the socket is full.
    func proceed(_ exchange: Exchange, with stream: HTTPStream, isChunked: Bool) -> CInt {
        while true {
            guard unsafe lws_partial_buffered(exchange.wsi.pointer) == 0 else {
                unsafe lws_callback_on_writable(exchange.wsi.pointer)
                return 0
            }
            // The send timeout applies only while there is something to send: a producer may be silent for any time.
            switch stream.next(Self.chunkLength) {
            case .nothing:
                exchange.deadline = .max
                return 0
            case .part(let part):
                exchange.deadline = now + settings.sendTimeout.milliseconds
                let bytes = isChunked ? ChunkedCoding.chunk(part) : part
                guard write(exchange.wsi, [], bytes[...], LWS_WRITE_HTTP) else { return -1 }
            case .end:
                let isWritten = !isChunked || write(exchange.wsi, ChunkedCoding.end, [], LWS_WRITE_HTTP)
                let connection = exchange.connection
                forgetExchange(exchange.wsi)
                // Closes after the bytes that libwebsockets has buffered.
                if isWritten { closeSoon(connection) }
                return isWritten ? 0 : -1
            }
        }
    }

    /// The producer has queued more of a body, or finished it.
    func continueStream(_ id: UInt64) {
        guard let exchange = exchanges[id], case .streaming(let streaming) = exchange.phase else { return }
        let result = proceed(exchange, with: streaming.stream, isChunked: streaming.isChunked)
        if result != 0 { unsafe cws_kill(exchange.wsi.pointer) }
    }

    /// Ends streams whose clients have disconnected.
    ///
    /// libwebsockets does not read while a response is under way, so it does not notice a closed connection.
    func endDesertedStreams() {
        for exchange in exchanges.values {
            guard case .streaming = exchange.phase, isDeserted(exchange.wsi) else { continue }
            unsafe cws_kill(exchange.wsi.pointer)
        }
    }

    /// Whether the client has closed the connection, which is one of TCP or a pair of sockets.
    private func isDeserted(_ wsi: LibraryConnection) -> Bool {
        let descriptor = unsafe lws_get_socket_fd(wsi.pointer)
        var state = pollfd(fd: descriptor, events: Self.peerHasClosed, revents: 0)
        return unsafe poll(&state, 1, 0) != 0
    }

    /// Linux's `POLLRDHUP`, which Glibc's module does not have.
    private static let peerHasClosed: Int16 = 0x2000

    /// Ends all streams because the server stops; clients of event streams reconnect automatically.
    func endStreams() {
        for exchange in exchanges.values {
            guard case .streaming(let streaming) = exchange.phase else { continue }
            streaming.producer.cancel()
            streaming.stream.finish()
        }
    }
}
