import Base
import HTTP
import Node
import Synchronization
import Testing

@testable import Gateway

private let sdp: HTTPHeaders = ["Content-Type": "application/sdp"]
private let fragment: HTTPHeaders = [
    "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": "\"tag1\"",
]

@Suite struct WHIPTests {
    /// Of all that a session's answer links to.
    private static func servers(_ response: HTTPResponse) -> [String] {
        response.headers.fields.filter { $0.name == "link" && $0.value.contains("ice-server") }.map(\.value)
    }

    /// With a password that lasts, a stranger would have a relay for ever.
    @Test func `gives TURN passwords to bearers of tokens, or for a while`() async throws {
        func links(_ secret: String?, token: Bool) async throws -> [String] {
            let bench = try Bench {
                $0.iceServers = [
                    GatewaySettings.ICEServer(url: "stun:a"), GatewaySettings.ICEServer(url: "turn:b"),
                    GatewaySettings.ICEServer(url: "turn:c", username: "ann", credential: Secret("p")),
                ]
                $0.iceServerSecret = secret.map { Secret($0) }
            }
            let response = await bench.ask(
                .post, "/whep/s1", token: token ? try bench.token(.viewer) : nil, sdp, body: "v=0\r\n")
            #expect(response.status == 201)
            return Self.servers(response)
        }
        #expect(try await links(nil, token: false).count == 2)
        #expect(try await links(nil, token: true).count == 3)
        let limited = try await links("north", token: false)
        #expect(limited.count == 2)
        // printf 1800043200:guest | openssl dgst -sha1 -hmac north -binary | base64
        #expect(
            limited.last
                == "<turn:b>; rel=\"ice-server\"; username=\"1800043200:guest\"; "
                + "credential=\"/Cf+8u9GajBth6HwZ8PQLObRzlA=\"; credential-type=\"password\"")
        let named = try await links("north", token: true)
        #expect(named.count == 3 && named[1].contains("username=\"1800043200:") && !named[1].contains("ann"))
    }

    @Test func `tells everybody of its own TURN ports, with passwords for a while`() async throws {
        let bench = try Bench {
            $0.turn = GatewaySettings.TURN(tls: 5_349, tcp: nil, udp: 3_478, secret: Secret("north"))
        }
        let headers: HTTPHeaders = ["Content-Type": "application/sdp", "Host": "live.example.org:8443"]
        let response = await bench.ask(.post, "/whep/s1", headers, body: "v=0\r\n")
        let secrets = "username=\"1800043200:guest\"; credential=\"/Cf+8u9GajBth6HwZ8PQLObRzlA=\"; "
        #expect(
            Self.servers(response)
                == [
                    "turn:live.example.org:3478?transport=udp", "turns:live.example.org:5349?transport=tcp",
                ].map { "<\($0)>; rel=\"ice-server\"; \(secrets)credential-type=\"password\"" })
        let keys = [Secret([UInt8](repeating: 1, count: 32)), Secret([UInt8](repeating: 2, count: 32))]
        #expect(Set(keys.map { GatewaySettings.TURN.secret(from: $0).exposed }).count == 2)
    }

    @Test func `makes a session of an offer`() async throws {
        let bench = try Bench {
            $0.iceServers = [
                GatewaySettings.ICEServer(url: "stun:stun.example.org:3478"),
                GatewaySettings.ICEServer(
                    url: "turn:turn.example.org?transport=udp", username: "ann", credential: Secret("p\"w")),
            ]
        }
        let response = await bench.ask(
            .post, "/whip/s1", token: try bench.token(.host), ["Content-Type": "Application/SDP; x=y"],
            body: "v=0\r\n")
        #expect(response.status == 201)
        #expect(response.text == "v=0\r\nanswer")
        #expect(response.headers["content-type"] == "application/sdp")
        #expect(response.headers["etag"] == "\"tag1\"")
        #expect(response.headers["accept-patch"] == "application/trickle-ice-sdpfrag")
        let id = try #require(bench.service.state.withLock { $0.sessions.keys.first })
        #expect(response.headers["location"] == "/whip/s1/\(id)")
        #expect(
            response.headers.fields.filter { $0.name == "link" }.map(\.value) == [
                "<stun:stun.example.org:3478>; rel=\"ice-server\"",
                "<turn:turn.example.org?transport=udp>; rel=\"ice-server\"; username=\"ann\"; credential=\"p\\\"w\"; "
                    + "credential-type=\"password\"",
            ])
        #expect(response.headers["access-control-allow-origin"] == "*")
        let exposed = try #require(response.headers["access-control-expose-headers"])
        for name in ["Location", "ETag", "Link", "Retry-After", "RateLimit", "RateLimit-Policy"] {
            #expect(exposed.contains(name))
        }
        let request = try #require(bench.service.state.withLock { $0.requests.first })
        #expect(request.purpose == .publish)
        #expect(request.participant?.description == "ann")
        #expect(request.name == "Ann")
        #expect(request.offer == "v=0\r\n")
    }

    @Test func `wants a token that allows to publish this stream`() async throws {
        let bench = try Bench()
        let none = await bench.ask(.post, "/whip/s1", sdp, body: "v=0")
        #expect(none.status == 401)
        #expect(none.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
        let cases: [(String, Int)] = [
            (try bench.token(.host), 201), (try bench.token(.speaker), 201),
            (try bench.token(.host, stream: "*"), 201),
            (try bench.token(.admin, stream: "*"), 201), (try bench.token(.viewer), 403),
            (try bench.token(.host, stream: "s2"), 403),
            (try bench.token(.host, expires: Bench.now - 11), 401),
            ("a.b.c", 401), ("", 401),
        ]
        for (token, status) in cases {
            let response = await bench.ask(.post, "/whip/s1", token: token, sdp, body: "v=0")
            #expect(response.status == status)
            #expect((response.headers["www-authenticate"] != nil) == (status != 201))
        }
    }

    @Test func `takes a token from the address`() async throws {
        let bench = try Bench()
        let token = try bench.token(.host)
        #expect(await bench.ask(.post, "/whip/s1?access_token=\(token)", sdp, body: "v=0").status == 201)
        #expect(await bench.ask(.post, "/whip/s1?access_token=x", sdp, body: "v=0").status == 401)
    }

    @Test func `refuses other credentials than a bearer's`() async throws {
        let bench = try Bench()
        var headers = sdp
        headers.add("Authorization", "Basic YTpi")
        #expect(await bench.ask(.post, "/whip/s1", headers, body: "v=0").status == 401)
    }

    @Test(arguments: [nil, "text/plain", "application/json", "application/sdpx"])
    func `refuses other content types`(_ type: String?) async throws {
        let bench = try Bench()
        let headers: HTTPHeaders = type.map { ["Content-Type": $0] } ?? [:]
        let response = await bench.ask(.post, "/whip/s1", token: try bench.token(.host), headers, body: "v=0")
        #expect(response.status == 415)
        #expect(response.headers["accept-post"] == "application/sdp")
    }

    @Test(arguments: [
        (SessionRefusal.malformedOffer("x"), 400), (.unsupportedOffer("x"), 422), (.notAcceptable("x"), 406),
        (.noPublisher, 409), (.overloaded, 503), (.stopping, 503), (.unknownSession, 404),
        (.stage(.unknownStream), 404),
    ])
    func `answers each refusal with its status`(_ refusal: SessionRefusal, _ status: Int) async throws {
        let bench = try Bench()
        bench.service.state.withLock { $0.refusal = refusal }
        let response = await bench.ask(.post, "/whip/s1", token: try bench.token(.host), sdp, body: "v=0")
        #expect(response.status == status)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect((response.headers["retry-after"] != nil) == [409, 503].contains(status))
        struct Body: Decodable {
            let type, title, detail: String
            let status: Int
        }
        let body = try response.json(Body.self)
        #expect(body.status == status)
        #expect(body.type.hasPrefix("urn:rostrum:problem:"))
        #expect(!body.title.isEmpty && !body.detail.isEmpty)
    }

    /// Told to stay away for as long as from a full server, all clients would come seconds after the next one is there.
    @Test func `asks for a short pause only while it is being restarted`() async throws {
        let bench = try Bench()
        bench.service.state.withLock { $0.refusal = .stopping }
        let response = await bench.ask(.post, "/whep/s1", token: try bench.token(.viewer), sdp, body: "v=0")
        #expect(response.status == 503 && response.headers["retry-after"] == "1")
    }

    @Test func `refuses an empty body and one that is no text`() async throws {
        let bench = try Bench()
        let token = try bench.token(.host)
        #expect(await bench.ask(.post, "/whip/s1", token: token, sdp).status == 400)
        var request = bench.request(.post, "/whip/s1", token: token, sdp)
        request.body = [0x76, 0xFF, 0xFE]
        #expect(await bench.handler.respond(to: request).status == 400)
    }

    @Test(arguments: ["a.b", "%20", "ä", String(repeating: "x", count: 65)])
    func `knows no stream of an impossible name`(_ name: String) async throws {
        let bench = try Bench()
        #expect(
            await bench.ask(.post, "/whip/\(name)", token: try bench.token(.host), sdp, body: "v=0").status
                == 404)
    }

    @Test func `answers OPTIONS without credentials`() async throws {
        let bench = try Bench { $0.viewers = .token }
        for endpoint in ["whip", "whep"] {
            let response = await bench.ask(.options, "/\(endpoint)/s1")
            #expect(response.status == 204)
            #expect(response.headers["accept-post"] == "application/sdp")
            #expect(response.headers["access-control-allow-methods"]?.contains("POST") == true)
            #expect(
                response.headers["access-control-allow-headers"]
                    == "Authorization, Content-Type, Idempotency-Key, If-Match")
            let session = await bench.ask(.options, "/\(endpoint)/s1/x")
            #expect(session.status == 204)
            let patches = endpoint == "whep" ? ", application/merge-patch+json" : ""
            #expect(session.headers["accept-patch"] == "application/trickle-ice-sdpfrag" + patches)
            #expect(session.headers["access-control-allow-methods"]?.contains("PATCH") == true)
            #expect(session.headers["access-control-allow-methods"]?.contains("DELETE") == true)
        }
    }

    @Test func `shows nothing to GET and HEAD, and knows no PUT`() async throws {
        let bench = try Bench()
        #expect(await bench.ask(.get, "/whip/s1").status == 204)
        #expect(await bench.ask(.head, "/whip/s1").status == 204)
        let response = await bench.ask(.put, "/whip/s1", sdp, body: "v=0")
        #expect(response.status == 405)
        #expect(response.headers["allow"] == "POST, GET, HEAD, OPTIONS")
    }
}

@Suite struct WHEPTests {
    @Test func `plays to anyone when streams are public`() async throws {
        let bench = try Bench()
        #expect(await bench.ask(.post, "/whep/s1", sdp, body: "v=0").status == 201)
        let request = try #require(bench.service.state.withLock { $0.requests.first })
        #expect(request.purpose == .play)
        #expect(request.participant == nil)
        #expect(await bench.ask(.post, "/whep/s1", token: "forged", sdp, body: "v=0").status == 401)
    }

    @Test func `plays to tokens for the stream when they are needed`() async throws {
        let bench = try Bench { $0.viewers = .token }
        #expect(await bench.ask(.post, "/whep/s1", sdp, body: "v=0").status == 401)
        #expect(
            await bench.ask(.post, "/whep/s1", token: try bench.token(.viewer), sdp, body: "v=0").status
                == 201)
        let other = try bench.token(.viewer, stream: "s2")
        #expect(await bench.ask(.post, "/whep/s1", token: other, sdp, body: "v=0").status == 403)
    }

    @Test func `waits as long as it is told`() async throws {
        let bench = try Bench()
        let cases: [(String, Duration?)] = [
            ("", nil), ("?wait", .seconds(60)), ("?wait=", .seconds(60)), ("?wait=5", .seconds(5)),
            ("?wait=0", .zero), ("?wait=4000000000", .seconds(3_600)),
        ]
        for (query, patience) in cases {
            #expect(await bench.ask(.post, "/whep/s1\(query)", sdp, body: "v=0").status == 201)
            #expect(bench.service.state.withLock { $0.requests.last?.patience } == patience)
        }
        for query in ["?wait=x", "?wait=-1", "?wait=1.5", "?wait=99999999999999999999"] {
            #expect(await bench.ask(.post, "/whep/s1\(query)", sdp, body: "v=0").status == 400)
        }
    }

    @Test func `tells players by HEAD what it is`() async throws {
        let bench = try Bench()
        let response = await bench.ask(.head, "/whep/s1")
        #expect(response.status == 200)
        #expect(response.headers["content-type"] == "application/sdp")
        #expect(await bench.ask(.get, "/whep/s1").status == 204)
    }
}

@Suite struct StageSessionTests {
    @Test func `are for whoever has a token for the stream`() async throws {
        let bench = try Bench()
        let path = "/v1/streams/s1/sessions"
        #expect(await bench.ask(.post, path, sdp, body: "v=0").status == 401)
        let foreign = try bench.token(.viewer, stream: "s2")
        #expect(await bench.ask(.post, path, token: foreign, sdp, body: "v=0").status == 403)
        for role in [Role.viewer, .speaker, .host] {
            let token = try bench.token(role)
            let response = await bench.ask(.post, path, token: token, sdp, body: "v=0")
            #expect(response.status == 201)
            let request = try #require(bench.service.state.withLock { $0.requests.last })
            #expect(request.purpose == .stage)
            #expect(request.isHost == (role == .host))
            #expect(request.isAudience == (role == .viewer))
            #expect(request.isOnStage == (role != .viewer))
            #expect(request.participant?.description == "ann")
            let location = try #require(response.headers["location"])
            #expect(location.hasPrefix(path + "/"))
            #expect(await bench.ask(.get, location, token: token).status == 204)
            #expect(await bench.ask(.patch, location, token: token, fragment, body: "a=x").status == 204)
            // Not under another endpoint's path.
            let foreign = location.replacing(path, with: "/whip/s1")
            #expect(await bench.ask(.get, foreign, token: token).status == (role == .viewer ? 403 : 404))
            #expect(await bench.ask(.delete, location, token: token).status == 200)
            #expect(await bench.ask(.get, location, token: token).status == 404)
        }
    }
}

@Suite struct SessionResources {
    @Test(arguments: ["whip", "whep"]) func `take candidates`(_ endpoint: String) async throws {
        let bench = try Bench()
        let path = try await bench.open(endpoint)
        let response = await bench.ask(
            .patch, path, token: try bench.token(.host), fragment, body: "a=candidate:1")
        #expect(response.status == 204)
        #expect(response.headers["etag"] == nil)
        #expect(response.body.isEmpty)
        #expect(bench.service.state.withLock { $0.fragments } == ["a=candidate:1"])
    }

    @Test func `restart ICE`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        var headers = fragment
        headers.set("If-Match", "*")
        let token = try bench.token(.host)
        let response = await bench.ask(.patch, path, token: token, headers, body: "new")
        #expect(response.status == 200)
        #expect(response.headers["content-type"] == "application/trickle-ice-sdpfrag")
        #expect(response.headers["etag"] == "\"tag2\"")
        #expect(response.text == "a=ice-ufrag:tag2\r\n")
        // The old tag is stale from now on.
        #expect(await bench.ask(.patch, path, token: token, fragment, body: "a=candidate:1").status == 412)
        headers.set("If-Match", "\"tag2\"")
        #expect(await bench.ask(.patch, path, token: token, headers, body: "a=candidate:1").status == 204)
    }

    @Test func `take candidates with a star too`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        var headers = fragment
        headers.set("If-Match", "*")
        #expect(
            await bench.ask(.patch, path, token: try bench.token(.host), headers, body: "a=candidate:1")
                .status == 204)
    }

    @Test(arguments: [
        ("\"tag1\"", "new", 422), ("\"tag1\"", "bad", 400), ("*", "bad", 400), ("\"other\"", "x", 412),
        ("W/\"tag1\"", "x", 412), ("\"other\", \"tag1\"", "x", 204), ("tag1", "x", 400), ("\"tag1", "x", 400),
        ("\"tag1\"", "", 400),
    ])
    func `heed entity tags`(_ field: String, _ body: String, _ status: Int) async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        var headers = fragment
        headers.set("If-Match", field)
        let response = await bench.ask(.patch, path, token: try bench.token(.host), headers, body: body)
        #expect(response.status == status)
    }

    @Test func `want an entity tag and the right type`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        let token = try bench.token(.host)
        let type: HTTPHeaders = ["Content-Type": "application/trickle-ice-sdpfrag"]
        #expect(await bench.ask(.patch, path, token: token, type, body: "x").status == 428)
        let response = await bench.ask(.patch, path, token: token, sdp, body: "x")
        #expect(response.status == 415)
        #expect(response.headers["accept-patch"] == "application/trickle-ice-sdpfrag")
    }

    @Test func `take what viewers want of the pictures, and tell what they get`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whep")
        let token = try bench.token(.viewer)
        let type: HTTPHeaders = ["Content-Type": "application/merge-patch+json"]
        let response = await bench.ask(
            .patch, path, token: token, type, body: #"{"audioOnly":true,"pin":null}"#)
        #expect(response.status == 200)
        #expect(response.text == #"{"audioOnly":true}"#)
        let expected = try DeliveryPatch(["audioOnly": .bool(true), "pin": .null])
        #expect(bench.service.state.withLock { $0.patches } == [expected])
        for (body, status) in [(#"{"maxHeight":0}"#, 422), (#"{"pin":"x"}"#, 422), ("[", 400), ("", 400)] {
            #expect(await bench.ask(.patch, path, token: token, type, body: body).status == status, "\(body)")
        }
        #expect(bench.service.state.withLock { $0.patches.count } == 1)
        let quality = await bench.ask(.get, path + "/quality", token: token)
        #expect(quality.status == 200)
        #expect(quality.text == #"{"estimate":7}"#)
        #expect(quality.headers["cache-control"] == "no-store")
        #expect(await bench.ask(.get, "/whep/s1/0123456789/quality", token: token).status == 404)
        // Who publishes gets no pictures.
        let publishing = try await bench.open("whip")
        #expect(
            await bench.ask(.patch, publishing, token: try bench.token(.host), type, body: "{}").status == 415
        )
    }

    @Test func `end once, whatever the entity tag`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        let token = try bench.token(.host)
        #expect(await bench.ask(.get, path, token: token).status == 204)
        #expect(await bench.ask(.head, path, token: token).status == 204)
        #expect(await bench.ask(.delete, path, token: token, ["If-Match": "\"stale\""]).status == 200)
        for method in [HTTPMethod.delete, .get, .head] {
            #expect(await bench.ask(method, path, token: token).status == 404)
        }
        #expect(await bench.ask(.patch, path, token: token, fragment, body: "x").status == 404)
        #expect(await bench.ask(.post, path, token: token, sdp, body: "v=0").status == 405)
    }

    @Test(arguments: ["whip", "whep"]) func `may be ended once when they have just ended by themselves`(
        _ endpoint: String
    ) async throws {
        let bench = try Bench()
        let path = try await bench.open(endpoint)
        let token = try bench.token(.host)
        bench.service.state.withLock { state in
            state.endedSessions = state.sessions
            state.sessions = [:]
        }
        #expect(await bench.ask(.get, path, token: token).status == 404)
        #expect(await bench.ask(.patch, path, token: token, fragment, body: "a=x").status == 404)
        let foreign = path.replacing("/s1/", with: "/s2/")
        #expect(await bench.ask(.delete, foreign, token: try bench.token(.host, stream: "*")).status == 404)
        // Viewers need no token here.
        if endpoint == "whip" { #expect(await bench.ask(.delete, path).status == 401) }
        #expect(await bench.ask(.delete, path, token: token).status == 200)
        #expect(await bench.ask(.delete, path, token: token).status == 404)
    }

    @Test func `are found only where they were made`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        let id = try #require(path.split(separator: "/").last)
        let token = try bench.token(.host, stream: "*")
        #expect(await bench.ask(.get, "/whep/s1/\(id)", token: token).status == 404)
        #expect(await bench.ask(.get, "/whip/s2/\(id)", token: token).status == 404)
        #expect(await bench.ask(.get, "/whip/s1/\(id.uppercased())", token: token).status == 404)
        #expect(await bench.ask(.get, "/whip/s1/\(id)", token: token).status == 204)
    }

    @Test func `are changed only with a token, be it expired`() async throws {
        let bench = try Bench()
        let path = try await bench.open("whip")
        #expect(await bench.ask(.delete, path).status == 401)
        #expect(await bench.ask(.delete, path, token: try bench.token(.viewer)).status == 403)
        #expect(await bench.ask(.delete, path, token: try bench.token(.host, expires: 5)).status == 200)
    }
}

@Suite struct EntityTagsTests {
    private static func strong(_ values: String...) -> EntityTags {
        .list(values.map { EntityTag(value: $0) })
    }

    @Test(arguments: [
        ("*", EntityTags.any), (" * ", .any), ("\"a\"", strong("a")),
        ("\"a\",\"b\" , \"\"", strong("a", "b", "")),
        ("W/\"a\"", .list([EntityTag(value: "a", isWeak: true)])), ("\"a,b\"", strong("a,b")),
    ])
    func `reads lists of tags`(_ text: String, _ expected: EntityTags) {
        #expect(EntityTags(text) == expected)
    }

    @Test(arguments: ["a", "\"", "\"a\" b", "**", "W/a", "\"a\"\"b"]) func `refuses anything else`(
        _ text: String
    ) {
        #expect(EntityTags(text) == nil)
    }

    /// The table of RFC 9110 §8.8.3.2, where the resource's tag is strong, and `*`.
    @Test(arguments: [
        ("\"1\"", true, true), ("W/\"1\"", false, true), ("\"2\"", false, false),
        ("\"2\", \"1\"", true, true), ("*", true, true),
    ])
    func `compare strongly or weakly`(_ text: String, _ isExact: Bool, _ isAsGood: Bool) throws {
        let (tags, tag) = (try #require(EntityTags(text)), EntityTag(value: "1"))
        #expect(tags.haveExactly(tag) == isExact)
        #expect(tags.have(tag) == isAsGood)
        #expect(!tags.haveExactly(EntityTag(value: "1", isWeak: true)) || tags == .any)
    }
}
