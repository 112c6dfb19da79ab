import Base
import Crypto
import HTTP
import Stage
import Testing

@testable import Gateway

@Suite struct `A token that the server issues` {
    private static let now = 1_800_000_000
    private let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "k1", secret: Secret(IssuedTokenSecret.bytes))
    ])
    private let talk: StreamID
    private let ann: ParticipantID

    init() throws {
        talk = try #require(StreamID("talk"))
        ann = try #require(ParticipantID("ann"))
    }

    private func makeAccess(_ authority: TokenAuthority? = nil) -> Access {
        Access(
            request: HTTPRequest(method: .post, path: "/"), authority: authority ?? self.authority,
            settings: GatewaySettings(), now: { Self.now })
    }

    private func makeToken(
        _ role: Role = .viewer, expires: Int = now + 60, until limit: Int = now + 90_000,
        link: Stage.Link? = nil
    ) -> Token {
        Token(
            keyID: "k1", subject: ann, name: "Ann", scope: .all, role: role,
            capabilities: [.moderate, .joinBackstage], tiers: ["gold", "silver"], expires: expires,
            renewableUntil: limit, link: link)
    }

    private func refusal(_ act: () throws -> Void) throws -> String? {
        do {
            try act()
            return nil
        } catch let problem as Problem {
            return "\(problem.status) \(problem.kind)"
        }
    }

    // MARK: In exchange for another

    /// Seconds from now: the end of the token shown and of its renewals, and the end of the new one.
    @Test(arguments: [
        (60, 90_000, 3_600), (3_599, 90_000, 3_600), (3_601, 90_000, 3_601), (7_200, 90_000, 7_200),
        (60, 3_600, 3_600), (60, 3_599, 3_599), (60, 600, 600), (60, 10, 60), (60, -10, 60),
        (-5, 90_000, 3_600), (-5, -1, -1),
    ])
    func `ends after an hour, but not before the one shown nor behind its limit`(
        shown: Int, limit: Int, expected: Int
    ) throws {
        let token = makeToken(expires: Self.now + shown, until: Self.now + limit)
        let issued = try makeAccess().renewed(token, for: nil, in: talk)
        #expect(issued.token.expires == Self.now + expected)
        // However often it is renewed, the limit stays.
        #expect(issued.token.renewableUntil == Self.now + limit)
    }

    /// An admin becomes the host of one stream: the page that gets this token needs no more.
    @Test(arguments: [(Role.admin, Role.host), (.host, .host), (.speaker, .speaker), (.viewer, .viewer)])
    func `a renewed token is for one stream, which need not exist yet`(role: Role, expected: Role) throws {
        let link = Stage.Link(makesSpeakers: true, issued: 5)
        let shown = makeToken(role, link: link)
        let issued = try makeAccess().renewed(shown, for: nil, in: talk, name: "Ann Lee")
        let read = try authority.verify(issued.text.exposed, now: Self.now)
        #expect(read.role == expected)
        #expect(read.scope == .one(talk))
        #expect(read.name == "Ann Lee")
        // What else it allows is carried over, and so is the link, by which it is revoked.
        #expect(read.subject == ann && read.capabilities == shown.capabilities && read.tiers == shown.tiers)
        #expect(read.link == link)
    }

    @Test func `keeps the name unless there is a new one`() throws {
        let issued = try makeAccess().renewed(makeToken(), for: nil, in: talk)
        #expect(issued.token.name == "Ann")
    }

    @Test func `a token is not renewed without a stream`() throws {
        let refused = try refusal { _ = try makeAccess().renewed(makeToken(), for: nil) }
        #expect(refused == "404 unknown-stream")
    }

    @Test func `no token is issued without a key`() throws {
        let access = makeAccess(TokenAuthority(keys: []))
        let renewing = try refusal { _ = try access.renewed(makeToken(), for: nil, in: talk) }
        let welcoming = try refusal { _ = try access.welcome(to: talk, by: nil, name: nil) }
        let inviting = try refusal {
            _ = try access.invitation(to: talk, as: .viewer, lifetime: 60, after: .init())
        }
        for refused in [renewing, welcoming, inviting] { #expect(refused == "503 unavailable") }
    }

    // MARK: For guests

    @Test func `gives each guest an identity of their own, which nobody takes for a host's`() throws {
        var subjects: Set<ParticipantID> = []
        for _ in 0..<100 {
            let issued = try makeAccess().welcome(to: talk, by: nil, name: "Bea")
            let read = try authority.verify(issued.text.exposed, now: Self.now)
            #expect(read.role == .viewer && read.scope == .one(talk) && read.capabilities.isEmpty)
            #expect(read.isGuests && read.link == nil && read.name == "Bea")
            subjects.insert(read.subject)
        }
        #expect(subjects.count == 100)
    }

    @Test(arguments: [Invitation.Role.speaker, .viewer])
    func `gives a guest with a link what the link says`(role: Invitation.Role) throws {
        // One that ends after any guest's token, and one that ends before.
        for lifetime in [2_592_000, 60] {
            let invitation = Invitation(
                stream: talk, role: role, issued: Self.now - 5, expires: Self.now + lifetime)
            let issued = try makeAccess().welcome(to: talk, by: invitation, name: nil)
            let read = try authority.verify(issued.text.exposed, now: Self.now)
            #expect(read.role == Role(role))
            let capabilities: Set<Capability> = role == .speaker ? [.joinBackstage] : []
            #expect(read.capabilities == capabilities)
            #expect(read.link == invitation.link && read.isGuests)
            // It does not end during a stream because the link does.
            #expect(read.expires == Self.now + Token.renewalSpan)
            let limit = Self.now + max(lifetime, Token.renewalSpan)
            #expect(read.renewableUntil == limit)
        }
    }

    // MARK: Links

    /// A link made in the second in which all were revoked must not be revoked with them.
    @Test(arguments: [Invitation.Role.speaker, .viewer])
    func `a new link is later than the latest revocation of its role`(role: Invitation.Role) throws {
        for milliseconds in [0, 1, 999, 1_000, 5_500] as [Int64] {
            let revoked = WallTime(milliseconds: Int64(Self.now) * 1_000 + milliseconds)
            var revocations = StageRecord.LinkRevocations()
            revocations.speakers = role == .speaker ? revoked : nil
            revocations.viewers = role == .viewer ? revoked : nil
            let (made, text) = try makeAccess().invitation(
                to: talk, as: role, lifetime: 60, after: revocations)
            #expect(Int64(made.issued) * 1_000 > revoked.milliseconds)
            #expect(Int64(made.issued - 1) * 1_000 <= revoked.milliseconds)
            // It lasts as long as was asked for all the same.
            #expect(made.expires == Self.now + 60)
            let read = try authority.verifyCredential(text.exposed, now: Self.now)
            #expect(read == .invitation(made))
            // Those of the other role were not revoked.
            let other = try makeAccess().invitation(
                to: talk, as: role == .speaker ? .viewer : .speaker, lifetime: 60, after: revocations)
            #expect(other.invitation.issued == Self.now)
        }
    }

    // MARK: Claims

    @Test func `comes back with all that it says, and with the same text each time`() throws {
        let link = Stage.Link(makesSpeakers: false, issued: Self.now - 9)
        var texts: Set<String> = []
        for _ in 0..<20 {
            let minted = authority.mint(
                subject: ann, name: "Ann", scope: .one(talk), role: .speaker,
                capabilities: Set(Capability.allCases), tiers: ["a", "b", "c", "d"], issuedAt: Self.now,
                expires: Self.now + 60, renewableUntil: Self.now + 90, link: link)
            texts.insert(try #require(minted).exposed)
        }
        #expect(texts.count == 1)
        let read = try authority.verify(try #require(texts.first), now: Self.now)
        let expected = Token(
            keyID: "k1", subject: ann, name: "Ann", scope: .one(talk), role: .speaker,
            capabilities: Set(Capability.allCases), tiers: ["a", "b", "c", "d"], expires: Self.now + 60,
            renewableUntil: Self.now + 90, link: link)
        #expect(read == expected)
    }

    /// A token of exactly these claims, as another program signs it.
    private func sign(_ claims: String) -> String {
        let head = Base64URL.encode(#"{"alg":"HS256","typ":"JWT"}"#.utf8)
        let signed = head + "." + Base64URL.encode(claims.utf8)
        let key = IssuedTokenSecret.bytes
        return signed + "." + Base64URL.encode(HMAC.sha256(key: key.span, Array(signed.utf8).span))
    }

    private static let claims = #""iss":"k1","sub":"ann","stream":"talk","role":"viewer","exp":1800000060"#

    @Test func `of another program may say more than this server knows`() throws {
        let more = #""capabilities":["fly","moderate",""],"tiers":["gold","a b","","gold"],"aud":["x"]"#
        let read = try authority.verify(sign("{\(Self.claims),\(more)}"), now: Self.now)
        #expect(read.capabilities == [.moderate])
        #expect(read.tiers == ["gold"])
        #expect(read.renewableUntil == 1_800_000_060 + Token.renewalSpan)
    }

    @Test func `a token has a bounded number of tiers, without malformed ones`() throws {
        let names = (0..<40).map { number in "\"t\(number)\"" }
        let bad = Array(repeating: "\"not a name\"", count: 30)
        let list = (bad + names).joined(separator: ",")
        let read = try authority.verify(sign("{\(Self.claims),\"tiers\":[\(list)]}"), now: Self.now)
        let expected = Set((0..<Token.tierLimit).map { number in "t\(number)" })
        #expect(read.tiers == expected)
    }

    /// A host revokes keys by when they were issued: one that does not say it could never be revoked.
    @Test func `is no stream key unless it says when it was issued`() throws {
        let claims = Self.claims.replacing("viewer", with: "host")
        for wrong in ["", #","iat":1e300"#, #","iat":null"#] {
            #expect(throws: TokenRefusal.badClaim("iat")) {
                try authority.verifyIngestKey(sign("{\(claims),\"use\":\"ingest\"\(wrong)}"), now: Self.now)
            }
        }
        let key = try authority.verifyIngestKey(
            sign("{\(claims),\"use\":\"ingest\",\"iat\":1799999999.5}"), now: Self.now)
        #expect(key.issued == 1_799_999_999)
        #expect(throws: TokenRefusal.badClaim("use")) {
            try authority.verifyIngestKey(sign("{\(claims),\"use\":\"other\"}"), now: Self.now)
        }
    }

    /// SRT's limit of a stream ID.
    @Test func `fits a stream ID of SRT, or is none there`() throws {
        let room = 512 - "publish:talk:".utf8.count
        let longest = IngestKey.streamID(talk, Secret(String(repeating: "k", count: room)))
        #expect(longest?.utf8.count == 512)
        let longer = IngestKey.streamID(talk, Secret(String(repeating: "k", count: room + 1)))
        #expect(longer == nil)
    }

    /// What a browser does not send, no server can log.
    @Test func `a page's path has the token only in its fragment`() {
        let token = Secret("a.b.c")
        for isOnStage in [false, true] {
            for scope in [Token.Scope.all, .one(talk)] {
                let path = PageLink.path(to: scope, isOnStage: isOnStage, token: token)
                let parts = path.split(separator: "#", omittingEmptySubsequences: false)
                #expect(parts.count == 2 && parts.last == "token=a.b.c")
                #expect(parts.first?.contains("a.b.c") == false)
            }
        }
    }
}

/// The key of these tests.
private enum IssuedTokenSecret {
    static let bytes = [UInt8](repeating: 7, count: 32)
}
