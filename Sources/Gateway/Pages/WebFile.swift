import Base
import Crypto
import HTTP

/// A file of the web client or an API document, held in memory both plain and in gzip.
///
/// Compressed once at the start, so that a request costs no compression.
struct WebFile: Sendable {
    /// The plain content.
    let bytes: [UInt8]
    /// The compressed content; nil if it would not be smaller, as for pictures.
    private let gzipped: [UInt8]?
    private let type: String
    /// Derived from the content, so that it survives restarts and new builds in which the file is unchanged.
    private let tag: EntityTag

    /// - Parameter type: value of `Content-Type`.
    init(_ bytes: [UInt8], type: String) {
        self.bytes = bytes
        self.type = type
        gzipped = Gzip.compress(bytes)
        tag = EntityTag(value: Self.digest(bytes))
    }

    /// The response to a request: compressed if the client accepts gzip, and 304 if it has the file already.
    /// - Parameter headers: fields beyond type, length and tag.
    /// - Source: RFC 9110 §8.8.3.3 (each encoding has a tag of its own), §12.5.5 (Vary), §15.4.5 (304).
    func response(to request: HTTPRequest, headers: HTTPHeaders) -> HTTPResponse {
        guard let gzipped else {
            return HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: bytes)
        }
        var headers = headers
        headers.add("Vary", "Accept-Encoding")
        guard request.acceptsGzip else {
            return HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: bytes)
        }
        // Caches must not take one encoding for the other.
        let tag = EntityTag(value: tag.value + "-gzip")
        var response = HTTPResponse(to: request, tag: tag, headers: headers, type: type, body: gzipped)
        if response.status == 200 { response.headers.add("Content-Encoding", "gzip") }
        return response
    }

    /// Sixteen characters of base64url that identify a content; not a secret, so the HMAC's key is a constant.
    static func digest(_ bytes: [UInt8]) -> String {
        Base64URL.encode(HMAC.sha256(key: [0].span, bytes.span).prefix(12))
    }
}
