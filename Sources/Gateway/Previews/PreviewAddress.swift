import Base
import Crypto

/// Addresses of previews: for everyone, or good for a while by their signature.
///
/// Whoever is shown a stream is shown such an address; a picture's address needs no token, because browsers send none
/// with an image.
package struct PreviewAddress: Sendable {
    /// Seconds for which an address is good.
    package static let lifetime = 86_400
    /// Clocks may differ by so many seconds.
    private static let leeway = 60

    private let keys: SigningKeys?

    /// - Parameter keys: what keys of its own come of; nil where everyone may see every stream.
    package init(keys: SigningKeys?) {
        self.keys = keys
    }

    /// A key of its own, so that what is signed here is never taken for a token.
    private static func key(from secret: Secret<[UInt8]>) -> Secret<[UInt8]> {
        Secret(HMAC.sha256(key: secret.exposed.span, Array("rostrum preview addresses".utf8).span))
    }

    /// Whether pictures may only be had by an address that somebody was given.
    package var isSigned: Bool { keys != nil }

    /// The address of a picture taken at that time, which makes it another one than that of the picture before.
    package func url(of stream: StreamID, takenAt time: WallTime) -> String {
        let path = "\(ResourcePaths.preview(of: stream)).webp"
        guard let key = keys?.current.first else { return "\(path)?v=\(time.milliseconds)" }
        let seconds = String(time.milliseconds / 1_000)
        let lifetime = String(Self.lifetime)
        let signature = Self.signature(stream, seconds, lifetime, Self.key(from: key.secret))
        return "\(path)?ts=\(seconds)&ttl=\(lifetime)&sig=\(signature)"
    }

    /// Whether an address was made by us and is still good.
    /// - Parameters: `time`, `lifetime` and `signature`: as its query has them.
    package func isGood(
        for stream: StreamID, time: String, lifetime: String, signature: String, now: Int
    ) -> Bool {
        guard let keys, let seconds = Int(time), let span = Int(lifetime), span > 0,
            span <= 10 * Self.lifetime,
            seconds <= now + Self.leeway, seconds > now - span
        else { return false }
        return keys.current.contains { key in
            let expected = Self.signature(stream, time, lifetime, Self.key(from: key.secret))
            return ConstantTime.areEqual(Array(expected.utf8).span, Array(signature.utf8).span)
        }
    }

    /// In hexadecimal.
    private static func signature(
        _ stream: StreamID, _ time: String, _ lifetime: String, _ key: Secret<[UInt8]>
    ) -> String {
        let signed = Array("\(ResourcePaths.preview(of: stream))\n\(time)\n\(lifetime)".utf8)
        return HMAC.sha256(key: key.exposed.span, signed.span).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}
