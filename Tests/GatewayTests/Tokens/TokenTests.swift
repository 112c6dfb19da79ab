import Base
import Crypto
import Stage
import TestSupport
import Testing

@testable import Gateway

@Suite struct TokenTests {
    private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    private static let now = 1_800_000_000
    private let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "k1", secret: Secret(TokenTests.secret)),
        TokenAuthority.Key(id: "k2", secret: Secret(Array("another secret".utf8))),
    ])

    /// A token of exactly these parts, signed by hand.
    private func token(
        header: String = #"{"alg":"HS256","typ":"JWT"}"#, _ claims: String,
        secret: [UInt8] = TokenTests.secret
    ) -> String {
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8)
        return signed + "." + Base64URL.encode(HMAC.sha256(key: secret.span, Array(signed.utf8).span))
    }

    private func refusal(_ text: String) -> TokenRefusal? {
        do throws(TokenRefusal) {
            _ = try authority.verify(text, now: Self.now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `are good as long as a key is accepted that signed them, also of two with one name`() throws {
        let (old, new) = (Self.secret, Array("fedcba9876543210fedcba9876543210".utf8))
        let keys = SigningKeys([TokenAuthority.Key(id: "main", secret: Secret(old))])
        let authority = TokenAuthority(keys)
        let bob = try #require(ParticipantID("bob"))
        func minted() throws -> String {
            try #require(
                authority.mint(
                    subject: bob, name: nil, scope: .all, role: .viewer, issuedAt: Self.now,
                    expires: Self.now + 60)
            ).exposed
        }
        let before = try minted()
        keys.replace(with: [new, old].map { TokenAuthority.Key(id: "main", secret: Secret($0)) })
        let after = try minted()
        for token in [before, after] { #expect(try authority.verify(token, now: Self.now).subject == bob) }
        keys.replace(with: [TokenAuthority.Key(id: "main", secret: Secret(new))])
        #expect(throws: TokenRefusal.badSignature) { try authority.verify(before, now: Self.now) }
        #expect(try authority.verify(after, now: Self.now).subject == bob)
    }

    @Test func `say by which link their bearer came`() throws {
        let claims = #""iss":"k1","sub":"bob","stream":"s1","role":"viewer","exp":1800000010"#
        #expect(try authority.verify(token("{\(claims)}"), now: Self.now).link == nil)
        let invited = "{\(claims),\"invited\":1799999990,\"invited_as\":\"speaker\"}"
        #expect(
            try authority.verify(token(invited), now: Self.now).link
                == Stage.Link(makesSpeakers: true, issued: 1_799_999_990))
        for (wrong, claim) in [
            (#""invited":1799999990"#, "invited_as"), (#""invited_as":"viewer""#, "invited"),
            (#""invited":1,"invited_as":"host""#, "invited_as"),
        ] { #expect(refusal(token("{\(claims),\(wrong)}")) == .badClaim(claim)) }
    }

    @Test func `a credential with a use claim is no token`() throws {
        let claims = #""iss":"k1","stream":"s1","role":"viewer","iat":1799999990,"exp":1800000010"#
        let invitation = token("{\(claims),\"use\":\"invitation\"}")
        #expect(refusal(invitation) == .invitation)
        #expect(refusal(token("{\(claims),\"use\":\"invitation\",\"sub\":\"ann\"}")) == .invitation)
        #expect(refusal(token("{\(claims),\"use\":\"other\",\"sub\":\"ann\"}")) == .badClaim("use"))
        let stream = try #require(StreamID("s1"))
        #expect(
            try authority.verifyCredential(invitation, now: Self.now)
                == .invitation(
                    Invitation(stream: stream, role: .viewer, issued: 1_799_999_990, expires: 1_800_000_010)))
        for (wrong, claim) in [
            (claims.replacing("viewer", with: "host"), "role"), (claims.replacing("s1", with: "*"), "stream"),
            (claims.replacing("iat", with: "jat"), "iat"), (claims.replacing("exp", with: "fxp"), "exp"),
        ] {
            #expect(throws: TokenRefusal.badClaim(claim)) {
                try authority.verifyCredential(token("{\(wrong),\"use\":\"invitation\"}"), now: Self.now)
            }
        }
        let ours = try #require(
            authority.mint(
                Invitation(stream: stream, role: .speaker, issued: Self.now, expires: Self.now + 1)))
        #expect(refusal(ours.exposed) == .invitation)
    }

    /// RFC 7515 appendix A.1: a JWS whose key and signature are given.
    @Test func `are signed as the RFC's example is`() throws {
        let key = try #require(
            Base64URL.decode(
                "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow".utf8)
        )
        let signed =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leG"
            + "FtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let text = signed + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let authority = TokenAuthority(keys: [TokenAuthority.Key(id: "joe", secret: Secret(key))])
        // The signature is good; what it signs is no token of ours.
        #expect(throws: TokenRefusal.expired) { try authority.verify(text, now: Self.now) }
        #expect(throws: TokenRefusal.badClaim("sub")) { try authority.verify(text, now: 1_300_819_000) }
    }

    @Test func `say who may do what`() throws {
        let text = token(
            #"{"iss":"k1","sub":"ann","name":"Ann","stream":"s1","role":"host","nbf":1799999999,"exp":1800000100}"#
        )
        let token = try authority.verify(text, now: Self.now)
        let stream = try #require(StreamID("s1"))
        let other = try #require(StreamID("s2"))
        #expect(token.subject.description == "ann")
        #expect(token.name == "Ann")
        #expect(token.mayPublish(to: stream))
        #expect(!token.mayPublish(to: other))
        #expect(token.mayPlay(stream))
        #expect(!token.mayPlay(other))
    }

    @Test(arguments: [(Role.host, true), (.speaker, true), (.viewer, false), (.admin, true)])
    func `let some roles publish`(_ role: Role, _ may: Bool) throws {
        let stream = try #require(StreamID("s1"))
        let subject = try #require(ParticipantID("ann"))
        let token = Token(keyID: "k", subject: subject, name: nil, scope: .all, role: role, expires: 0)
        #expect(token.mayPublish(to: stream) == may)
        #expect(token.mayPlay(stream))
    }

    @Test func `come back as they were minted`() throws {
        let subject = try #require(ParticipantID("Ünï \"quoted\""))
        let text = try #require(
            authority.mint(
                subject: subject, name: "Ann / Bob", scope: .all, role: .speaker, issuedAt: Self.now,
                expires: Self.now + 60))
        let token = try authority.verify(text.exposed, now: Self.now)
        #expect(token.subject == subject)
        #expect(token.name == "Ann / Bob")
        #expect(token.scope == .all)
        #expect(token.role == .speaker)
        #expect(token.expires == Self.now + 60)
    }

    @Test(arguments: [
        (#"{"alg":"none"}"#, TokenRefusal.wrongAlgorithm), (#"{"alg":"None"}"#, .wrongAlgorithm),
        (#"{"alg":"HS384"}"#, .wrongAlgorithm), (#"{"alg":"RS256"}"#, .wrongAlgorithm),
        (#"{"typ":"JWT"}"#, .malformed), ("[]", .malformed), ("", .malformed),
        (#"{"alg":["HS256"]}"#, .malformed),
    ])
    func `need the one algorithm`(_ header: String, _ expected: TokenRefusal) {
        let claims = #"{"iss":"k1","sub":"ann","stream":"*","role":"admin","exp":1900000000}"#
        #expect(refusal(token(header: header, claims)) == expected)
        // Unsigned, as the attack has it.
        let bare = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8) + "."
        #expect(refusal(bare) == expected)
    }

    @Test(arguments: [
        (#"{"sub":"a","stream":"*","role":"host","exp":1900000000}"#, TokenRefusal.malformed),
        (#"{"iss":"k3","sub":"a","stream":"*","role":"host","exp":1900000000}"#, .unknownKey),
        (#"{"iss":"k2","sub":"a","stream":"*","role":"host","exp":1900000000}"#, .badSignature),
        (#"{"iss":"k1","sub":"a","stream":"*","role":"host"}"#, .badClaim("exp")),
        (#"{"iss":"k1","sub":"a","stream":"*","role":"host","exp":1e300}"#, .badClaim("exp")),
        (#"{"iss":"k1","sub":"a","stream":"*","role":"host","exp":"1900000000"}"#, .malformed),
        (#"{"iss":"k1","sub":"a","stream":"*","role":"host","exp":1799999990}"#, .expired),
        (
            #"{"iss":"k1","sub":"a","stream":"*","role":"host","exp":1900000000,"nbf":1800000011}"#,
            .notYetValid
        ),
        (#"{"iss":"k1","stream":"*","role":"host","exp":1900000000}"#, .badClaim("sub")),
        (#"{"iss":"k1","sub":"","stream":"*","role":"host","exp":1900000000}"#, .badClaim("sub")),
        (#"{"iss":"k1","sub":"a\u0000","stream":"*","role":"host","exp":1900000000}"#, .badClaim("sub")),
        (#"{"iss":"k1","sub":"a","stream":"*","role":"king","exp":1900000000}"#, .badClaim("role")),
        (#"{"iss":"k1","sub":"a","stream":"../x","role":"host","exp":1900000000}"#, .badClaim("stream")),
        (#"{"iss":"k1","sub":"a","role":"host","exp":1900000000}"#, .badClaim("stream")),
        (
            #"{"iss":"k1","sub":"a","name":"\n","stream":"*","role":"host","exp":1900000000}"#,
            .badClaim("name")
        ),
        ("no json", .malformed),
    ])
    func `are refused for a bad claim`(_ claims: String, _ expected: TokenRefusal) {
        #expect(refusal(token(claims)) == expected)
    }

    @Test func `allow clocks to differ by ten seconds`() {
        let claims = #"{"iss":"k1","sub":"a","stream":"*","role":"host","#
        #expect(refusal(token(claims + #""exp":1799999991}"#)) == nil)
        #expect(refusal(token(claims + #""exp":1900000000,"nbf":1800000010}"#)) == nil)
    }

    @Test func `may be expired where a session was granted already`() throws {
        let text = token(#"{"iss":"k1","sub":"a","stream":"*","role":"host","exp":1700000000}"#)
        #expect(try authority.verify(text, now: Self.now, acceptsExpired: true).role == .host)
    }

    @Test func `are refused after any change of one character`() {
        let good = Array(
            token(#"{"iss":"k1","sub":"ann","stream":"*","role":"viewer","exp":1900000000}"#).utf8)
        #expect(refusal(String(decoding: good, as: UTF8.self)) == nil)
        for index in good.indices {
            var changed = good
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(refusal(String(decoding: changed, as: UTF8.self)) != nil)
        }
    }

    @Test func `are refused when cut anywhere`() {
        let good = token(#"{"iss":"k1","sub":"ann","stream":"*","role":"viewer","exp":1900000000}"#)
        for length in 0..<good.count { #expect(refusal(String(good.prefix(length))) != nil) }
        #expect(refusal(good + ".") == .malformed)
        #expect(refusal(good + "A") != nil)
    }

    @Test func `are refused when huge`() {
        let name = String(repeating: "x", count: 100_000)
        #expect(refusal(token(#"{"iss":"k1","name":"\#(name)"}"#)) == .malformed)
        #expect(refusal(String(repeating: ".", count: 4_000)) == .malformed)
        #expect(refusal(token(String(repeating: "[", count: 2_900))) == .malformed)
    }

    @Test func `of random characters do no harm`() {
        var random = SeededGenerator(seed: 7)
        let alphabet = Array("ABCabc019-_.{}\":,[]eyJ".utf8)
        for _ in 0..<5_000 {
            let length = Int.random(in: 0...200, using: &random)
            let text = (0..<length).map { _ in alphabet.randomElement(using: &random) ?? 0x41 }
            #expect(refusal(String(decoding: text, as: UTF8.self)) != nil)
        }
    }
}
