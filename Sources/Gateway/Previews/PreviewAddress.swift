import Base
import Crypto

/// Addresses of previews: plain where viewers are public, otherwise signed and valid for a limited time.
///
/// Everyone who may watch a stream gets a signed address with its description. A signature replaces the token because
/// browsers send no `Authorization` with an `<img>`. It does not name its bearer, so it cannot be revoked when the
/// bearer is banned: instead, an address shows its own picture, and soon none of the later ones.
package struct PreviewAddress: Sendable {
    /// How long a signed address shows its own picture at most, in seconds: a day.
    package static let lifetime = 86_400
    /// How long a signed address also shows later pictures, in seconds from when its own was taken.
    ///
    /// A new picture comes every five seconds. Clients that have just learned an address, or poll, still get one.
    package static let overlap = 60
    /// Tolerated difference between clocks, in seconds.
    private static let leeway = 60

    private let keys: SigningKeys?

    /// - Parameter keys: keys from which the signing keys are derived; nil where viewers are public.
    package init(keys: SigningKeys?) {
        self.keys = keys
    }

    /// The key for addresses, derived from a token key so that a signature can never serve as a token's.
    private static func key(from secret: Secret<[UInt8]>) -> Secret<[UInt8]> {
        Secret(HMAC.sha256(key: secret.exposed.span, Array("rostrum preview addresses".utf8).span))
    }

    /// Whether previews require a signed address or a token.
    package var isSigned: Bool { keys != nil }

    /// The address of the preview taken at a time; the time makes each picture's address unique, for caches.
    package func url(of stream: StreamID, takenAt time: WallTime) -> String {
        let path = "\(ResourcePaths.preview(of: stream)).webp"
        guard let key = keys?.current.first else { return "\(path)?v=\(time.milliseconds)" }
        let seconds = String(time.milliseconds / 1_000)
        let lifetime = String(Self.lifetime)
        let signature = Self.signature(stream, seconds, lifetime, Self.key(from: key.secret))
        return "\(path)?ts=\(seconds)&ttl=\(lifetime)&sig=\(signature)"
    }

    /// Whether an address was signed with one of the keys and is still valid.
    ///
    /// The signature covers the texts of the query as they are; it is compared in constant time.
    /// - Parameters: `time`, `lifetime` and `signature`: the values in the query; `now`: seconds since 1970.
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

    /// Whether a valid address shows the latest picture: because it is this picture's, or for a short time after.
    /// - Parameters: `time`: the value in the query; `latest`: when the latest picture was taken; `now`: seconds since
    ///   1970.
    package func shows(pictureOf latest: WallTime, time: String, now: Int) -> Bool {
        guard let seconds = Int(time) else { return false }
        return Int64(seconds) == latest.milliseconds / 1_000 || seconds > now - Self.overlap
    }

    /// HMAC-SHA256 over path, time and lifetime, in hexadecimal.
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
