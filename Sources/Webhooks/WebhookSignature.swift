import Base
import Crypto

/// The header by which a receiver knows that a webhook is ours, and new.
///
/// `t=<seconds since 1970>,v1=<hexadecimal HMAC-SHA256 of "<t>.<body>">`. The time is signed too, so that a receiver
/// can refuse what somebody recorded and plays again.
package struct WebhookSignature: Sendable {
    /// The header's name.
    package static let header = "Rostrum-Signature"

    private let secret: Secret<String>

    package init(secret: Secret<String>) {
        self.secret = secret
    }

    /// The header's value, for a body sent at this time.
    package func value(for body: [UInt8], at seconds: Int64) -> String {
        let signed = Array("\(seconds).".utf8) + body
        let code = HMAC.sha256(key: Array(secret.exposed.utf8).span, signed.span)
        return "t=\(seconds),v1=" + code.map { Self.hexadecimal($0) }.joined()
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
