import Base
import Wire

/// The hash functions for a relay's passwords and keys.
package protocol TURNAuthenticator: MessageAuthenticator {
    /// - Returns: 16 bytes (RFC 1321); nil if the library offers no MD5, as when it is limited to approved
    ///   algorithms.
    func md5(_ message: Span<UInt8>) -> [UInt8]?
}

/// The credentials that the server issues for its relay, without storing any.
///
/// A user name contains its expiry, and the password is an HMAC of the user name under a secret of the server.
/// - Source: draft-uberti-behave-turn-rest-00 §2.2; RFC 8489 §9.2 (long-term credentials).
package struct TURNCredentials: Sendable {
    private let secret: Secret<[UInt8]>

    /// - Parameter secret: the key of the passwords' HMAC.
    package init(secret: Secret<[UInt8]>) {
        self.secret = secret
    }

    /// When a user name expires, in seconds since 1970; nil if its form is not one that the server issues.
    static func expiry(of username: String) -> Int? {
        // Cut as bytes: the colon may form one `Character` with the beginning of the identity behind it (UAX #29).
        let bytes = username.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let digits = bytes[..<colon]
        guard digits.allSatisfy(Self.isDigit) else { return nil }
        return Int(Substring(digits))
    }

    /// The key with which a client that knows the password signs; nil if there is no MD5.
    /// - Source: RFC 8489 §9.2.2, §18.5.1 (why clients still use MD5).
    func key(of username: String, realm: String, by authenticator: some TURNAuthenticator) -> [UInt8]? {
        let code = authenticator.hmacSHA1(key: secret.exposed.span, Array(username.utf8).span)
        return authenticator.md5(Array("\(username):\(realm):\(Self.base64(code))".utf8).span)
    }

    /// Standard base64, padded (RFC 4648 §4).
    private static func base64(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: -text.count & 3)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

/// Nonces that need not be stored: each contains its expiry and an HMAC, and is valid for one client address only.
///
/// - Source: RFC 8489 §9.2.1; RFC 8656 §5 (a new one at least once an hour).
struct TURNNonces: Sendable {
    /// How long a nonce is valid.
    static let lifetime = Duration.seconds(3_600)
    /// Bytes of the HMAC in a nonce.
    private static let codeLength = 9

    private let key: Secret<[UInt8]>

    init(key: Secret<[UInt8]>) {
        self.key = key
    }

    /// A nonce for this client, valid for an hour from now.
    func make(
        for client: TransportAddress, at now: MonotonicTime, by authenticator: some MessageAuthenticator
    ) -> String {
        text(until: Self.second(of: now + Self.lifetime), client, authenticator)
    }

    /// Whether a nonce was made for this client and has not expired.
    func isGood(
        _ nonce: String, of client: TransportAddress, at now: MonotonicTime,
        by authenticator: some MessageAuthenticator
    ) -> Bool {
        guard let until = UInt32(nonce.prefix(8), radix: 16), until >= Self.second(of: now) else {
            return false
        }
        // Compared without protection against timing: a guessed nonce would gain a client nothing but another 401.
        return nonce == text(until: until, client, authenticator)
    }

    /// The nonce: eight hexadecimal digits of the expiry, then the HMAC.
    private func text(
        until: UInt32, _ client: TransportAddress, _ authenticator: some MessageAuthenticator
    ) -> String {
        var message: [UInt8] = [client.transport.rawValue]
        message.append(bigEndian: until)
        message.append(bigEndian: client.ip.high)
        message.append(bigEndian: client.ip.low)
        message.append(bigEndian: client.port)
        let code = authenticator.hmacSHA1(key: key.exposed.span, message.span)
        let digits = String(until, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
            + Base64URL.encode(code.prefix(Self.codeLength))
    }

    private static func second(of time: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: time.nanoseconds / 1_000_000_000)
    }
}
