import Base
import Crypto

/// The header that proves to a receiver that a webhook is authentic and fresh.
///
/// `t=<seconds since 1970>,v1=<hexadecimal HMAC-SHA256 of "<t>.<body>">`. The time is signed as well, so that a
/// receiver can reject a recorded webhook that is replayed. `v1` names the scheme and leaves room for another.
/// - Source: RFC 2104 (HMAC).
package struct WebhookSignature: Sendable {
    /// The header field's name.
    package static let header = "Rostrum-Signature"

    private let secret: Secret<String>

    package init(secret: Secret<String>) {
        self.secret = secret
    }

    /// The header field's value.
    /// - Parameters:
    ///   - body: exactly the bytes that are sent.
    ///   - seconds: time of sending, since 1970.
    package func value(for body: [UInt8], at seconds: Int64) -> String {
        let signed = Array("\(seconds).".utf8) + body
        let code = HMAC.sha256(key: Array(secret.exposed.utf8).span, signed.span)
        return "t=\(seconds),v1=" + code.map { Self.hexadecimal($0) }.joined()
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
