import Base
import Foundation

/// A JSON Web Token with HMAC-SHA256, in the compact form: header, claims and signature, separated by dots.
///
/// It supports a single algorithm, so no token can request a weaker one. Callers interpret the claims.
/// - Source: RFC 7519 §7, RFC 7515 §5 and §7.1 (compact form), RFC 7518 §3.2 (HS256), RFC 8725 §3.1 (fixed algorithm).
package struct JSONWebToken: Sendable {
    /// Why a text cannot be a valid token, whatever the key.
    package enum Refusal: Error, Equatable, Sendable {
        /// Too long, not in compact form, or with claims that cannot be decoded as the requested type.
        case malformed
        /// Not signed, or not by HS256.
        case wrongAlgorithm
    }

    /// Most bytes of a token; far more than any token made for this server needs.
    package static let maximumLength = 4_096

    private struct Header: Decodable {
        let alg: String
    }

    private let payload: [UInt8]
    /// Header and claims exactly as received, since the signature covers these bytes.
    private let signingInput: [UInt8]
    private let signature: [UInt8]

    /// Parses a token without verifying its signature.
    package init(parsing text: String) throws(Refusal) {
        guard text.utf8.count <= Self.maximumLength else { throw .malformed }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64URL.decode(parts[0]),
            let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2]),
            let header = try? JSONDecoder().decode(Header.self, from: Data(head))
        else { throw .malformed }
        guard header.alg == "HS256" else { throw .wrongAlgorithm }
        self.payload = payload
        self.signature = signature
        signingInput = Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count))
    }

    /// The claims, which must not be trusted before `isSigned(with:)` has returned true.
    package func claims<Claims: Decodable>(_ type: Claims.Type) throws(Refusal) -> Claims {
        guard let claims = try? JSONDecoder().decode(type, from: Data(payload)) else { throw .malformed }
        return claims
    }

    /// Whether the signature was made with `key`; compared in constant time.
    package func isSigned(with key: Span<UInt8>) -> Bool {
        let expected = HMAC.sha256(key: key, signingInput.span)
        return ConstantTime.areEqual(expected.span, signature.span)
    }

    /// Creates a signed token; equal claims give equal tokens.
    /// - Returns: nil if the claims cannot be encoded as JSON, such as an infinite number.
    package static func sign(_ claims: some Encodable, with key: Span<UInt8>) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let payload = try? encoder.encode(claims) else { return nil }
        let head = Base64URL.encode(#"{"alg":"HS256","typ":"JWT"}"#.utf8)
        let signed = "\(head).\(Base64URL.encode(payload))"
        return "\(signed).\(Base64URL.encode(HMAC.sha256(key: key, Array(signed.utf8).span)))"
    }
}
