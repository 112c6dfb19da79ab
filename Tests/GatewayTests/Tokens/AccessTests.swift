import Base
import HTTP
import Stage
import Testing

@testable import Gateway

@Suite struct `Access to a stream` {
    private static let now = 1_800_000_000
    private let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "k1", secret: Secret([UInt8](repeating: 7, count: 32)))
    ])
    private let talk: StreamID

    init() throws { talk = try #require(StreamID("talk")) }

    private func mint(
        _ subject: String = "ann", _ role: Role = .viewer, stream: String = "talk", expires: Int = now + 60,
        capabilities: Set<Capability> = []
    ) throws -> String {
        let id = try #require(ParticipantID(subject))
        let scope = try #require(Token.Scope(stream, for: role))
        let text = authority.mint(
            subject: id, name: nil, scope: scope, role: role, capabilities: capabilities, issuedAt: Self.now,
            expires: expires)
        return try #require(text).exposed
    }

    private func makeAccess(
        _ field: String?, query: String? = nil, viewers: GatewaySettings.Viewers = .token,
        from ip: IPAddress = .loopback
    ) -> Access {
        var request = HTTPRequest(
            method: .get, path: "/", headers: ["Host": "localhost:8080"],
            remoteAddress: TransportAddress(ip: ip, port: 1))
        if let field { request.headers.add("Authorization", field) }
        if let query { request.query = [HTTPRequest.QueryItem(name: "access_token", value: query)] }
        var settings = GatewaySettings()
        settings.viewers = viewers
        return Access(request: request, authority: authority, settings: settings, now: { Self.now })
    }

    /// The status and kind of the problem; nil if there is none.
    private func refusal(_ act: () throws -> Void) throws -> String? {
        do {
            try act()
            return nil
        } catch let problem as Problem {
            return "\(problem.status) \(problem.kind)"
        }
    }

    @Test(arguments: ["Bearer ", "bearer ", "BEARER ", "Bearer   ", " \tBearer "])
    func `needs the scheme Bearer, in any case (RFC 9110 §11.1)`(scheme: String) throws {
        let text = try mint()
        for field in [scheme + text, scheme + text + " \t"] {
            let token = try makeAccess(field).token()
            #expect(token?.subject.description == "ann")
        }
    }

    /// The token in the query would otherwise count where the field was meant to.
    @Test(arguments: ["", "Bearer", "Bearer ", "Basic YW5uOnB3", "Bearer:x", "x"])
    func `the query's token is ignored if the field has another scheme`(field: String) throws {
        let text = try mint()
        let refused = try refusal { _ = try makeAccess(field, query: text).token() }
        #expect(refused == "401 token-invalid")
        let bare = try refusal { _ = try makeAccess(text).token() }
        #expect(bare == "401 token-invalid")
    }

    @Test func `the field's token is preferred to the query's`() throws {
        let (ann, bob) = (try mint("ann"), try mint("bob"))
        let both = try makeAccess("Bearer \(bob)", query: ann).token()
        #expect(both?.subject.description == "bob")
        let query = try makeAccess(nil, query: ann).token()
        #expect(query?.subject.description == "ann")
        let none = try makeAccess(nil).token()
        #expect(none == nil)
        // A bad one is no reason to take the other.
        let refused = try refusal { _ = try makeAccess("Bearer x.y.z", query: ann).token() }
        #expect(refused == "401 token-invalid")
    }

    @Test func `an expired token gives access only to existing sessions`() throws {
        let old = try mint("ann", .host, expires: Self.now - 100)
        let gate = makeAccess("Bearer \(old)")
        let publishing = try refusal { _ = try gate.requirePublisher(of: talk) }
        let acting = try refusal { _ = try gate.requireParticipant(of: talk) }
        let watching = try refusal { _ = try gate.requireViewer(of: talk) }
        for refused in [publishing, acting, watching] { #expect(refused == "401 token-expired") }
        let publisher = try gate.requirePublisher(of: talk, acceptsExpired: true)
        let participant = try gate.requireParticipant(of: talk, acceptsExpired: true)
        let viewer = try gate.requireViewer(of: talk, acceptsExpired: true)
        #expect(publisher == participant && viewer == participant)
        // It is good for its own stream alone all the same.
        let other = try #require(StreamID("other"))
        let elsewhere = try refusal { _ = try gate.requireParticipant(of: other, acceptsExpired: true) }
        #expect(elsewhere == "403 other-stream")
    }

    @Test(
        arguments: [
            (Role.host, "talk", nil), (.speaker, "talk", nil), (.admin, "other", nil), (.host, "*", nil),
            (.viewer, "talk", "403 not-allowed"), (.viewer, "*", "403 not-allowed"),
            (.host, "other", "403 not-allowed"), (.speaker, "other", "403 not-allowed"),
        ] as [(Role, String, String?)])
    func `hosts and speakers of the stream may publish`(
        role: Role, stream: String, expected: String?
    ) throws {
        let text = try mint("ann", role, stream: stream)
        let refused = try refusal { _ = try makeAccess("Bearer \(text)").requirePublisher(of: talk) }
        #expect(refused == expected)
    }

    @Test(
        arguments: [
            (Role.viewer, "talk", nil), (.viewer, "*", nil), (.admin, "other", nil),
            (.viewer, "other", "403 other-stream"), (.host, "other", "403 other-stream"),
        ] as [(Role, String, String?)])
    func `a token for the stream may watch it`(role: Role, stream: String, expected: String?) throws {
        let text = try mint("ann", role, stream: stream)
        let refused = try refusal { _ = try makeAccess("Bearer \(text)").requireViewer(of: talk) }
        #expect(refused == expected)
        // To act needs the same even where everyone may watch.
        let open = makeAccess("Bearer \(text)", viewers: .everyone)
        let acting = try refusal { _ = try open.requireParticipant(of: talk) }
        #expect(acting == expected)
        // Of a stream that everyone may watch a token for another one takes nothing away.
        let watching = try refusal { _ = try open.requireViewer(of: talk) }
        #expect(watching == nil)
    }

    @Test func `without any token is to watch what is public`() throws {
        let viewer = try makeAccess(nil, viewers: .everyone).requireViewer(of: talk)
        #expect(viewer == nil)
        let closed = try refusal { _ = try makeAccess(nil).requireViewer(of: talk) }
        #expect(closed == "401 token-missing")
        let acting = try refusal { _ = try makeAccess(nil, viewers: .everyone).requireParticipant(of: talk) }
        #expect(acting == "401 token-missing")
        let stranger = makeAccess(nil, viewers: .everyone)
        let publishing = try refusal { _ = try stranger.requirePublisher(of: talk) }
        #expect(publishing == "401 token-missing")
        // Who shows a token wants to be somebody: a bad one does not make them a stranger.
        let bad = makeAccess("Bearer x.y.z", viewers: .everyone)
        let refused = try refusal { _ = try bad.requireViewer(of: talk) }
        #expect(refused == "401 token-invalid")
    }

    /// A token is what its bearer is, also on the server's own machine.
    @Test func `operators are admins, and clients on this machine without a token`() throws {
        let remote = IPAddress(ipv4: 0xC000_0207)
        let (admin, host) = (try mint("ann", .admin, stream: "*"), try mint("ann", .host, stream: "*"))
        for ip in [IPAddress.loopback, remote] {
            let asAdmin = try refusal { try makeAccess("Bearer \(admin)", from: ip).requireOperator() }
            #expect(asAdmin == nil)
            let asHost = try refusal { try makeAccess("Bearer \(host)", from: ip).requireOperator() }
            #expect(asHost == "403 not-allowed")
        }
        let local = try refusal { try makeAccess(nil).requireOperator() }
        #expect(local == nil)
        let far = try refusal { try makeAccess(nil, from: remote).requireOperator() }
        #expect(far == "401 token-missing")
    }

    @Test func `is challenged as RFC 6750 §3 wants it`() throws {
        #expect(Access.unauthorized("No.").headers["www-authenticate"] == #"Bearer realm="rostrum""#)
        #expect(
            TokenRefusal.expired.problem.headers["www-authenticate"]
                == #"Bearer realm="rostrum", error="invalid_token""#)
        #expect(
            Access.otherStream.headers["www-authenticate"]
                == #"Bearer realm="rostrum", error="insufficient_scope""#)
    }

    @Test func `makes a sender of the token's own stream, with what it allows and nothing more`() throws {
        let other = try #require(StreamID("other"))
        let text = try mint("ann", .speaker, capabilities: [.moderate])
        let token = try #require(try makeAccess("Bearer \(text)").token())
        #expect(token.sender(in: other) == nil)
        let sender = try #require(token.sender(in: talk))
        #expect(sender.authority == .speaker && sender.id.description == "ann")
        #expect(sender.mayModerate && !sender.mayJoinBackstage && !sender.mayGiveGifts)
        #expect(!sender.isGuest && sender.tiers.isEmpty && sender.link == nil)
    }
}
