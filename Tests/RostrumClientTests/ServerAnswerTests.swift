import Foundation
import HTTP
import HTTPTestSupport
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import RostrumClient

@Suite struct `What a refusal means` {
    private static func refusal(
        _ status: Int, _ rule: String? = nil, after: Duration? = nil
    ) -> RostrumError {
        .refused(status: status, rule: rule, detail: "", retryAfter: after)
    }

    @Test(arguments: [
        (400, false), (401, false), (403, false), (404, true), (405, false), (408, true), (409, true),
        (410, false), (422, false), (425, true), (429, true), (499, false), (500, true), (503, true),
        (599, true),
    ])
    func `is that it may pass, or is final`(status: Int, isTemporary: Bool) {
        #expect(Self.refusal(status).isTemporary == isTemporary)
    }

    @Test func `is final where a request makes no sense, and not where nobody answers`() {
        #expect(!RostrumError.unusable("x").isTemporary)
        #expect(RostrumError.unreachable("x").isTemporary && RostrumError.notConnected.isTemporary)
    }

    @Test func `is a pause only where the server asks for one`() {
        #expect(Self.refusal(429, after: .seconds(7)).pauseAsked == .seconds(7))
        #expect(Self.refusal(429).pauseAsked == .zero)
        #expect(RostrumError.unreachable("x").pauseAsked == .zero)
        #expect(RostrumError.notConnected.pauseAsked == .zero)
    }

    @Test func `is told to the app by its reason`() {
        #expect(SessionRunner.reason(of: Self.refusal(401, "banned")) == .expired)
        #expect(SessionRunner.reason(of: Self.refusal(403, "banned")) == .banned)
        #expect(SessionRunner.reason(of: Self.refusal(403, "link-revoked")) == .revoked)
        let other = Self.refusal(403, "other-stream")
        #expect(SessionRunner.reason(of: other) == .refused(other))
        #expect(SessionRunner.reason(of: .unusable("x")) == .refused(.unusable("x")))
    }
}

@Suite(.timeLimit(.minutes(10))) struct `An answer to an app` {
    /// What one request to a server that answers so ends with.
    private func result(
        of response: HTTPResponse, _ request: HTTPClient.Request = .init(path: "/x")
    ) async throws -> Result<HTTPClient.Answer, RostrumError> {
        var found: Result<HTTPClient.Answer, RostrumError>?
        try await withServer(ClosureHandler(answer: { _ in response })) { server in
            let client = HTTPClient(try #require(URL(string: "http://\(server.address)")))
            do throws(RostrumError) {
                found = .success(try await client.send(request))
            } catch {
                found = .failure(error)
            }
        }
        return try #require(found)
    }

    private func refusal(by response: HTTPResponse) async throws -> RostrumError? {
        guard case .failure(let error) = try await result(of: response) else { return nil }
        return error
    }

    @Test(
        arguments: [
            (#"{"rule":"not-host","detail":"Only hosts do."}"#, "not-host", "Only hosts do."),
            (#"{"title":"Forbidden"}"#, nil, "Forbidden"), ("{}", nil, "status 403"), ("", nil, "status 403"),
            ("<html>", nil, "status 403"), (#"{"rule":7,"detail":null,"title":"T"}"#, nil, "T"),
            ("[]", nil, "status 403"),
        ] as [(String, String?, String)])
    func `is a refusal with its rule and its words`(
        body: String, rule: String?, detail: String
    ) async throws {
        let found = try await refusal(by: HTTPResponse(status: 403, body: Array(body.utf8)))
        #expect(found == .refused(status: 403, rule: rule, detail: detail, retryAfter: nil))
    }

    @Test(
        arguments: [
            ("5", .seconds(5)), ("0", .zero), ("-3", .zero), ("3600", .seconds(3_600)),
            ("99999", .seconds(3_600)), ("1.5", nil), ("soon", nil), ("Wed, 21 Oct 2015 07:28:00 GMT", nil),
            ("99999999999999999999", nil),
        ] as [(String, Duration?)])
    func `may ask to wait, for an hour at most`(value: String, pause: Duration?) async throws {
        let found = try await refusal(by: HTTPResponse(status: 429, headers: ["Retry-After": value]))
        #expect(found == .refused(status: 429, rule: nil, detail: "status 429", retryAfter: pause))
    }

    @Test func `leads to where it says, from where it was given`() async throws {
        let created = HTTPResponse(status: 201, headers: ["Location": "y/1?a=b"], body: [1, 2])
        let answer = try await result(of: created, .init(method: "POST", path: "/v1/x")).get()
        #expect(answer.status == 201 && answer.body == Data([1, 2]))
        #expect(answer.location?.path == "/v1/y/1" && answer.location?.query == "a=b")
        #expect(answer.location?.host == "127.0.0.1" && answer.url.path == "/v1/x")
        #expect(try await result(of: HTTPResponse(status: 204)).get().location == nil)
    }

    @Test(
        arguments: [
            (307, "POST", "POST /b offer t"), (308, "PATCH", "PATCH /b offer t"), (302, "POST", "GET /b  t"),
            (303, "PUT", "GET /b  t"), (301, "PUT", "PUT /b offer t"),
        ])
    func `is that of the address to which the server sends the request on`(
        status: Int, method: String, expected: String
    ) async throws {
        let handler = ClosureHandler(answer: { request in
            guard request.path != "/a" else {
                return HTTPResponse(status: status, headers: ["Location": "/b"])
            }
            let token = request.headers["authorization"]?.dropFirst("Bearer ".count) ?? "-"
            let body = String(decoding: request.body, as: UTF8.self)
            let text = "\(request.method.rawValue) \(request.path) \(body) \(token)"
            return HTTPResponse(status: 200, body: Array(text.utf8))
        })
        try await withServer(handler) { server in
            let client = HTTPClient(try #require(URL(string: "http://\(server.address)")))
            var request = HTTPClient.Request(method: method, path: "/a", token: "t")
            request.body = Data("offer".utf8)
            request.contentType = "application/sdp"
            let answer = try await client.send(request)
            #expect(String(decoding: answer.body, as: UTF8.self) == expected)
            #expect(answer.url.path == "/b")
        }
    }

    @Test func `is none where a server sends the request on and on`() async throws {
        let loop = HTTPResponse(status: 307, headers: ["Location": "/x"])
        #expect(try await refusal(by: loop) == .unusable("more than 5 redirects"))
        // Without an address there is nothing to follow.
        let nowhere = try await refusal(by: HTTPResponse(status: 307))
        #expect(nowhere == .refused(status: 307, rule: nil, detail: "status 307", retryAfter: nil))
    }

    @Test(
        arguments: [
            ("http://a/x", "https://a/y", true), ("https://a/x", "http://a/y", false),
            ("https://a/x", "https://b/y", false), ("https://a/x", "https://a:444/y", false),
            ("https://a/x", "/y", true), ("https://a/x", "https://A/y", true),
        ])
    func `takes the token along to the same server only`(
        from: String, target: String, keepsToken: Bool
    ) throws {
        let url = try #require(URL(string: from))
        var request = URLRequest(url: url)
        request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
        let response = try #require(
            HTTPURLResponse(
                url: url, statusCode: 307, httpVersion: nil, headerFields: ["Location": target]))
        let next = try #require(Redirect(of: request, by: response)).request
        #expect(next.url?.path == "/y")
        #expect((next.value(forHTTPHeaderField: "Authorization") != nil) == keepsToken)
    }

    @Test func `is to what was asked`() async throws {
        let seen = Watched<[String]>([])
        let handler = ClosureHandler(answer: { request in
            let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
            let body = String(decoding: request.body, as: UTF8.self)
            let token = request.headers["authorization"] ?? "-"
            seen.change { $0.append("\(request.method.rawValue) \(request.path) \(query) \(token) \(body)") }
            return HTTPResponse(status: 200, body: Array("{}".utf8))
        })
        try await withServer(handler) { server in
            let stream = RostrumServer(
                try #require(URL(string: "http://\(server.address)/ignored?x=1")), sockets: FakeSockets()
            ).stream("a b", tokens: .fixed("t"))
            try await stream.goLive()
            try await stream.lowerHand(of: "ä b")
            try await stream.react(["heart": 3])
            _ = try await stream.comments(after: 7)
            try await stream.call("PUT", "/recording")
        }
        #expect(
            seen.value == [
                "POST /v1/streams/a b/live  Bearer t ", "DELETE /v1/streams/a b/hands/ä b  Bearer t ",
                #"POST /v1/streams/a b/reactions  Bearer t {"reactions":{"heart":3}}"#,
                "GET /v1/streams/a b/comments after=7 Bearer t ", "PUT /v1/streams/a b/recording  Bearer t ",
            ])
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A token that the server gives` {
    /// Ends in 2030.
    private static let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjE4OTM1MjgwMDB9.c2ln"
    private static let end = Date(timeIntervalSince1970: 1_893_528_000)

    /// What the server was asked: path, token, and the members of the body.
    private let requests = Watched<[String]>([])

    /// Runs a server that gives `token` to those who have none, and `renewal` to others; nil is a refusal.
    private func withKeeper(
        _ source: TokenSource, renewal: String? = nil, _ body: (TokenKeeper) async throws -> Void
    ) async throws {
        let handler = ClosureHandler(answer: { [requests] request in
            let members = (try? JSONDecoder().decode([String: String].self, from: Data(request.body))) ?? [:]
            let shown = members.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let bearer = request.headers["authorization"]
            requests.change {
                $0.append("\(request.path) \(bearer ?? "-") \(shown.joined(separator: ","))")
            }
            guard let token = bearer == nil ? Self.token : renewal else {
                return HTTPResponse(status: 401)
            }
            return HTTPResponse(status: 200, body: Array(#"{"token":"\#(token)"}"#.utf8))
        })
        try await withServer(handler) { server in
            let url = try #require(URL(string: "http://\(server.address)"))
            try await body(TokenKeeper(HTTPClient(url), stream: "talk", source: source))
        }
    }

    @Test func `is a guest's, and one for all who ask at once`() async throws {
        try await withKeeper(.guest(name: "Ann")) { keeper in
            async let first = keeper.current(at: .distantPast)
            async let second = keeper.current(at: .distantPast)
            let both = try await [first, second]
            #expect(both == [Self.token, Self.token])
        }
        #expect(requests.value == ["/v1/streams/talk/tokens - name=Ann"])
    }

    @Test func `is in exchange for an invitation, without a name if there is none`() async throws {
        try await withKeeper(.invitation("invited", name: nil), renewal: "mine") { keeper async throws in
            #expect(try await keeper.current() == "mine")
        }
        #expect(requests.value == ["/v1/streams/talk/tokens Bearer invited "])
    }

    @Test func `is for development, with all that it is to say`() async throws {
        try await withKeeper(.development(.host, identity: "ann", name: "Ann")) { keeper async throws in
            #expect(try await keeper.current(at: .distantPast) == Self.token)
            #expect(await keeper.identity == "ann")
        }
        #expect(requests.value == ["/v1/tokens - name=Ann,role=host,stream=talk,sub=ann"])
    }

    @Test func `is renewed before its end, and not before that`() async throws {
        try await withKeeper(.guest(name: nil), renewal: "fresh") { keeper async throws in
            #expect(try await keeper.current(at: .distantPast) == Self.token)
            #expect(try await keeper.current(at: Self.end.addingTimeInterval(-61)) == Self.token)
            #expect(requests.value.count == 1)
            #expect(try await keeper.current(at: Self.end.addingTimeInterval(-60)) == "fresh")
            #expect(try await keeper.current(at: Self.end.addingTimeInterval(999)) == "fresh")
        }
        let path = "/v1/streams/talk/tokens"
        #expect(requests.value == ["\(path) - ", "\(path) Bearer \(Self.token) "])
    }

    /// A guest who is refused a fresh token stays who they are, until the end.
    @Test func `is not another guest's before its end`() async throws {
        try await withKeeper(.guest(name: nil)) { keeper in
            _ = try await keeper.current(at: .distantPast)
            let late = Self.end.addingTimeInterval(-1)
            #expect(try await keeper.current(at: late) == Self.token)
        }
        #expect(requests.value.map { $0.contains("Bearer") } == [false, true])
    }

    @Test func `fails where an answer holds none`() async throws {
        let handler = ClosureHandler(answer: { _ in HTTPResponse(status: 200, body: Array("{}".utf8)) })
        try await withServer(handler) { server in
            let url = try #require(URL(string: "http://\(server.address)"))
            let keeper = TokenKeeper(HTTPClient(url), stream: "talk", source: .guest(name: nil))
            let failure = RostrumError.unusable("no token in the answer of /v1/streams/talk/tokens")
            await #expect(throws: failure) { try await keeper.current() }
        }
    }

    @Test func `is not asked for where the app keeps one`() async throws {
        try await withKeeper(.none, renewal: "other") { keeper async throws in
            #expect(try await keeper.current() == nil)
            await keeper.keep("kept")
            #expect(try await keeper.current() == "kept")
            #expect(try await keeper.replacement(for: "older") == "kept")
            #expect(try await keeper.replacement(for: "kept") == nil)
        }
        #expect(requests.value.isEmpty)
    }
}
