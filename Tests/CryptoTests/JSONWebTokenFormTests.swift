import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct `The form of a JSON Web Token` {
    private struct Claims: Codable, Equatable {
        var iss: String
        var exp: Double
    }

    private static let key = Array("0123456789abcdef0123456789abcdef".utf8)
    private static let head = Base64URL.encode(#"{"alg":"HS256"}"#.utf8)
    private static let claims = Base64URL.encode(#"{"exp":1,"iss":"joe"}"#.utf8)

    /// A token whose signature is good, whatever its parts are.
    private static func signed(_ head: String, _ claims: String) -> String {
        let input = Array("\(head).\(claims)".utf8)
        return "\(head).\(claims).\(Base64URL.encode(HMAC.sha256(key: key.span, input.span)))"
    }

    private func refusal(_ text: String) -> JSONWebToken.Refusal? {
        do throws(JSONWebToken.Refusal) {
            _ = try JSONWebToken(parsing: text).claims(Claims.self)
            return nil
        } catch {
            return error
        }
    }

    @Test func `is that of others, who write its parts in their way`() throws {
        let head = Base64URL.encode(#" { "typ" : "JWT", "kid":"7", "alg" : "HS256" } "#.utf8)
        let claims = Base64URL.encode(#"{ "iss":"joe", "nbf":0, "exp":1.0 }"#.utf8)
        let token = try JSONWebToken(parsing: Self.signed(head, claims))
        let isGood = token.isSigned(with: Self.key.span)
        #expect(isGood)
        #expect(try token.claims(Claims.self) == Claims(iss: "joe", exp: 1))
    }

    @Test(arguments: [
        "{}", "[]", "\"HS256\"", "null", "", "{\"alg\":256}", "{\"alg\":null}", "{\"ALG\":\"HS256\"}",
        "{\"alg\":\"HS256\"", "{\"alg\":[\"HS256\"]}",
    ])
    func `has a head that is an object with an algorithm`(head: String) {
        let text = Self.signed(Base64URL.encode(head.utf8), Self.claims)
        #expect(refusal(text) == .malformed)
    }

    @Test(arguments: [
        "{}", "[]", "", "{\"iss\":\"joe\"}", "{\"exp\":1,\"iss\":7}", "{\"exp\":\"1\",\"iss\":\"joe\"}",
        "{\"exp\":1,\"iss\":\"joe\"",
    ])
    func `has claims of the kind that is asked for, however good its signature is`(claims: String) throws {
        let text = Self.signed(Self.head, Base64URL.encode(claims.utf8))
        #expect(refusal(text) == .malformed)
        // The signature is a matter of its own.
        let token = try JSONWebToken(parsing: text)
        let isGood = token.isSigned(with: Self.key.span)
        #expect(isGood)
    }

    @Test(arguments: ["=", "==", " ", "\n", "+", "/", ".", "é", "\u{0}"])
    func `has nothing else in it or behind it`(extra: String) {
        let text = Self.signed(Self.head, Self.claims)
        #expect(refusal(text) == nil)
        #expect(refusal(text + extra) == .malformed)
        #expect(refusal(extra + text) == .malformed)
        let parts = text.split(separator: ".").map(String.init)
        #expect(refusal("\(parts[0]).\(parts[1])\(extra).\(parts[2])") == .malformed)
    }

    @Test func `has at most the bytes that are allowed`() {
        let start = "\(Self.head).\(Self.claims)."
        let rest = JSONWebToken.maximumLength - start.utf8.count
        // Of four characters three bytes come, so one length of five is possible whatever the start is.
        for extra in 1...4 {
            #expect(refusal(start + String(repeating: "A", count: rest + extra)) == .malformed)
        }
        let longest = (0...1).contains { less in
            refusal(start + String(repeating: "A", count: rest - less)) == nil
        }
        #expect(longest)
    }

    @Test func `has a signature of one length, made with the whole key`() throws {
        let text = Self.signed(Self.head, Self.claims)
        for changed in [text + "A", String(text.dropLast(3)), "\(Self.head).\(Self.claims)."] {
            guard let token = try? JSONWebToken(parsing: changed) else { continue }
            let isGood = token.isSigned(with: Self.key.span)
            #expect(!isGood, "\(changed)")
        }
        let token = try JSONWebToken(parsing: text)
        var other = Self.key
        other[other.count - 1] ^= 1
        let nothing: [UInt8] = []
        let (isOthers, isNobodys) = (token.isSigned(with: other.span), token.isSigned(with: nothing.span))
        #expect(!isOthers && !isNobodys)
    }

    @Test func `is none for claims that JSON cannot say`() {
        let endless = JSONWebToken.sign(Claims(iss: "joe", exp: .infinity), with: Self.key.span)
        let nothing = JSONWebToken.sign(Claims(iss: "joe", exp: .nan), with: Self.key.span)
        #expect(endless == nil && nothing == nil)
    }

    @Test func `carries any text in its claims, unchanged`() throws {
        for name in ["", "a/b", "\"\\\u{1}", "é😀", String(repeating: "x", count: 2_000)] {
            let claims = Claims(iss: name, exp: -0.5)
            let text = JSONWebToken.sign(claims, with: Self.key.span)
            let token = try JSONWebToken(parsing: try #require(text))
            let isGood = token.isSigned(with: Self.key.span)
            #expect(isGood)
            #expect(try token.claims(Claims.self) == claims)
        }
    }
}
