import Base
import HTTPTestSupport
import Synchronization
import Testing

@testable import HTTP

@Suite(.timeLimit(.minutes(10))) struct HTTPServerTests {
    @Test(arguments: HTTPMethod.allCases)
    func `delivers every method`(_ method: HTTPMethod) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            let hasBody = [.post, .put, .patch].contains(method)
            let body = hasBody ? "Content-Length: 5\r\n\r\nhello" : "\r\n"
            try await client.send("\(method.rawValue) /a/b?x=1&y=a%26b HTTP/1.1\r\nHost: h\r\n\(body)")
            let response = try await client.response(toHead: method == .head)
            #expect(response.status == 200)
            let expected = "\(method.rawValue)\n/a/b\nx=1&y=a&b\n\(hasBody ? "hello" : "")"
            #expect(response.headers["content-length"] == "\(expected.utf8.count)")
            if method != .head { #expect(response.text == expected) }
        }
    }

    @Test func `delivers headers, the body's bytes and the address`() async throws {
        let seen = Mutex<HTTPRequest?>(nil)
        let handler = ClosureHandler(answer: { request in
            seen.withLock { $0 = request }
            return HTTPResponse(status: 204)
        })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            try await client.send(
                "PATCH /s HTTP/1.1\r\nHost: h\r\nIf-Match: \"abc\"\r\nauthorization: Bearer x.y.z\r\n"
                    + "Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\n")
            try await client.send([0, 255, 10])
            let response = try await client.response()
            #expect(response.status == 204)
            #expect(response.headers["content-length"] == nil)
            let request = try #require(seen.withLock { $0 })
            #expect(request.headers["if-match"] == "\"abc\"")
            #expect(request.headers["Authorization"] == "Bearer x.y.z")
            #expect(request.body == [0, 255, 10])
            #expect(request.remoteAddress.ip == .loopback)
            #expect(!request.isSecure)
        }
    }

    /// The header of the second has a space after its brace.
    @Test(arguments: [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmVk",
        "eyAiYWxnIjoiSFMyNTYifQ.eyJzdWIiOiJib2IifQ.c2lnbmVk",
    ])
    func `writes no token into its log`(_ token: String) {
        let inPath = HTTPRequest(method: .get, path: "/hls/aurora/t/\(token)/media.m3u8")
        #expect(inPath.loggedTarget == "/hls/aurora/t/<secret>/media.m3u8")
        let file = HTTPRequest(method: .get, path: "/assets/story-feed.d.ts")
        #expect(file.loggedTarget == "/assets/story-feed.d.ts")
        let query = [HTTPRequest.QueryItem(name: "a", value: "1"), .init(name: "access_token", value: token)]
        let inQuery = HTTPRequest(method: .get, path: "/v1/sync/", query: query)
        #expect(inQuery.loggedTarget == "/v1/sync/?a=1&access_token=<secret>")
    }

    @Test func `keeps a connection for the next request`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            for number in 0..<5 {
                try await client.send("GET /\(number) HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.response().text.contains("/\(number)\n"))
                try await client.send("POST /\(number) HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
                #expect(try await client.response().text.hasSuffix("ab"))
            }
        }
    }

    @Test func `answers requests sent in one go in their order`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send(
                "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
                    + "DELETE /3 HTTP/1.1\r\nHost: h\r\n\r\nGET /4 HTTP/1.1\r\nHost: h\r\n\r\n")
            for number in 1...4 {
                #expect(try await client.response().text.contains("/\(number)\n"))
            }
        }
    }

    /// libwebsockets 4.1 would loop for ever, or read freed memory.
    @Test(arguments: [2, 500]) func `takes no body that comes before the last answer`(_ length: Int)
        async throws
    {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send(
                "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\nab"
            )
            #expect(try await client.response().status == 200)
            #expect(try await client.response().status == 400)
            #expect(try await client.receive().isEmpty)
        }
    }

    @Test func `closes when the client asks for it`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(try await client.response().status == 200)
            #expect(try await client.receive().isEmpty)
        }
    }

    @Test func `answers a client that has finished sending`() async throws {
        let (released, release) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { request in
            if request.path == "/last" { for await _ in released { break } }
            return ClosureHandler.echo(request)
        })
        try await withServer(handler) { server in
            for text in [
                "GET /last HTTP/1.1\r\nHost: h\r\n\r\n",
                "POST /last HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
            ] {
                let client = try RawClient(server.address)
                try await client.send(text)
                client.finish()
                // A server that has answered somebody who came later knows that this one has finished.
                let other = try RawClient(server.address)
                try await other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await other.response().status == 200)
                release.yield()
                #expect(try await client.response().status == 200)
            }
        }
    }

    @Test func `sends a large body whole to a slow reader`() async throws {
        let large = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        let handler = ClosureHandler(answer: { _ in HTTPResponse(status: 200, body: large) })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            for _ in 0..<2 {
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.response().body == large)
            }
        }
    }

    /// What lies at hand and what does not, in turns on one connection; large bodies take many writes.
    @Test func `answers at once what lies at hand`() async throws {
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        let asked = Mutex<[String]>([])
        let handler = ClosureHandler(
            answer: { request in
                asked.withLock { $0.append(request.path) }
                return ClosureHandler.echo(request)
            }, atOnce: { $0.path.hasPrefix("/hand") ? HTTPResponse(status: 200, body: large) : nil })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            for number in 0..<3 {
                // In one go; the second comes while the first is being sent.
                try await client.send(
                    "GET /hand\(number) HTTP/1.1\r\nHost: h\r\n\r\nHEAD /hand HTTP/1.1\r\nHost: h\r\n\r\n"
                        + "GET /\(number) HTTP/1.1\r\nHost: h\r\n\r\nGET /hand HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.response().body == large)
                let head = try await client.response(toHead: true)
                #expect(head.status == 200 && head.headers["content-length"] == "1000000")
                #expect(try await client.response().text.hasPrefix("GET\n/\(number)\n"))
                #expect(try await client.response().body == large)
                try await client.send(
                    "POST /hand HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
                #expect(try await client.response().body == large)
            }
            try await client.send("GET /hand HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            #expect(try await client.response().body == large)
            #expect(try await client.receiveToEnd().isEmpty)
        }
        #expect(asked.withLock { $0 } == ["/0", "/1", "/2"])
    }

    @Test func `keeps line breaks out of headers`() async throws {
        let handler = ClosureHandler(answer: { _ in
            HTTPResponse(status: 200, headers: ["Location": "/a\r\nSet-Cookie: evil=1"])
        })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try await client.response()
            #expect(response.headers["set-cookie"] == nil)
            #expect(response.headers["location"] == "/a  Set-Cookie: evil=1")
        }
    }

    @Test(arguments: [
        "/../../etc/passwd", "/a/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/./passwd",
    ])
    func `resolves dots in the path`(_ target: String) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.response().text.hasPrefix("GET\n/etc/passwd\n"))
        }
    }

    @Test func `survives a client that leaves before the answer`() async throws {
        let (released, release) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { request in
            if request.path == "/wait" { for await _ in released { break } }
            return HTTPResponse(status: 200, body: [UInt8](repeating: 7, count: 1_000_000))
        })
        try await withServer(handler) { server in
            do {
                let client = try RawClient(server.address)
                try await client.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
                client.reset()
            }
            let other = try RawClient(server.address)
            try await other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await other.response().status == 200)
            release.yield()
            try await other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await other.response().status == 200)
        }
    }

    @Test func `speaks HTTP 1.0`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send("GET /old HTTP/1.0\r\n\r\n")
            #expect(try await client.response().status == 200)
            #expect(try await client.receive().isEmpty)
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct RequestBodies {
    @Test func `may be as large as the limit and no larger`() async throws {
        try await withServer {
            $0.maximumBodyBytes = 1_000
        } _: { server in
            for (size, status) in [(1_000, 200), (1_001, 413), (10_000_000, 413)] {
                let client = try RawClient(server.address)
                try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
                try? await client.send([UInt8](repeating: 65, count: size))
                let response = try await client.response()
                #expect(response.status == status, "size \(size)")
                #expect(response.headers["connection"] == (status == 413 ? "close" : nil))
            }
        }
    }

    @Test func `are refused before they come when they say that they are too large`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 999999\r\n\r\n")
            #expect(try await client.response().status == 413)
        }
    }

    @Test func `may come in chunks`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            for byte in (head + "5;x=y\r\nhello\r\nA\r\n, chunked!\r\n0\r\nTrailer: 1\r\n\r\n").utf8 {
                try await client.send([byte])
            }
            let response = try await client.response()
            #expect(response.text.hasSuffix("\nhello, chunked!"))
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test func `in chunks obey the limit`() async throws {
        try await withServer {
            $0.maximumBodyBytes = 100
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n"
                    + String(repeating: "a", count: 101))
            #expect(try await client.response().status == 413)
        }
    }

    @Test func `are empty without a length`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send("POST /none HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try await client.response()
            #expect(response.text == "POST\n/none\n\n")
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test(arguments: ["POST", "PATCH", "PUT", "DELETE", "GET", "OPTIONS"])
    func `may have the length zero`(_ method: String) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            for _ in 0..<2 {
                try await client.send("\(method) /zero HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
                let response = try await client.response()
                #expect(response.text == "\(method)\n/zero\n\n")
                if response.headers["connection"] == "close" { return }
            }
        }
    }

    @Test(arguments: ["DELETE", "GET", "OPTIONS"])
    func `may come with any method`(_ method: String) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            for _ in 0..<2 {
                try await client.send("\(method) / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
                #expect(try await client.response().text.hasSuffix("abc"))
            }
        }
    }

    @Test func `are asked for with 100 Continue`() async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(try await client.response().status == 100)
            try await client.send("ok")
            #expect(try await client.response().text.hasSuffix("ok"))
        }
    }
}
