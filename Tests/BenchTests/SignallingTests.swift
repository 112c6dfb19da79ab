import Base
import Foundation
import HTTP
import HTTPTestSupport
import TURN
import TestSupport
import Testing

@testable import sfu_bench

/// Patient: a busy machine is no server that does not answer.
private let client = SignallingClient(connections: 2, timeout: 3_600)

private func url(_ server: HTTPServer, _ path: String) throws -> URL {
    try #require(URL(string: "http://\(server.address)\(path)"))
}

@Suite(.timeLimit(.minutes(10))) struct `A request of the bench` {
    /// Why a request fails that gets this response; nil if it does not.
    private func error(for response: HTTPResponse) async throws -> SignallingError? {
        var found: SignallingError?
        try await withServer(ClosureHandler(answer: { _ in response })) { server in
            let address = try url(server, "/x")
            do throws(SignallingError) {
                _ = try await client.get(address)
            } catch {
                found = error
            }
        }
        return found
    }

    @Test(arguments: [
        (#"{"type":"about:blank","title":"T","detail":"no such stream"}"#, "no such stream"),
        (#"{"title":"Not Found"}"#, "Not Found"), (#"{"status":404}"#, ""),
        (#"{"detail":7}"#, #"{"detail":7}"#),
        (#"{"detail":"two\nlines \u001b[31m"}"#, "two lines  [31m"), ("[1]", "[1]"), ("plain\r\n", "plain  "),
        ("", ""),
    ])
    func `is refused for the reason that the server gives`(body: String, detail: String) async throws {
        let found = try await error(for: HTTPResponse(status: 404, body: Array(body.utf8)))
        #expect(found == .refused(status: 404, detail: detail))
        #expect(found?.description == "HTTP 404" + (detail.isEmpty ? "" : ": " + detail))
    }

    @Test func `is refused in few words, however many the server has`() async throws {
        let page = String(repeating: "<p>", count: 5_000)
        let plain = try await error(for: HTTPResponse(status: 500, body: Array(page.utf8)))
        #expect(plain == .refused(status: 500, detail: String(page.prefix(200))))
        let problem = #"{"detail":""# + page + #""}"#
        let told = try await error(for: HTTPResponse(status: 500, body: Array(problem.utf8)))
        #expect(told == plain)
    }

    @Test(
        arguments: [
            ("10", 10), ("0", 0), ("1.5", 1.5), ("86400", 86_400), ("86401", nil), ("-1", nil), ("nan", nil),
            ("inf", nil), ("soon", nil), ("Wed, 21 Oct 2015 07:28:00 GMT", nil),
        ] as [(String, Double?)])
    func `comes again when it is told to, within a day`(value: String, seconds: Double?) async throws {
        let found = try await error(for: HTTPResponse(status: 503, headers: ["Retry-After": value]))
        #expect(found == .refused(status: 503, detail: "", retryAfter: seconds))
        #expect(found?.retryAfter == seconds && found?.isTemporary == true)
    }

    @Test func `gets nothing but a page that is there`() async throws {
        #expect(try await error(for: HTTPResponse(status: 200)) == nil)
        #expect(try await error(for: HTTPResponse(status: 202)) == .refused(status: 202, detail: ""))
    }

    @Test func `has its session where the answer says, with its relay`() async throws {
        let link = #"<turn:127.0.0.1:3478?transport=udp>; rel="ice-server"; username="u"; credential="p""#
        let seen = Watched<[String]>([])
        let handler = ClosureHandler(answer: { request in
            let body = String(decoding: request.body, as: UTF8.self)
            seen.change {
                $0.append("\(request.method.rawValue) \(request.headers["authorization"] ?? "none") \(body)")
            }
            let headers: HTTPHeaders =
                request.path == "/whip/talk" ? ["Location": "../sessions/7?a=b", "Link": link] : [:]
            return HTTPResponse(status: 201, headers: headers, body: Array("answer".utf8))
        })
        try await withServer(handler) { server in
            let answer = try await client.post(offer: "offer", to: try url(server, "/whip/talk"), token: "t")
            let session = try url(server, "/sessions/7?a=b")
            #expect(answer.sdp == "answer" && answer.session == session)
            #expect(answer.relay?.username == "u" && answer.relay?.address.port == 3_478)
            let bare = try await client.post(offer: "o", to: try url(server, "/other"), token: nil)
            #expect(bare.session == nil && bare.relay == nil)
        }
        #expect(seen.value == ["POST Bearer t offer", "POST none o"])
    }

    @Test func `is repeated with its body where it is redirected`() async throws {
        let handler = ClosureHandler(answer: { request in
            guard request.path == "/b/whip" else {
                return HTTPResponse(status: 307, headers: ["Location": "/b/whip"])
            }
            guard !request.body.isEmpty else { return .text(400, "no offer") }
            return HTTPResponse(status: 201, headers: ["Location": "session"], body: request.body)
        })
        try await withServer(handler) { server in
            let answer = try await client.post(offer: "offer", to: try url(server, "/a"), token: nil)
            let session = try url(server, "/b/session")
            #expect(answer.sdp == "offer" && answer.session == session)
        }
    }

    /// Load is meant for the host that the user named.
    @Test func `is not repeated on another host`() async throws {
        let handler = ClosureHandler(answer: { request in
            guard request.path != "/b" else { return HTTPResponse(status: 201, body: request.body) }
            let port = request.headers["host"]?.split(separator: ":").last ?? ""
            return HTTPResponse(status: 307, headers: ["Location": "http://localhost:\(port)/b"])
        })
        try await withServer(handler) { server in
            let address = try url(server, "/a")
            await #expect(throws: SignallingError.self) {
                try await client.post(offer: "offer", to: address, token: nil)
            }
        }
    }

    @Test(arguments: [(200, true), (204, true), (404, true), (401, false), (409, false), (500, false)])
    func `that ends a session may find it ended`(status: Int, isWell: Bool) async throws {
        try await withServer(ClosureHandler(answer: { _ in HTTPResponse(status: status) })) { server in
            let address = try url(server, "/sessions/7")
            var isDone = true
            do throws(SignallingError) {
                try await client.delete(address, token: nil)
            } catch {
                isDone = false
            }
            #expect(isDone == isWell)
            // Whether the server knows a session is another question.
            let isKnown = await client.knows(address, token: nil)
            #expect(isKnown == (200..<300).contains(status))
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The source of tokens` {
    private struct Claims: Decodable, Equatable {
        var iss: String
        var sub: String
        var name: String
        var stream: String
        var role: String
        var nbf: Int
        var exp: Int
    }

    private func claims(of token: String?) throws -> Claims {
        let parts = try #require(token).split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        let body = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - body.count % 4) % 4)
        return try JSONDecoder().decode(Claims.self, from: try #require(Data(base64Encoded: body + padding)))
    }

    @Test func `is the user's own token before any secret`() async throws {
        var options = Options(.play)
        (options.target.token, options.target.secret) = ("mine", "secret")
        let source = await TokenSource(options, client: client)
        #expect(try await source.token(for: "ann", .viewer, "s", client) == "mine")
        // Sessions with one token are one viewer, who gets two streams at most.
        #expect(try await source.token(for: "ann", .viewer, "s", client, scope: .feed) == nil)
    }

    @Test func `signs for each identity, and for all streams of a feed`() async throws {
        var options = Options(.feed)
        options.target.secret = "secret"
        let source = await TokenSource(options, client: client)
        let signed = try await source.token(for: "ann", .host, "s", client, name: "Ann \"A\" 😀")
        let ann = try claims(of: signed)
        #expect(ann.iss == "dev" && ann.sub == "ann" && ann.name == "Ann \"A\" 😀")
        #expect(ann.stream == "s" && ann.role == "host" && ann.exp - ann.nbf == 86_460)
        options.target.keyID = "main"
        let other = await TokenSource(options, client: client)
        let ben = try claims(of: try await other.token(for: "ben", .viewer, "s", client, scope: .feed))
        #expect(ben.iss == "main" && ben.name == "ben" && ben.stream == "*" && ben.role == "viewer")
    }

    @Test func `is the server's own where it has tokens for development`() async throws {
        struct Asked: Decodable {
            var sub: String
            var role: String
            var stream: String
            var ttl: Int
        }
        let handler = ClosureHandler(answer: { request in
            guard request.path == "/v1/tokens", request.method == .post,
                let asked = try? JSONDecoder().decode(Asked.self, from: Data(request.body))
            else { return HTTPResponse(status: 404) }
            let words = "\(asked.sub) \(asked.role) \(asked.stream) \(asked.ttl)"
            return HTTPResponse(status: 200, body: Array(#"{"token":"\#(words)"}"#.utf8))
        })
        try await withServer(handler) { server in
            var options = Options(.load)
            options.server = try ServerAddress(parsing: "\(server.address)")
            let source = await TokenSource(options, client: client)
            let token = try await source.token(for: "ann", .host, "talk", client)
            #expect(token == "ann host talk 86400")
            let viewer = try await source.token(for: "ann", .viewer, "talk", client, scope: .feed)
            #expect(viewer == nil)
        }
    }

    @Test(arguments: [(404, #"{"token":"t"}"#), (200, "{}"), (200, "t"), (401, "")])
    func `is none where a server has none`(status: Int, body: String) async throws {
        let handler = ClosureHandler(answer: { _ in
            HTTPResponse(status: status, body: Array(body.utf8))
        })
        try await withServer(handler) { server in
            var options = Options(.load)
            options.server = try ServerAddress(parsing: "\(server.address)")
            let source = await TokenSource(options, client: client)
            let token = try await source.token(for: "ann", .host, "talk", client)
            #expect(token == nil)
        }
    }

    /// Another machine is not asked for tokens that only a server for development gives.
    @Test func `is none on another machine`() async throws {
        var options = Options(.load)
        options.server = try ServerAddress(parsing: "http://192.0.2.1")
        let source = await TokenSource(options, client: client)
        guard case .none = source else {
            Issue.record("\(source)")
            return
        }
    }
}
