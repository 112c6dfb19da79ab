import Base
import CWebSockets
import Glibc

/// Requests and responses.
///
/// One request at a time per connection: while a handler runs, reading is paused, and the client's further bytes stay
/// in the socket.
extension ServiceLoop {
    // MARK: Receiving

    /// Reads a request's head and decides how it goes on: refusal, body, or handler.
    /// - Returns: as for all functions here that return `CInt`, libwebsockets' code: 0 to go on, else close.
    func beginExchange(_ wsi: LibraryConnection) -> CInt {
        guard let connection = connection(of: wsi), exchangeOf[wsi] == nil else { return -1 }
        let deadline = now + settings.receiveTimeout.milliseconds
        do throws(RequestHead.Refusal) {
            let head = try RequestHead(reading: wsi, maximumBytes: settings.maximumHeaderBytes)
            if isUnsafeToContinue(connection, head) {
                let exchange = open(wsi, connection, nil, deadline)
                return refuse(exchange, 400, "Wait for the last response before you send a body.")
            }
            let exchange = open(wsi, connection, head, deadline)
            exchange.client = client(of: connection, head)
            if let seconds = count(exchange.client, on: connection) {
                return refuse(
                    exchange, 429, "Too many requests. Wait a moment.", rateLimit(wait: seconds).headers)
            }
            guard stopDeadline == nil else {
                return refuse(exchange, 503, "The server is stopping.", ["Retry-After": "5"])
            }
            switch head.framing {
            case .length(let count) where count > settings.maximumBodyBytes: return refuseBody(exchange)
            case .length: break
            case .chunked: exchange.chunks = ChunkedBody(limit: settings.maximumBodyBytes)
            case .none: return dispatch(exchange)
            }
            // Without this line the client would hold back its body (RFC 9110 §10.1.1).
            if head.expectsContinue {
                let line = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
                guard write(wsi, line, [], LWS_WRITE_HTTP_HEADERS) else { return -1 }
            }
            return 0
        } catch {
            let exchange = open(wsi, connection, nil, deadline)
            return refuse(exchange, error.status, error.detail)
        }
    }

    /// Whether libwebsockets 4.1 would read freed memory for this request's body, or never stop reading it.
    ///
    /// That happens if the head is in its buffer of early bytes, because it arrived in one packet with another request
    /// (pipelining, RFC 9112 §9.3.2). libwebsockets reports such bytes for all connections together, not for one, so
    /// some harmless requests are refused as well.
    private func isUnsafeToContinue(_ connection: Connection, _ head: RequestHead) -> Bool {
        guard connection.isReused else { return false }
        guard head.framing != .none || head.libraryAwaitsMore else { return false }
        return settings.tls != nil || hasUnreadBytes
    }

    private func open(
        _ wsi: LibraryConnection, _ connection: Connection, _ head: RequestHead?, _ deadline: UInt64
    ) -> Exchange {
        let exchange = Exchange(
            id: nextID(), wsi: wsi, connection: connection, head: head, startedAt: now, deadline: deadline)
        // libwebsockets cannot find the next request after a body of unknown length. With TLS each connection serves
        // one request only, because `isUnsafeToContinue` cannot be determined there.
        exchange.closesConnection = settings.tls != nil || head?.libraryAwaitsMore ?? true
        connection.isReused = true
        exchanges[exchange.id] = exchange
        exchangeOf[wsi] = exchange
        connection.isBusy = true
        connection.deadline = nil
        // From here on the exchange's own deadline applies, which ends with an answer; libwebsockets' just closes.
        unsafe lws_set_timeout(wsi.pointer, NO_PENDING_TIMEOUT, 0)
        return exchange
    }

    /// Appends a piece of the body; the limit is checked before memory is taken.
    func receiveBody(_ wsi: LibraryConnection, _ bytes: UnsafeRawBufferPointer) -> CInt {
        guard let exchange = exchangeOf[wsi], case .receiving = exchange.phase else { return 0 }
        if exchange.chunks != nil {
            do throws(ChunkedBody.Failure) {
                try unsafe exchange.chunks?.append(bytes)
            } catch {
                switch error {
                case .malformed: return refuse(exchange, 400, "The chunked body is malformed.")
                case .tooLarge: return refuseBody(exchange)
                }
            }
            guard let chunks = exchange.chunks, chunks.isFinished else { return countBody(of: exchange) }
            exchange.body = chunks.body
            exchange.isBodyPending = false
            return dispatch(exchange)
        }
        guard exchange.body.count + bytes.count <= settings.maximumBodyBytes else {
            return refuseBody(exchange)
        }
        unsafe exchange.body.append(contentsOf: bytes)
        return countBody(of: exchange)
    }

    /// Counts what has arrived of a body, and gives up the eldest requests if all bodies together are too long.
    ///
    /// A body takes moments to arrive, unless its client sends it slowly.
    private func countBody(of exchange: Exchange) -> CInt {
        let count = exchange.body.count + (exchange.chunks?.body.count ?? 0)
        bodyBytes += count - exchange.countedBytes
        exchange.countedBytes = count
        let limit = settings.maximumPendingBodyBytes
        guard bodyBytes > limit else { return 0 }
        var result: CInt = 0
        // Some more than needed, because each search looks at all requests.
        let receiving = exchanges.values.filter { $0.isReceiving && $0.countedBytes > 0 }
        let eldest = receiving.sorted { ($0.startedAt, $0.id) < ($1.startedAt, $1.id) }
        for other in eldest where bodyBytes > limit - limit / 8 {
            other.closesConnection = true
            let outcome = refuse(
                other, 503, "Too many requests are arriving slowly. Try again.", ["Retry-After": "1"])
            if other === exchange {
                result = outcome
            } else if outcome != 0 {
                unsafe cws_kill(other.wsi.pointer)
            }
        }
        return result
    }

    /// Releases a body, because it was passed on or is of no use any more.
    private func releaseBody(of exchange: Exchange) {
        exchange.body = []
        exchange.chunks = nil
        bodyBytes -= exchange.countedBytes
        exchange.countedBytes = 0
    }

    /// The body is complete, by libwebsockets' count.
    func endBody(_ wsi: LibraryConnection) -> CInt {
        guard let exchange = exchangeOf[wsi] else { return -1 }
        exchange.isBodyPending = false
        switch exchange.phase {
        case .receiving: return dispatch(exchange)
        // The response was sent early, and the rest of the body has been read: closing loses nothing now.
        case .draining: return -1
        // libwebsockets calls a second time for a POST of length zero.
        case .handling: return 0
        // A second call here means that bytes are left over, which libwebsockets would deliver forever.
        case .sending, .streaming: return -1
        }
    }

    /// Charges a complete request to its client and has the handler answer it, here or in a task.
    private func dispatch(_ exchange: Exchange) -> CInt {
        guard let head = exchange.head else { return -1 }
        unsafe lws_set_timeout(exchange.wsi.pointer, NO_PENDING_TIMEOUT, 0)
        let request = request(
            head, on: exchange.connection, from: exchange.client, body: exchange.body)
        let cost = exchange.body.count / max(settings.bytesPerRequest, 1)
        limits.charge(Double(cost) + self.handler.surcharge(request), to: exchange.client, at: now)
        releaseBody(of: exchange)
        if let response = handler.answerAtOnce(request) { return begin(response, exchange) }
        // The client's further bytes stay in the socket until the answer is there.
        unsafe lws_rx_flow_control(exchange.wsi.pointer, 0)
        let patience = settings.handlerTimeout + self.handler.extraTime(request)
        exchange.deadline = now + patience.milliseconds
        let (id, handler, link) = (exchange.id, handler, link)
        let counters = counters
        exchange.phase = .handling(
            Task {
                counters.add(1, counters.handlersAtWork)
                let response = await handler.respond(to: request)
                counters.add(-1, counters.handlersAtWork)
                link.post(.answer(id, response))
            })
        return 0
    }

    // MARK: Refusing

    private func refuseBody(_ exchange: Exchange) -> CInt {
        refuse(exchange, 413, "The body is larger than \(settings.maximumBodyBytes) bytes.")
    }

    /// Answers without calling `respond`; the rest of the request is read and dropped.
    private func refuse(
        _ exchange: Exchange, _ status: Int, _ detail: String, _ headers: HTTPHeaders = [:]
    ) -> CInt {
        var response = handler.refusal(status, detail)
        response.headers.set(headers)
        if exchange.isBodyPending { exchange.closesConnection = true }
        return begin(response, exchange)
    }

    /// Ends an exchange whose present phase has exceeded its deadline.
    ///
    /// A slow request gets 408, a slow handler 503; a client that does not read its response is disconnected.
    func giveUp(_ exchange: Exchange) {
        switch exchange.phase {
        case .receiving:
            exchange.closesConnection = true
            if refuse(exchange, 408, "The request took too long to arrive.") != 0 {
                unsafe cws_kill(exchange.wsi.pointer)
            }
        case .handling(let task):
            task.cancel()
            answer(exchange.id, handler.refusal(503, "The response took too long."))
        case .sending, .streaming, .draining:
            exchange.deadline = .max
            unsafe cws_kill(exchange.wsi.pointer)
        }
    }

    // MARK: Answering

    /// Begins to send a handler's response; dropped if the exchange has ended or been answered meanwhile.
    func answer(_ id: UInt64, _ response: HTTPResponse) {
        guard let exchange = exchanges[id], exchange.isWaitingForHandler else { return }
        unsafe lws_rx_flow_control(exchange.wsi.pointer, 1)
        if begin(response, exchange) != 0 { closeSoon(exchange.connection) }
    }

    /// Begins to send a response, as a stream, a file or bytes.
    private func begin(_ made: HTTPResponse, _ exchange: Exchange) -> CInt {
        let response = made.withoutForbiddenBody
        releaseBody(of: exchange)
        if stopDeadline != nil { exchange.closesConnection = true }
        if let stream = response.stream, exchange.head?.method != .head {
            guard stopDeadline == nil else {
                return begin(handler.refusal(503, "The server is stopping."), exchange)
            }
            return begin(stream, response, exchange)
        }
        exchange.phase = .sending(Exchange.Sending(response: response))
        exchange.deadline = now + settings.sendTimeout.milliseconds
        return proceed(exchange)
    }

    /// Continues the response once libwebsockets reports that the socket has room.
    func continueSending(_ wsi: LibraryConnection) -> CInt {
        guard let exchange = exchangeOf[wsi] else {
            return connection(of: wsi)?.isClosing == true ? -1 : 0
        }
        switch exchange.phase {
        case .sending: return proceed(exchange)
        case .streaming(let streaming):
            return proceed(exchange, with: streaming.stream, isChunked: streaming.isChunked)
        case .receiving, .handling, .draining: return 0
        }
    }

    /// Writes the response until the socket is full or the response is complete.
    func proceed(_ exchange: Exchange) -> CInt {
        while true {
            guard case .sending(var sending) = exchange.phase else { return 0 }
            guard unsafe lws_partial_buffered(exchange.wsi.pointer) == 0 else {
                unsafe lws_callback_on_writable(exchange.wsi.pointer)
                return 0
            }
            if let file = sending.response.file, exchange.head?.method != .head {
                guard let result = proceed(exchange, &sending, with: file) else { continue }
                return result
            }
            let body = exchange.head?.method == .head ? [] : sending.response.body
            if sending.hasSentHead, sending.offset == body.count { return finish(exchange, sending.response) }
            guard writePart(exchange, &sending, body) else { return -1 }
            exchange.phase = .sending(sending)
        }
    }

    /// Writes the head, if not written yet, and up to `chunkLength` bytes of the body from `sending.offset`.
    /// - Returns: false if the connection is broken.
    func writePart(_ exchange: Exchange, _ sending: inout Exchange.Sending, _ body: [UInt8]) -> Bool {
        var head: [UInt8] = []
        if !sending.hasSentHead {
            sending.hasSentHead = true
            head =
                ResponseHead(
                    sending.response, closing: exchange.closesConnection,
                    now: time(nil)
                ).bytes
        }
        let end = min(body.count, sending.offset + Self.chunkLength)
        let part = body[sending.offset..<end]
        sending.offset = end
        return write(exchange.wsi, head, part, LWS_WRITE_HTTP)
    }

    /// Logs a completed response and either keeps the connection for the next request or closes it.
    func finish(_ exchange: Exchange, _ response: HTTPResponse) -> CInt {
        noteAnswer(to: exchange, response)
        if exchange.isBodyPending {
            exchange.phase = .draining
            // Two seconds for the client to notice the response and to stop sending its body.
            exchange.deadline = now + 2_000
            return 0
        }
        let closes = exchange.closesConnection
        forgetExchange(exchange.wsi)
        if !closes, unsafe lws_http_transaction_completed(exchange.wsi.pointer) == 0 { return 0 }
        exchange.connection.isClosing = true
        return -1
    }

    func noteAnswer(to exchange: Exchange, _ response: HTTPResponse) {
        counters.countAnswer(response.status)
        log.debug(
            "request",
            [
                "method": exchange.head?.method.rawValue ?? "?",
                "target": exchange.head?.loggedTarget ?? "?",
                "status": response.status,
                "milliseconds": now - exchange.startedAt,
                "address": exchange.connection.address,
            ])
    }

    /// Closes a connection from outside its own callbacks, once buffered bytes have been sent; after 5 s in any case.
    func closeSoon(_ connection: Connection) {
        connection.isClosing = true
        connection.deadline = now + 5_000
        unsafe lws_callback_on_writable(connection.wsi.pointer)
    }

    // MARK: The end

    /// Ends an exchange, complete or broken off, and starts the connection's idle timeout.
    func forgetExchange(_ wsi: LibraryConnection) {
        guard let exchange = exchangeOf.removeValue(forKey: wsi) else { return }
        exchanges[exchange.id] = nil
        releaseBody(of: exchange)
        cancelTask(of: exchange)
        let connection = exchange.connection
        connection.isBusy = false
        if connection.isProxy { release(connection) }
        connection.deadline = now + settings.idleTimeout.milliseconds
        endStopIfDone()
    }

    /// Cancels the handler or the producer of a body, because the response is over.
    private func cancelTask(of exchange: Exchange) {
        switch exchange.phase {
        case .handling(let task):
            log.debug("client-gone", ["target": exchange.head?.loggedTarget ?? "?"])
            task.cancel()
        case .streaming(let streaming):
            counters.add(-1, counters.streams)
            // Closed before the cancellation, so that the producer finds it closed when it notices.
            streaming.stream.close()
            streaming.producer.cancel()
        case .receiving, .sending, .draining: break
        }
    }
}

extension RequestHead {
    /// Path and query for a log line, without tokens.
    var loggedTarget: String {
        HTTPRequest(method: method, path: path, query: query).loggedTarget
    }
}
