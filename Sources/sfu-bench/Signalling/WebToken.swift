import Crypto
import Foundation

/// Makes JSON Web Tokens with a shared secret.
///
/// - Source: RFC 7515 §3.1, RFC 7519 §4, RFC 7518 §3.2 (HS256).
enum WebToken {
    struct Claims: Encodable {
        /// The key's id.
        var iss: String
        /// The identity.
        var sub: String
        var name: String
        var stream: String
        var role: String
        /// Seconds since 1970.
        var nbf: Int
        var exp: Int
    }

    private struct Header: Encodable {
        var alg = "HS256"
        var typ = "JWT"
        var kid: String
    }

    static func sign(_ claims: Claims, secret: String) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let head = base64URL(Array(try encoder.encode(Header(kid: claims.iss))))
        let body = base64URL(Array(try encoder.encode(claims)))
        let message = Array("\(head).\(body)".utf8)
        let code = HMAC.sha256(key: Array(secret.utf8).span, message.span)
        return "\(head).\(body).\(base64URL(code))"
    }

    /// Base 64 with the URL alphabet and without padding (RFC 4648 §5).
    static func base64URL(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}
