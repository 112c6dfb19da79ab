import CWebSockets
import Glibc

/// Answers whose bodies are made while they are sent.
///
/// In HTTP/1.1 they come in chunks, in HTTP/1.0 as they are. The connection is closed behind them: what a client sends
/// during such an answer is nobody's, and a next request would find it.
extension ServiceLoop {
    /// Sends the head, and has the body made.
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

    /// Hands over as much of the body as there is and as there is room for.
    func proceed(_ exchange: Exchange, with stream: HTTPStream, isChunked: Bool) -> CInt {
        while true {
            guard unsafe lws_partial_buffered(exchange.wsi.pointer) == 0 else {
                unsafe lws_callback_on_writable(exchange.wsi.pointer)
                return 0
            }
            // The time-out is for a client that does not take what there is, however long there is nothing.
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
                // What libwebsockets has buffered goes out first.
                if isWritten { closeSoon(connection) }
                return isWritten ? 0 : -1
            }
        }
    }

    /// Something more of a body was made, or that was all of it.
    func continueStream(_ id: UInt64) {
        guard let exchange = exchanges[id], case .streaming(let streaming) = exchange.phase else { return }
        let result = proceed(exchange, with: streaming.stream, isChunked: streaming.isChunked)
        if result != 0 { unsafe cws_kill(exchange.wsi.pointer) }
    }

    /// Ends those whose clients have left.
    ///
    /// libwebsockets reads nothing while an answer is under way, and so does not see that nobody is there.
    func endDesertedStreams() {
        for exchange in exchanges.values {
            guard case .streaming = exchange.phase, !isEstablished(exchange.wsi) else { continue }
            unsafe cws_kill(exchange.wsi.pointer)
        }
    }

    /// Whether neither end has closed a connection; the kernel says so first of all that it knows of it.
    private func isEstablished(_ wsi: LibraryConnection) -> Bool {
        var state: UInt8 = 0
        var length = socklen_t(1)
        let descriptor = unsafe lws_get_socket_fd(wsi.pointer)
        guard unsafe getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, &state, &length) == 0 else {
            return false
        }
        return state == 1
    }

    /// Ends all such answers, because the server stops: clients of events come again.
    func endStreams() {
        for exchange in exchanges.values {
            guard case .streaming(let streaming) = exchange.phase else { continue }
            streaming.producer.cancel()
            streaming.stream.finish()
        }
    }
}
