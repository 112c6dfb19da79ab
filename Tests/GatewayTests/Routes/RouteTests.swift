import Base
import Foundation
@testable import Node
import Synchronization
import TestSupport
import Testing

@testable import Gateway
@testable import HTTP

private func snapshot(_ name: String, _ state: StreamState = .live, version: UInt64 = 3) throws
    -> StreamSnapshot
{
    var snapshot = StreamSnapshot(waitingFor: try #require(StreamID(name)))
    snapshot.state = state
    snapshot.version = version
    snapshot.host = ParticipantID("ann")
    if state == .live { snapshot.startedAt = WallTime(milliseconds: 1_800_000_000_500) }
    snapshot.viewers = 7
    snapshot.hasAudio = true
    return snapshot
}

@Suite struct RouterTests {
    @Test func `tells unknown paths from unknown methods`() {
        for path in [
            "/whip", "/whip/", "/whip/a/b/c", "/v1", "/v2/streams", "/healthz/x", "/assets", "/live", "/x",
        ] {
            guard case .nothing = Router.route(.get, path) else {
                Issue.record("\(path) was found")
                continue
            }
        }
        guard case .otherMethods(let methods) = Router.route(.delete, "/v1/streams") else {
            Issue.record("found")
            return
        }
        #expect(methods == [.get, .head, .post, .options])
    }

    @Test func `finds each of its own routes`() {
        for route in Router.routes {
            let path = route.pattern.replacing("{file*}", with: "a/b").replacing("{", with: "").replacing(
                "}", with: "")
            guard case .found(let found, _) = Router.route(route.method, path) else {
                Issue.record("\(route.pattern) was not found")
                continue
            }
            #expect(found.operationID == route.operationID)
        }
        #expect(Set(Router.routes.map(\.operationID)).count == Router.routes.count)
    }

    @Test func `survives random paths`() {
        var random = SeededGenerator(seed: 3)
        let pieces = [
            "/", "whip", "whep", "v1", "streams", "sync", "..", "%", "\u{0}", "é", "{stream}", "assets", "",
        ]
        for _ in 0..<20_000 {
            let path = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            let method = HTTPMethod.allCases.randomElement(using: &random) ?? .get
            if case .found(_, let parameters) = Router.route(method, path.joined()) {
                #expect(parameters.values.allSatisfy { !$0.isEmpty })
            }
        }
    }
}

@Suite struct OpenAPITests {
    private struct Document: Decodable {
        struct Operation: Decodable {
            struct Response: Decodable {}
            struct Parameter: Decodable {
                let name: String?
            }
            let operationId: String
            let summary: String
            let responses: [String: Response]
        }
        struct Path: Decodable {
            let get, post, put, patch, delete, head: Operation?
            let parameters: [Parameter]?
            struct Parameter: Decodable {
                let name: String?
                let ref: String?
                enum CodingKeys: String, CodingKey {
                    case name
                    case ref = "$ref"
                }
            }
        }
        let openapi: String
        let paths: [String: Path]
    }

    @Test func `describes no answer that has no name`() async throws {
        let document = try await Bench().ask(.get, "/v1/openapi.json").json(Document.self)
        let operations = document.paths.values.flatMap {
            [$0.get, $0.post, $0.put, $0.patch, $0.delete, $0.head].compactMap(\.self)
        }
        // 101 is libwebsockets' to answer.
        let statuses = Set(operations.flatMap(\.responses.keys)).compactMap { Int($0) }.filter { $0 != 101 }
        #expect(statuses.contains(410))
        for status in statuses { #expect(!HTTPResponse.reasonPhrase(status).hasPrefix("Status")) }
    }

    @Test func `describes every route of the API and no other`() async throws {
        let bench = try Bench()
        let response = await bench.ask(.get, "/v1/openapi.json")
        #expect(response.status == 200)
        let document = try response.json(Document.self)
        #expect(document.openapi.hasPrefix("3.1"))
        var described: [String: String] = [:]
        for (path, item) in document.paths {
            let operations = [
                ("GET", item.get), ("POST", item.post), ("PUT", item.put), ("PATCH", item.patch),
                ("DELETE", item.delete),
            ]
            for (method, operation) in operations {
                guard let operation else { continue }
                described["\(method) \(path)"] = operation.operationId
                #expect(!operation.summary.isEmpty)
                #expect(!operation.responses.isEmpty)
            }
        }
        let routes = Router.routes.filter { !$0.isOfWebClient }
        let wanted = Dictionary(
            uniqueKeysWithValues: routes.map {
                ("\($0.method.rawValue) \($0.pattern)", $0.operationID)
            })
        #expect(described == wanted)
    }

    @Test func `names the parameters of every path`() async throws {
        let document = try await Bench().ask(.get, "/v1/openapi.json").json(Document.self)
        for (path, item) in document.paths where path.contains("{") {
            let names = Set(
                (item.parameters ?? []).compactMap {
                    $0.name ?? $0.ref?.split(separator: "/").last.map(String.init)
                })
            let wanted = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
                String($0.dropFirst().dropLast())
            }
            #expect(names == Set(wanted), "\(path)")
        }
    }
}

@Suite struct StreamRoutes {
    private struct Stream: Decodable, Equatable {
        struct Track: Decodable, Equatable {
            let kind: String
        }
        let id, state: String
        let version, viewers: Int
        let host, hostName, startedAt: String?
        let tracks: [Track]
    }

    private struct List: Decodable {
        let streams: [Stream]
    }

    @Test func `list and show streams`() async throws {
        let bench = try Bench()
        let live = try snapshot("s1")
        bench.service.state.withLock { $0.snapshots = [live] }
        let list = try await bench.ask(.get, "/v1/streams").json(List.self)
        #expect(list.streams.map(\.id) == ["s1"])
        let stream = try await bench.ask(.get, "/v1/streams/s1").json(Stream.self)
        #expect(
            stream
                == Stream(
                    id: "s1", state: "live", version: 3, viewers: 7, host: "ann", hostName: "ann",
                    startedAt: "2027-01-15T08:00:00.500Z", tracks: [Stream.Track(kind: "audio")]))
        #expect(await bench.ask(.get, "/v1/streams/s2").status == 404)
    }

    @Test func `list a hundred at once`() async throws {
        let bench = try Bench()
        let all = try (0..<150).map { try snapshot("s\($0)") }
        bench.service.state.withLock { $0.snapshots = all }
        let list = try await bench.ask(.get, "/v1/streams").json(List.self)
        #expect(list.streams.count == 100)
        #expect(try await bench.ask(.get, "/v1/streams?limit=1000").json(List.self).streams.count == 150)
    }

    @Test func `only the token's own stream is shown where tokens are needed`() async throws {
        let bench = try Bench { $0.viewers = .token }
        let (first, second) = (try snapshot("s1"), try snapshot("s2"))
        bench.service.state.withLock { $0.snapshots = [first, second] }
        #expect(await bench.ask(.get, "/v1/streams").status == 401)
        #expect(await bench.ask(.get, "/v1/streams/s1").status == 401)
        let token = try bench.token(.viewer)
        #expect(
            try await bench.ask(.get, "/v1/streams", token: token).json(List.self).streams.map(\.id) == ["s1"]
        )
        #expect(await bench.ask(.get, "/v1/streams/s1", token: token).status == 200)
        #expect(await bench.ask(.get, "/v1/streams/s2", token: token).status == 403)
        let admin = try bench.token(.admin, stream: "*")
        #expect(try await bench.ask(.get, "/v1/streams", token: admin).json(List.self).streams.count == 2)
    }

    @Test func `refuse followers without a token when it is needed, and elsewhere`() throws {
        let bench = try Bench { $0.viewers = .token }
        for (target, status) in [("/v1/streams/s1/sync", 401), ("/v1/streams/s1/other", 404), ("/", 404)] {
            guard case .refuse(let response) = bench.handler.upgrade(bench.request(.get, target)) else {
                Issue.record("accepted \(target)")
                continue
            }
            #expect(response.status == status)
        }
        let target = "/v1/streams/s1/sync?access_token=\(try bench.token(.viewer))"
        guard case .accept = bench.handler.upgrade(bench.request(.get, target)) else {
            Issue.record("refused a good token")
            return
        }
    }
}

@Suite struct TokenRoute {
    private struct Made: Decodable {
        let token, expiresAt: String
    }

    private let json: HTTPHeaders = ["Content-Type": "application/json"]
    private let wish = #"{"sub":"ann","name":"Ann","role":"host","stream":"s1","ttl":3600}"#

    @Test func `makes tokens for developers on this machine`() async throws {
        let bench = try Bench()
        let response = await bench.ask(.post, "/v1/tokens", json, body: wish)
        #expect(response.status == 201)
        #expect(response.headers["cache-control"] == "no-store")
        let made = try response.json(Made.self)
        #expect(made.expiresAt == "2027-01-15T09:00:00.000Z")
        let token = try bench.authority.verify(made.token, now: Bench.now)
        #expect(
            token.role == .host && token.subject.description == "ann" && token.expires == Bench.now + 3_600)
    }

    @Test func `makes none for strangers`() async throws {
        let bench = try Bench()
        var request = bench.request(.post, "/v1/tokens", json, body: wish)
        request.remoteAddress = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 1)
        #expect(await bench.handler.respond(to: request).status == 401)
        for (name, value) in [
            ("Host", "evil.example"), ("Origin", "https://evil.example"), ("Origin", "null"),
            ("Origin", "https://localhost.evil.example"), ("Origin", "http://evil.example/http://localhost"),
        ] {
            var headers = json
            headers.add(name, value)
            #expect(
                await bench.ask(.post, "/v1/tokens", headers, body: wish).status == 401, "\(name): \(value)")
        }
        for origin in ["http://localhost:8080", "http://127.0.0.1:3000", "https://[::1]:8443"] {
            var headers = json
            headers.add("Origin", origin)
            #expect(await bench.ask(.post, "/v1/tokens", headers, body: wish).status == 201)
        }
    }

    /// Most proxies call the server by its own address, so that Host and the connection look like this machine.
    @Test(arguments: HTTPHeaders.forwarding)
    func `makes none for whom a proxy forwards`(name: String) async throws {
        var headers = json
        headers.add(name, "203.0.113.9")
        #expect(await (try Bench()).ask(.post, "/v1/tokens", headers, body: wish).status == 401)
    }

    @Test func `wants an administrator elsewhere`() async throws {
        let bench = try Bench { $0.isDevelopment = false }
        #expect(await bench.ask(.post, "/v1/tokens", json, body: wish).status == 401)
        #expect(
            await bench.ask(.post, "/v1/tokens", token: try bench.token(.host), json, body: wish).status
                == 403)
        let admin = try bench.token(.admin, stream: "*")
        #expect(await bench.ask(.post, "/v1/tokens", token: admin, json, body: wish).status == 201)
    }

    @Test(arguments: [
        ("", 400), ("{}", 400), ("[]", 400), (#"{"sub":"","role":"host","stream":"s1"}"#, 422),
        (#"{"sub":"a","role":"king","stream":"s1"}"#, 422),
        (#"{"sub":"a","role":"host","stream":"a b"}"#, 422),
        (#"{"sub":"a","role":"host"}"#, 422), (#"{"sub":"a","role":"host","stream":"s1","ttl":0}"#, 422),
        (#"{"sub":"a","role":"host","stream":"s1","ttl":1e300}"#, 422),
        (#"{"sub":"a","role":"host","stream":"s1","name":""}"#, 422),
        (#"{"sub":"a","role":"viewer","stream":"*"}"#, 201),
    ])
    func `refuses wishes it cannot grant`(_ body: String, _ status: Int) async throws {
        let bench = try Bench()
        #expect(await bench.ask(.post, "/v1/tokens", json, body: body).status == status)
    }
}

@Suite struct SystemRoutes {
    @Test func `tell health, readiness and numbers`() async throws {
        let bench = try Bench()
        #expect(await bench.ask(.get, "/healthz").status == 200)
        #expect(await bench.ask(.get, "/readyz").status == 200)
        bench.service.state.withLock { $0.isReady = false }
        #expect(await bench.ask(.get, "/readyz").status == 503)
        let metrics = await bench.ask(.get, "/metrics")
        #expect(metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(metrics.text.contains("# HELP fake A number.\n# TYPE fake gauge\nfake 42\n"))
        #expect(metrics.text.contains("process_resident_memory_bytes "))
    }

    @Test func `are not ready while nothing can be written, and say why`() async throws {
        let failure = Mutex<String?>("the disk is full")
        let bench = try Bench { settings in settings.hindrance = { failure.withLock { $0 } } }
        let refusal = await bench.ask(.get, "/readyz")
        #expect(refusal.status == 503)
        #expect(refusal.text.contains("the disk is full"))
        #expect(await bench.ask(.get, "/healthz").status == 200)
        failure.withLock { $0 = nil }
        #expect(await bench.ask(.get, "/readyz").status == 200)
    }

    @Test func `tell when the process started`() async throws {
        let text = try await Bench().ask(.get, "/metrics").text
        let line = try #require(
            text.split(separator: "\n").first { $0.hasPrefix("process_start_time_seconds ") })
        let start = try #require(line.split(separator: " ").last.flatMap { Double($0) })
        let now = Date().timeIntervalSince1970
        #expect(start <= now + 1 && start > now - 3_600)
    }

    @Test func `tell numbers to operators only`() async throws {
        let bench = try Bench()
        func ask(_ ip: IPAddress, _ headers: HTTPHeaders = [:], token: String? = nil) async -> HTTPResponse {
            var request = bench.request(.get, "/metrics", token: token, headers)
            request.remoteAddress = TransportAddress(ip: ip, port: 1)
            return await bench.handler.respond(to: request)
        }
        let stranger = IPAddress(ipv4: 0xC000_0201)
        let here = await ask(.loopback)
        #expect(here.status == 200 && here.headers["access-control-allow-origin"] == nil)
        #expect(await ask(stranger).status == 401)
        #expect(await ask(.loopback, ["X-Forwarded-For": "192.0.2.1"]).status == 401)
        #expect(await ask(.loopback, ["Host": "evil.example"]).status == 401)
        #expect(await ask(stranger, token: try bench.token(.host)).status == 403)
        #expect(await ask(stranger, token: try bench.token(.admin, stream: "*")).status == 200)
    }

    @Test func `tell numbers, and nothing else, on the operators' listener`() async throws {
        let bench = try Bench()
        let handler = OperatorHandler(bench.handler)
        for (path, status) in [
            ("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/", 404), ("/v1/streams", 404),
            ("/v1/tokens", 404),
        ] {
            var request = bench.request(.get, path)
            request.remoteAddress = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 1)
            #expect(await handler.respond(to: request).status == status, "\(path)")
        }
        guard case .refuse = handler.upgrade(bench.request(.get, "/v1/feed/sync")) else {
            Issue.record("there is a WebSocket")
            return
        }
    }

    @Test(arguments: ["/nope", "/live/a.b", "/watch/a.b", "/live/s1/more"])
    func `unknown paths show browsers a page with a link home`(path: String) async throws {
        let bench = try Bench()
        let page = await bench.ask(.get, path, ["Accept": "text/html,application/xhtml+xml,*/*;q=0.8"])
        #expect(page.status == 404)
        #expect(page.headers["content-type"] == "text/html; charset=utf-8")
        #expect(page.headers["content-security-policy"]?.contains("default-src 'none'") == true)
        #expect(page.text.contains("<a href=\"/\">"))
        for headers: HTTPHeaders in [[:], ["Accept": "*/*"], ["Accept": "application/json"]] {
            let problem = await bench.ask(.get, path, headers)
            #expect(problem.status == 404)
            #expect(problem.headers["content-type"] == "application/problem+json")
        }
        let api = await bench.ask(.get, "/v1/streams/none", ["Accept": "text/html"])
        #expect(api.status == 404 && api.headers["content-type"] == "application/problem+json")
    }

    @Test func `name each refusal for programs`() async throws {
        let bench = try Bench { $0.viewers = .token }
        func rule(
            _ method: HTTPMethod, _ path: String, token: String? = nil, _ headers: HTTPHeaders = [:],
            body: String = ""
        ) async throws -> String? {
            let problem = try await bench.ask(method, path, token: token, headers, body: body).json(JSON.self)
            let rule = problem["rule"]?.string
            #expect(problem["type"]?.string == rule.map { "urn:rostrum:problem:\($0)" })
            return rule
        }
        let json: HTTPHeaders = ["Content-Type": "application/json"]
        let admin = try bench.token(.admin)
        #expect(try await rule(.get, "/v1/streams/s1") == "token-missing")
        #expect(try await rule(.get, "/v1/streams/s1", token: "x.y.z") == "token-invalid")
        let old = try bench.token(.viewer, expires: Bench.now - 60)
        #expect(try await rule(.get, "/v1/streams/s1", token: old) == "token-expired")
        let other = try bench.token(.viewer, stream: "s2")
        #expect(try await rule(.get, "/v1/streams/s1", token: other) == "other-stream")
        #expect(try await rule(.post, "/v1/streams", token: other) == "not-allowed")
        #expect(try await rule(.get, "/nope") == "unknown-path")
        #expect(try await rule(.put, "/healthz") == "unknown-method")
        #expect(try await rule(.post, "/v1/streams", token: admin, body: "x") == "wrong-type")
        #expect(try await rule(.post, "/v1/streams", token: admin, json, body: "x") == "malformed-request")
        #expect(
            try await rule(.post, "/v1/tokens", token: admin, json, body: #"{"sub":"","role":"host"}"#)
                == "invalid-field")
        let answer = await bench.ask(
            .post, "/v1/streams", token: admin, json, body: #"{"programme":"composite"}"#)
        #expect(
            try answer.json(JSON.self)["detail"]?.string
                == "programme must be one of host, active-speaker, composed.")
    }

    @Test func `quote labels`() {
        let label = Metric.Label("name", "a\"b\\c\nd")
        let metric = Metric("m", .counter, "Help.", [Metric.Sample(1.5, [label])])
        #expect([metric].text == "# HELP m Help.\n# TYPE m counter\nm{name=\"a\\\"b\\\\c\\nd\"} 1.5\n")
    }

    @Test func `serve the pages and what they need`() async throws {
        let bench = try Bench()
        for (path, type) in [
            ("/", "text/html; charset=utf-8"), ("/live/s1", "text/html; charset=utf-8"),
            ("/watch/s1", "text/html; charset=utf-8"), ("/docs/player", "text/html; charset=utf-8"),
            ("/check", "text/html; charset=utf-8"),
            ("/assets/style.css", "text/css; charset=utf-8"),
            ("/assets/watch.js", "text/javascript; charset=utf-8"),
            ("/assets/v1/story-feed.js", "text/javascript; charset=utf-8"),
            ("/assets/v1/feed/session.js", "text/javascript; charset=utf-8"),
            ("/assets/v1/rostrum-player.js", "text/javascript; charset=utf-8"),
            ("/assets/v1/rostrum-player.d.ts", "text/plain; charset=utf-8"),
            ("/assets/icon.svg", "image/svg+xml"), ("/assets/build-x/icon.svg", "image/svg+xml"),
        ] {
            let response = await bench.ask(.get, path)
            #expect(response.status == 200)
            #expect(response.headers["content-type"] == type)
            #expect(response.headers["content-security-policy"]?.contains("default-src 'none'") == true)
            #expect(response.headers["x-content-type-options"] == "nosniff")
            let isAsset = path.hasPrefix("/assets/")
            #expect(response.headers["access-control-allow-origin"] == (isAsset ? "*" : nil))
            let tag = try #require(response.headers["etag"])
            let again = await bench.ask(.get, path, ["If-None-Match": "\"x\", W/\(tag)"])
            #expect(again.status == 304)
            #expect(again.body.isEmpty)
        }
        #expect(await bench.ask(.get, "/live/a.b").status == 404)
    }

    @Test(arguments: [
        "/assets/../index.html", "/assets/..", "/assets/", "/assets/none.js",
        "/assets//style.css/../../index.html",
        "/assets/style.css/x", "/assets/v1/", "/assets/v1/v1/style.css", "/assets/v2/style.css",
        "/assets/build-x", "/assets/build-x/", "/assets/build-x/v1/style.css",
        "/assets/build-x/../index.html",
        "/assets/%2e%2e/index.html", "/index.html", "/Web/index.html",
    ])
    func `serve no other files`(_ path: String) async throws {
        #expect(await (try Bench()).ask(.get, path).status == 404)
    }
}

extension Route {
    /// Whether it is part of the web client, which `openapi.json` does not describe.
    var isOfWebClient: Bool { audience == .people || audience == .pages }
}
