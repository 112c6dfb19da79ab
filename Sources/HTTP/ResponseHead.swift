/// The bytes of a response before its body, in HTTP/1.1.
/// - Source: RFC 9112 §4 (status line), §6.1 (Transfer-Encoding), §9.6 (`close`); RFC 9110 §6.6.1 (Date), §8.6
///   (Content-Length).
struct ResponseHead {
    let bytes: [UInt8]

    /// - Parameters:
    ///   - closing: announces that the connection closes after this response.
    ///   - isChunked: whether the body is sent with the chunked transfer coding.
    ///   - now: seconds since 1970, for `Date`.
    init(_ response: HTTPResponse, closing: Bool, isChunked: Bool = false, now: Int) {
        var text = "HTTP/1.1 \(response.status) \(HTTPResponse.reasonPhrase(response.status))\r\n"
        for field in response.headers.fields {
            text += "\(field.name): \(Self.sanitized(field.value))\r\n"
        }
        text += "date: \(HTTPDate.text(now))\r\n"
        if let length = Self.contentLength(response) { text += "content-length: \(length)\r\n" }
        if isChunked { text += "transfer-encoding: chunked\r\n" }
        if closing { text += "connection: close\r\n" }
        bytes = Array((text + "\r\n").utf8)
    }

    /// The body's length in bytes; nil where the field must not be sent.
    ///
    /// A 304 has no body; its length is left out rather than that of the full response. A stream's length is unknown.
    /// - Source: RFC 9110 §8.6.
    static func contentLength(_ response: HTTPResponse) -> Int? {
        response.hasNoBody || response.stream != nil ? nil : response.file?.count ?? response.body.count
    }

    /// Replaces control characters by blanks.
    ///
    /// A line break in a value would let an attacker add header fields or a whole response.
    /// - Source: RFC 9110 §5.5 (CR, LF and NUL in field values).
    static func sanitized(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return value }
        return String(value.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
    }
}
