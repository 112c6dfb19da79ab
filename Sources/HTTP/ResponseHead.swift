/// The bytes before a response's body, in HTTP/1.1.
/// - Source: RFC 9112 §4, RFC 9110 §6.6.1 (Date), §8.6 (Content-Length).
struct ResponseHead {
    let bytes: [UInt8]

    /// - Parameters:
    ///   - isChunked: whether the body comes with the chunked transfer coding.
    ///   - now: seconds since 1970.
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

    /// nil where the field must not stand.
    static func contentLength(_ response: HTTPResponse) -> Int? {
        response.status == 204 || response.status == 304 || response.status < 200 || response.stream != nil
            ? nil : response.file?.count ?? response.body.count
    }

    /// A line break in a value would start a header of the attacker's choice.
    static func sanitized(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return value }
        return String(value.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
    }
}
