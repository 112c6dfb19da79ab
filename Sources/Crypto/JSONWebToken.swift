import Base
import Foundation

/// A JSON Web Token with an HMAC by SHA-256, in the compact form: header, claims and signature between dots.
///
/// It has one algorithm, so that no token can ask for a weaker one. What its claims mean is for those who read them.
/// - Source: RFC 7519 §7, RFC 7515 §5 and §7.1 (compact form), RFC 7518 §3.2 (HS256), RFC 8725 §3.1 (fixed algorithm).
package struct JSONWebToken: Sendable {
    /// Why a text cannot be a good token, whatever key signed it.
    package enum Refusal: Error, Equatable, Sendable {
        /// Too long, not of this form, or with claims of other types than those that were asked for.
        case malformed
        /// Signed in another way than by HS256, or not at all.
        case wrongAlgorithm
    }

    /// In bytes; far more than any token that was made for us.
    package static let maximumLength = 4_096

    private struct Header: Decodable {
        let alg: String
    }

    private let payload: [UInt8]
    /// Header and claims as they came.
    private let signingInput: [UInt8]
    private let signature: [UInt8]

    /// Takes a token apart; its signature is still to be checked.
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

    /// What it claims, which counts for nothing before `isSigned(with:)` said yes.
    package func claims<Claims: Decodable>(_ type: Claims.Type) throws(Refusal) -> Claims {
        guard let claims = try? JSONDecoder().decode(type, from: Data(payload)) else { throw .malformed }
        return claims
    }

    /// Whether whoever made it has the key; takes as long wherever the signature differs.
    package func isSigned(with key: Span<UInt8>) -> Bool {
        let expected = HMAC.sha256(key: key, signingInput.span)
        return ConstantTime.areEqual(expected.span, signature.span)
    }

    /// Signs claims; equal ones give equal tokens.
    /// - Returns: nil for claims that JSON cannot say, such as a number without end.
    package static func sign(_ claims: some Encodable, with key: Span<UInt8>) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let payload = try? encoder.encode(claims) else { return nil }
        let head = Base64URL.encode(#"{"alg":"HS256","typ":"JWT"}"#.utf8)
        let signed = "\(head).\(Base64URL.encode(payload))"
        return "\(signed).\(Base64URL.encode(HMAC.sha256(key: key, Array(signed.utf8).span)))"
    }
}
