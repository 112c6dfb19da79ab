import Base
import Wire

/// What a relay's passwords are made and checked by.
package protocol TURNAuthenticator: MessageAuthenticator {
    /// - Returns: 16 bytes (RFC 1321), or nil where the library has no such digest: one that is set to approved
    ///   algorithms.
    func md5(_ message: Span<UInt8>) -> [UInt8]?
}

/// The passwords that a relay gives out, without remembering any.
///
/// A user name says until when it is good; its password is a code of it that only we can make.
/// - Source: draft-uberti-behave-turn-rest-00 §2.2; RFC 8489 §9.2 (long-term credentials).
package struct TURNCredentials: Sendable {
    private let secret: Secret<[UInt8]>

    /// - Parameter secret: with which the passwords were made.
    package init(secret: Secret<[UInt8]>) {
        self.secret = secret
    }

    /// Seconds since 1970 until which a user name is good; nil for what we never gave out.
    static func expiry(of username: String) -> Int? {
        let parts = username.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let digits = parts.first, digits.utf8.allSatisfy(Self.isDigit) else {
            return nil
        }
        return Int(digits)
    }

    /// With what a client who knows the password signs; nil where it cannot be made.
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

/// Nonces that need not be remembered: each says until when it is good, and is good for one client's address alone.
///
/// - Source: RFC 8489 §9.2.1; RFC 8656 §5 (at least once an hour another one).
struct TURNNonces: Sendable {
    static let lifetime = Duration.seconds(3_600)
    private static let codeLength = 9

    private let key: Secret<[UInt8]>

    init(key: Secret<[UInt8]>) {
        self.key = key
    }

    func make(
        for client: TransportAddress, at now: MonotonicTime, by authenticator: some MessageAuthenticator
    ) -> String {
        text(until: Self.second(of: now + Self.lifetime), client, authenticator)
    }

    func isGood(
        _ nonce: String, of client: TransportAddress, at now: MonotonicTime,
        by authenticator: some MessageAuthenticator
    ) -> Bool {
        guard let until = UInt32(nonce.prefix(8), radix: 16), until >= Self.second(of: now) else {
            return false
        }
        // No secret: whoever guesses has gained nothing but an answer with 401.
        return nonce == text(until: until, client, authenticator)
    }

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
