import Base
import Crypto
import HTTP

/// A file of the web client, or a document, as it is sent to everybody: held in memory, as it is and in gzip.
struct WebFile: Sendable {
    /// As they are.
    let bytes: [UInt8]
    /// Nil for what gets no smaller, such as pictures.
    private let gzipped: [UInt8]?
    private let type: String
    private let tag: EntityTag

    /// - Parameter type: its media type, as `Content-Type` has it.
    init(_ bytes: [UInt8], type: String) {
        self.bytes = bytes
        self.type = type
        gzipped = Gzip.compress(bytes)
        tag = EntityTag(value: Self.digest(bytes))
    }

    /// In the smaller form where the client takes it, and 304 without it where the client has it.
    /// - Parameter headers: beyond its type, length and tag.
    /// - Source: RFC 9110 §8.8.3.3: each form has a tag of its own.
    func response(to request: HTTPRequest, headers: HTTPHeaders) -> HTTPResponse {
        guard let gzipped else {
            return HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: bytes)
        }
        var headers = headers
        headers.add("Vary", "Accept-Encoding")
        guard request.acceptsGzip else {
            return HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: bytes)
        }
        let tag = EntityTag(value: tag.value + "-gzip")
        var response = HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: gzipped)
        if response.status == 200 { response.headers.add("Content-Encoding", "gzip") }
        return response
    }

    /// Sixteen letters and digits of base64url that tell contents apart; no secret.
    static func digest(_ bytes: [UInt8]) -> String {
        Base64URL.encode(HMAC.sha256(key: [0].span, bytes.span).prefix(12))
    }
}
