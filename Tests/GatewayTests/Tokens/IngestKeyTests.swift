import Base
import Crypto
import HTTP
import Node
import Stage
import TestSupport
import Testing

@testable import Gateway

@Suite struct IngestKeys {
    private static let now = 1_800_000_000
    private let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "k1", secret: Secret([UInt8](repeating: 7, count: 32)))
    ])

    private func host(_ role: Role = .host, expires: Int = now + 100) throws -> Token {
        Token(
            keyID: "k1", subject: try #require(ParticipantID("ann")), name: "Ann",
            scope: .one(try #require(StreamID("talk"))), role: role, expires: expires)
    }

    private func key(_ role: Role = .host) throws -> String {
        try #require(authority.mint(ingestKeyOf: host(role), issuedAt: Self.now)).exposed
    }

    private func refusal(_ field: String, now: Int = now) -> String? {
        do throws(IngestSettings.Refusal) {
            _ = try authority.authorize(Secret(field), now: now)
            return nil
        } catch {
            return error.text
        }
    }

    @Test func `open one stream for whoever they were made for`() throws {
        let grant = try authority.authorize(Secret("talk?token=\(key())"), now: Self.now)
        #expect(grant.stream.description == "talk" && grant.sender.id.description == "ann")
        #expect(grant.sender.name == "Ann" && grant.sender.authority == .host)
        // By which a host revokes it as they revoke links.
        #expect(grant.keyIssued == Self.now)
        #expect(refusal("other?token=\(try key())")?.contains("doesn't allow") == true)
        #expect(refusal("talk?a=b&token=\(try key())&c") == nil)
        #expect(refusal("talk?token=\(try key())", now: Self.now + 1_000)?.contains("expired") == true)
    }

    /// Whose own token is for all streams.
    @Test func `of an admin open no other stream`() throws {
        let text = try key(.admin)
        #expect(refusal("talk?token=\(text)") == nil)
        #expect(refusal("other?token=\(text)")?.contains("doesn't allow") == true)
    }

    @Test func `are good for nothing else`() throws {
        let key = try key()
        #expect(throws: TokenRefusal.badClaim("use")) { try authority.verify(key, now: Self.now) }
        #expect(throws: TokenRefusal.badClaim("use")) { try authority.verifyCredential(key, now: Self.now) }
    }

    @Test func `may be somebody's own token, if they may publish`() throws {
        for (role, may) in [(Role.host, true), (.speaker, true), (.admin, true), (.viewer, false)] {
            let token = try host(role)
            let text = try #require(
                authority.mint(
                    subject: token.subject, name: nil, scope: token.scope, role: role, issuedAt: Self.now,
                    expires: token.expires)
            ).exposed
            #expect((refusal("talk?token=\(text)") == nil) == may)
        }
        let invitation = Invitation(
            stream: try #require(StreamID("talk")), role: .speaker, issued: Self.now, expires: Self.now + 9)
        let text = try #require(authority.mint(invitation)).exposed
        #expect(refusal("talk?token=\(text)")?.contains("invitation") == true)
    }

    @Test(arguments: ["", "?", "?token=x", "talk", "talk?", "talk?key=x", "ta lk?token=x", "talk?token=x.y"])
    func `are refused with what is wrong`(field: String) {
        #expect(refusal(field) != nil)
    }

    @Test func `are given to who asks by the name of the server that they know`() async throws {
        let bench = try Bench { settings in settings.rtmpPort = 1_936 }
        let response = await bench.ask(
            .get, "/v1/streams/talk/ingest", token: try bench.token(.host, stream: "talk"),
            ["Host": "live.example:8080"])
        #expect(response.status == 200, "\(response.text)")
        guard case .object(let answer) = try response.json(JSON.self),
            case .object(let rtmp)? = answer["rtmp"]
        else {
            Issue.record("no address: \(response.text)")
            return
        }
        #expect(rtmp["server"] == .string("rtmp://live.example:1936/live"))
        #expect(rtmp["key"]?.string?.hasPrefix("talk?token=ey") == true)
        #expect(answer["whip"] == .object(["server": .string("http://live.example:8080/whip/talk")]))
    }

    @Test func `are given to no speaker who is banned, or whose link was revoked`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "talk")
            let (path, ingest) = ("/v1/streams/talk", "/v1/streams/talk/ingest")
            // Nobody sends, and a slow machine takes its time.
            await bench.do(.post, "/v1/streams", token: host, body: #"{"hostGraceSeconds":3600}"#)
            let sam = try bench.token("sam", .speaker, stream: "talk")
            let link = await bench.do(.post, path + "/links", token: host, body: #"{"role":"speaker"}"#)
            let invitation = try #require(link["token"]?.string)
            let given = await bench.do(.post, path + "/tokens", token: invitation)
            let guest = try #require(given["token"]?.string)
            for token in [sam, guest] {
                #expect(await bench.ask(.get, ingest, token: token).status == 200)
            }
            await bench.do(.post, path + "/bans", token: host, body: #"{"participant":"sam"}"#)
            await bench.do(.delete, path + "/links", token: host)
            for (token, rule) in [(sam, "banned"), (guest, "link-revoked")] {
                let refused = await bench.ask(.get, ingest, token: token)
                #expect(refused.status == 403)
                #expect(try refused.json(JSON.self)["rule"]?.string == rule)
            }
        }
    }

    @Test func `are given for SRT in one with the server`() async throws {
        let bench = try Bench { settings in
            settings.srtPort = 9_710
            settings.isSRTEncrypted = true
        }
        let response = await bench.ask(
            .get, "/v1/streams/talk/ingest", token: try bench.token(.host, stream: "talk"),
            ["Host": "live.example:8080"])
        guard case .object(let answer) = try response.json(JSON.self), case .object(let srt)? = answer["srt"]
        else {
            Issue.record("no address: \(response.text)")
            return
        }
        let streamID = try #require(srt["streamId"]?.string)
        #expect(streamID.hasPrefix("publish:talk:ey") && streamID.utf8.count <= 512)
        #expect(srt["url"] == .string("srt://live.example:9710?streamid=\(streamID)"))
        #expect(srt["passphrase"] == .bool(true))
    }
}
