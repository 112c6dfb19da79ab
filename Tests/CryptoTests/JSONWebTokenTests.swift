import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct `A JSON Web Token` {
    private struct Claims: Codable, Equatable {
        var iss: String
        var exp: Double
    }

    private static let key = Array("0123456789abcdef0123456789abcdef".utf8)
    private static let claims = Claims(iss: "joe", exp: 1_300_819_380)

    private func refusal(_ text: String) -> JSONWebToken.Refusal? {
        do throws(JSONWebToken.Refusal) {
            _ = try JSONWebToken(parsing: text).claims(Claims.self)
            return nil
        } catch {
            return error
        }
    }

    private func signed() throws -> String {
        let text = JSONWebToken.sign(Self.claims, with: Self.key.span)
        return try #require(text)
    }

    /// RFC 7515 appendix A.1, with its key.
    @Test func `is checked as the RFC's example is`() throws {
        let key = try #require(
            Base64URL.decode(
                "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow".utf8)
        )
        let token = try JSONWebToken(
            parsing:
                "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
                + "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
                + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        let (isGood, isOthers) = (token.isSigned(with: key.span), token.isSigned(with: Self.key.span))
        #expect(isGood && !isOthers)
        #expect(try token.claims(Claims.self) == Self.claims)
    }

    @Test func `comes back as it was signed`() throws {
        let token = try JSONWebToken(parsing: try signed())
        let isGood = token.isSigned(with: Self.key.span)
        #expect(isGood)
        #expect(try token.claims(Claims.self) == Self.claims)
    }

    @Test func `is good under no other claims`() throws {
        let parts = try signed().split(separator: ".").map(String.init)
        let other = Base64URL.encode(#"{"exp":1300819381,"iss":"joe"}"#.utf8)
        let token = try JSONWebToken(parsing: "\(parts[0]).\(other).\(parts[2])")
        let isGood = token.isSigned(with: Self.key.span)
        #expect(!isGood)
    }

    @Test func `is refused when it is cut short`() throws {
        let text = try signed()
        for length in 0..<text.count {
            guard let token = try? JSONWebToken(parsing: String(text.prefix(length))) else { continue }
            let isGood = token.isSigned(with: Self.key.span)
            #expect(!isGood, "\(length) of \(text.count)")
        }
        #expect(refusal("") == .malformed)
        #expect(refusal(text + ".") == .malformed)
        #expect(refusal(text + String(repeating: "A", count: JSONWebToken.maximumLength)) == .malformed)
    }

    @Test(arguments: ["none", "HS512", "RS256", "hs256", ""])
    func `has no other algorithm`(_ algorithm: String) throws {
        let parts = try signed().split(separator: ".").map(String.init)
        let head = Base64URL.encode(#"{"alg":"\#(algorithm)"}"#.utf8)
        #expect(refusal("\(head).\(parts[1]).\(parts[2])") == .wrongAlgorithm)
    }

    @Test func `survives random texts`() {
        var random = SeededGenerator(seed: 7)
        let pieces = [".", "eyJhbGciOiJIUzI1NiJ9", "e30", "A", "-", "=", "é", "\u{0}", "Zm9v"]
        for _ in 0..<5_000 {
            let text = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            #expect(refusal(text) != nil)
        }
    }
}
