import CWebSockets
import Glibc

/// Answers over HTTP/2, whose headers only libwebsockets can write.
extension ServiceLoop {
    func writeStream(_ exchange: Exchange, _ sending: inout Exchange.Sending, _ body: [UInt8]) -> Bool {
        guard sending.hasSentHead else {
            sending.hasSentHead = true
            return writeStreamHead(exchange.wsi, sending.response, isLast: body.isEmpty)
        }
        let end = min(body.count, sending.offset + Self.chunkLength)
        let part = body[sending.offset..<end]
        sending.offset = end
        return write(exchange.wsi, [], part, end == body.count ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP)
    }

    private func writeStreamHead(_ wsi: OpaquePointer, _ response: HTTPResponse, isLast: Bool) -> Bool {
        guard let base = scratch.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
        let start = base + prefix
        let end: UnsafeMutablePointer<UInt8>? = base + scratch.count
        var position: UnsafeMutablePointer<UInt8>? = start
        let status = UInt32(clamping: response.status) | 1 << 30  // LWSAHH_FLAG_NO_SERVER_NAME
        guard lws_add_http_header_status(wsi, status, &position, end) == 0 else { return false }
        var fields = response.headers.fields.map { ($0.name, ResponseHead.sanitized($0.value)) }
        fields.append(("date", HTTPDate.text(time(nil))))
        if let length = ResponseHead.contentLength(response) {
            fields.append(("content-length", "\(length)"))
        }
        for (name, value) in fields {
            let isAdded = (name + ":").withCString { name in
                value.withCString { value in
                    name.withMemoryRebound(to: UInt8.self, capacity: 1) { name in
                        value.withMemoryRebound(to: UInt8.self, capacity: 1) { bytes in
                            lws_add_http_header_by_name(wsi, name, bytes, CInt(strlen(value)), &position, end)
                                == 0
                        }
                    }
                }
            }
            guard isAdded else { return false }
        }
        guard lws_finalize_http_header(wsi, &position, end) == 0, let position else { return false }
        var kind = LWS_WRITE_HTTP_HEADERS
        if isLast { kind = lws_write_protocol(rawValue: kind.rawValue | LWS_WRITE_H2_STREAM_END.rawValue) }
        return lws_write(wsi, start, position - start, kind) >= 0
    }
}
