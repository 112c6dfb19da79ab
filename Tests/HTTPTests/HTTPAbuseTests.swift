import Base
import HTTPTestSupport
import Synchronization
import TestSupport
import Testing

@testable import HTTP

@Suite(.timeLimit(.minutes(10))) struct HTTPAbuse {
    private static let alive = "GET /alive HTTP/1.1\r\nHost: h\r\n\r\n"

    private func expectAlive(_ server: HTTPServer) async throws {
        let client = try RawClient(server.address)
        try await client.send(Self.alive)
        #expect(try await client.response().status == 200)
    }

    struct Nuisance: CustomTestStringConvertible {
        let testDescription: String
        let bytes: String
        let status: Int

        init(_ name: String, _ bytes: String, _ status: Int) {
            testDescription = name
            self.bytes = bytes
            self.status = status
        }

        init(post name: String, _ headers: String, _ status: Int) {
            self.init(name, "POST / HTTP/1.1\r\nHost: h\r\n\(headers)\r\n\r\nzz\r\n", status)
        }
    }

    @Test(arguments: [
        Nuisance("TLS", "\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}", 400),
        Nuisance("no HTTP", "HELLO\r\n\r\n", 400),
        Nuisance("an unknown method", "BREW /pot HTTP/1.1\r\n\r\n", 501),
        Nuisance("no host", "GET / HTTP/1.1\r\n\r\n", 400),
        Nuisance("no version", "GET /\r\n\r\n", 400),
        Nuisance("an unknown version", "GET / SPDY/3\r\nHost: h\r\n\r\n", 400),
        Nuisance("HTTP/2 out of the blue", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        Nuisance("CONNECT", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        Nuisance("a zero byte behind a slash", "GET /%00a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        Nuisance("the end of a line", "GET /a%0d%0ab HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        Nuisance("a line feed", "GET /a%0ab HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        Nuisance(post: "a negative length", "Content-Length: -1", 400),
        Nuisance(post: "no number", "Content-Length: 1x", 400),
        Nuisance(post: "a huge length", "Content-Length: 99999999999999999999", 400),
        Nuisance(post: "two lengths", "Content-Length: 1\r\nContent-Length: 2", 400),
        Nuisance(post: "two framings", "Content-Length: 1\r\nTransfer-Encoding: chunked", 400),
        Nuisance(post: "an unknown coding", "Transfer-Encoding: gzip", 501),
        Nuisance(post: "no chunks", "Transfer-Encoding: chunked", 400),
        Nuisance("a chunked GET", "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        Nuisance(
            "large headers",
            "GET / HTTP/1.1\r\nHost: h\r\nCookie: \(String(repeating: "b", count: 17_000))\r\n\r\n", 431),
        Nuisance(
            "a large query", "GET /?a=\(String(repeating: "c", count: 17_000)) HTTP/1.1\r\nHost: h\r\n\r\n",
            431),
    ])
    func `gets an answer`(_ nuisance: Nuisance) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            try await client.send(nuisance.bytes)
            let answer = try await client.response()
            #expect(answer.status == nuisance.status)
            // Ours, and not a page of the library's.
            #expect(!answer.text.contains("<"))
            try await expectAlive(server)
        }
    }

    @Test(arguments: [
        "/a%00", "/%00", "/a%00/b", "/%2500", "/%c0%af", "/%ff", "/%e2%82", "/%7f", "/%2f%2f", "/%2e%2e%2f",
        "/%3f",
        "/%23", "/%20", "/%01%02%1f", "/a?%00", "/a?%00=%00", "/a?b=%ff&c=%zz", "/%u0041", "/%%", "/%0",
        "/%-1",
    ])
    func `in an address gets one answer at most, however it is written`(_ target: String) async throws {
        let seen = Mutex<[HTTPRequest]>([])
        let handler = ClosureHandler(answer: { request in
            seen.withLock { $0.append(request) }
            return ClosureHandler.echo(request)
        })
        try await withServer(handler) { server in
            // On a connection of its own, and behind a good request.
            for earlier in ["", Self.alive] {
                let client = try RawClient(server.address)
                if !earlier.isEmpty {
                    try await client.send(earlier)
                    #expect(try await client.response().status == 200)
                }
                try await client.send("GET \(target) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1."), "\(target) \(answer)")
                #expect(answer.ranges(of: "HTTP/1.").count <= 1, "\(target) \(answer)")
            }
            try await expectAlive(server)
        }
        // Whatever passes, handlers see no byte of zero.
        let texts = seen.withLock { $0 }.flatMap { [$0.path] + $0.query.flatMap { [$0.name, $0.value] } }
        #expect(texts.allSatisfy { !$0.utf8.contains(0) })
    }

    /// libwebsockets itself answers these, or hangs up.
    @Test(arguments: [
        Nuisance("a zero byte", "GET /a%00b HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance("a zero byte in a query", "GET /a?b=c%00d HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance("half a percent code", "GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance("a lone percent sign", "GET /a% HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance("no percent code", "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance("no percent code in a query", "GET /a?b=%zz HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        Nuisance(
            "an unknown upgrade",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\n", 0),
        Nuisance("two request lines", "GET / HTTP/1.1\r\nGET / HTTP/1.1\r\n\r\n", 0),
        Nuisance(
            "huge headers",
            "GET / HTTP/1.1\r\nHost: h\r\nCookie: \(String(repeating: "b", count: 100_000))\r\n\r\n", 0),
        Nuisance(
            "many headers",
            "GET / HTTP/1.1\r\nHost: h\r\n" + (0..<500).map { "Accept: \($0)\r\n" }.joined() + "\r\n", 0),
    ])
    func `never gets through`(_ nuisance: Nuisance) async throws {
        let paths = Mutex<[String]>([])
        let handler = ClosureHandler(answer: { request in
            paths.withLock { $0.append(request.path) }
            return ClosureHandler.echo(request)
        })
        try await withServer(handler) { server in
            // On a connection of its own, behind a good request, and before one that must not be answered any more.
            for (earlier, later) in [("", ""), (Self.alive, ""), ("", Self.alive), (Self.alive, Self.alive)] {
                let client = try RawClient(server.address)
                if !earlier.isEmpty {
                    try await client.send(earlier)
                    #expect(try await client.response().status == 200)
                }
                try? await client.send(nuisance.bytes + later)
                let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
                #expect(
                    answer.isEmpty || answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.0 4"),
                    "\(answer)")
                #expect(answer.ranges(of: "HTTP/1.").count <= 1, "\(answer)")
                try await expectAlive(server)
            }
        }
        // The good ones: twice before, and four times after.
        #expect(paths.withLock { $0 } == [String](repeating: "/alive", count: 6))
    }

    @Test func `of any random kind does no harm`() async throws {
        try await withServer { server in
            var random = SeededGenerator(seed: 20)
            for _ in 0..<300 {
                let client = try RawClient(server.address)
                try? await client.send(Self.mutation(using: &random))
                if Bool.random(using: &random) { client.finish() }
            }
            try await expectAlive(server)
        }
    }

    private static func mutation(using random: inout SeededGenerator) -> [UInt8] {
        var bytes = Array(
            ("POST /whip/s1?access_token=a.b.c&wait=3 HTTP/1.1\r\nHost: h\r\nContent-Type: application/sdp\r\n"
                + "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 20\r\n\r\n"
                + "v=0\r\no=- 1 1 IN IP4 0").utf8)
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(contentsOf: bytes.prefix(index), at: index)
            default: bytes.removeSubrange(index..<min(bytes.count, index + 9))
            }
        }
        return bytes
    }

    @Test func `by a slow head ends at the time-out`() async throws {
        try await withServer {
            $0.receiveTimeout = .seconds(1)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send("GET / HTTP/1.1\r\nHost:")
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `by a slow body gets 408`() async throws {
        try await withServer {
            // The head has to be there in that time as well, or there would be no answer.
            $0.receiveTimeout = .seconds(5)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nab")
            #expect(try await client.response().status == 408)
        }
    }

    @Test(arguments: [
        ("Content-Length: 8000", "", ""), ("Transfer-Encoding: chunked", "1f40\r\n", "\r\n0\r\n\r\n"),
    ])
    func `by bodies that come slowly leaves room for others`(
        framing: String, before: String, after: String
    ) async throws {
        let head = "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\(framing)\r\n\r\n"
        func begin(_ server: HTTPServer) async throws -> RawClient {
            let client = try RawClient(server.address)
            try await client.send(head)
            // From then on it counts as the elder of those that come later.
            #expect(try await client.response().status == 100)
            return client
        }
        let (most, rest) = (String(repeating: "a", count: 6_000), String(repeating: "b", count: 2_000))
        try await withServer(ClosureHandler(), { $0.maximumPendingBodyBytes = 10_000 }) { server in
            let slow = try await begin(server)
            let quick = try await begin(server)
            try await slow.send(before + most)
            try await quick.send(before + most)
            let refusal = try await slow.response()
            #expect(refusal.status == 503 && refusal.headers["retry-after"] == "1")
            try await quick.send(rest + after)
            #expect(try await quick.response().text.hasSuffix(rest))
            // Nothing remains counted of bodies that were passed on, refused or broken off.
            for _ in 0..<5 {
                let broken = try await begin(server)
                try await broken.send(before + most)
                broken.reset()
                let next = try await begin(server)
                try await next.send(before + most + rest + after)
                #expect(try await next.response().status == 200)
            }
            try await expectAlive(server)
        }
    }

    @Test func `by an idle connection ends`() async throws {
        try await withServer {
            $0.idleTimeout = .milliseconds(300)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send(Self.alive)
            #expect(try await client.response().status == 200)
            #expect(try await client.receive().isEmpty)
        }
    }

    @Test func `by a slow handler gets 503`() async throws {
        let (cancellations, cancelled) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { _ in
            await waitInVain()
            cancelled.yield()
            return HTTPResponse(status: 200)
        })
        try await withServer(handler) {
            $0.handlerTimeout = .milliseconds(300)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send(Self.alive)
            #expect(try await client.response().status == 503)
            for await _ in cancellations { break }
        }
    }

    @Test func `by a slow handler is none where it wants that time`() async throws {
        let (isOver, end) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(
            answer: { request in
                guard request.path == "/long" else {
                    await waitInVain()
                    return HTTPResponse(status: 200)
                }
                for await _ in isOver {}
                return HTTPResponse(status: Task.isCancelled ? 500 : 200)
            }, extraTime: { $0.path == "/long" ? .seconds(3_600) : .zero })
        try await withServer(handler) {
            $0.handlerTimeout = .milliseconds(300)
        } _: { server in
            let long = try RawClient(server.address)
            try await long.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
            let short = try RawClient(server.address)
            try await short.send("GET /short HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await short.response().status == 503)
            end.finish()
            #expect(try await long.response().status == 200)
        }
    }

    @Test func `by too many connections of one address is cut off`() async throws {
        try await withServer {
            $0.limitsLoopback = true
            $0.maximumConnectionsPerAddress = 3
        } _: { server in
            var clients: [RawClient] = []
            for _ in 0..<3 {
                let client = try RawClient(server.address)
                try await client.send(Self.alive)
                #expect(try await client.response().status == 200)
                clients.append(client)
            }
            let fourth = try RawClient(server.address)
            #expect(try await fourth.receive().isEmpty)
            clients.removeLast()
            // The first turn may have begun before the close; in the second the server learns of it.
            for _ in 0..<2 { await server.turn() }
            let again = try RawClient(server.address)
            try await again.send(Self.alive)
            #expect(try await again.response().status == 200)
        }
    }

    @Test func `by too many connections in all waits its turn`() async throws {
        try await withServer {
            $0.maximumConnections = 2
        } _: { server in
            var clients = [try RawClient(server.address), try RawClient(server.address)]
            for client in clients {
                try await client.send(Self.alive)
                #expect(try await client.response().status == 200)
            }
            let third = try RawClient(server.address)
            try await third.send(Self.alive)
            clients.removeAll()
            #expect(try await third.response().status == 200)
        }
    }

    @Test func `by too many requests gets 429`() async throws {
        try await withServer {
            $0.limitsLoopback = true
            $0.requestBurstPerAddress = 5
            // None comes back within the test.
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            let client = try RawClient(server.address)
            for _ in 0..<5 {
                try await client.send(Self.alive)
                #expect(try await client.response().status == 200)
            }
            try await client.send(Self.alive)
            let response = try await client.response()
            #expect(response.status == 429)
            let pause = try #require(response.headers["retry-after"].flatMap { Int($0) })
            #expect(response.headers["ratelimit"] == "\"too-many-requests\";r=0;t=\(pause)")
            #expect(response.headers["ratelimit-policy"]?.hasPrefix(#""too-many-requests";q="#) == true)
            #expect((1...10_000).contains(pause))
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct ServerLife {
    @Test func `ends after what is under way`() async throws {
        let (started, start) = AsyncStream<Void>.makeStream()
        let (released, release) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { request in
            guard request.path == "/slow" else { return HTTPResponse(status: 200) }
            start.yield()
            for await _ in released { break }
            return HTTPResponse(status: 200)
        })
        let server = try await HTTPServer.start(patientSettings(), handler: handler, log: .silent)
        let idle = try RawClient(server.address)
        try await idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try await idle.response().status == 200)
        let client = try RawClient(server.address)
        try await client.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        for await _ in started { break }
        async let stopped: Void = server.stop(grace: .seconds(300))
        // It has begun to end when it closes what is idle.
        #expect(try await idle.receiveToEnd().isEmpty)
        release.yield()
        let response = try await client.response()
        #expect(response.status == 200)
        #expect(response.headers["connection"] == "close")
        await stopped
        #expect(throws: RawClient.Failure.self) { try RawClient(server.address) }
    }

    /// libwebsockets looked at their time-outs only when something came in, which nothing did.
    @Test func `ends connections that are kept alive and say nothing`() async throws {
        let server = try await HTTPServer.start(patientSettings(), handler: ClosureHandler(), log: .silent)
        let clients = try (0..<3).map { _ in try RawClient(server.address) }
        for client in clients {
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.response().headers["connection"] != "close")
        }
        // Neither their own time-out nor the grace comes within the test.
        await server.stop(grace: .seconds(3_600))
        for client in clients { #expect(try await client.receiveToEnd().isEmpty) }
    }

    @Test func `may be stopped twice`() async throws {
        let server = try await HTTPServer.start(patientSettings(), handler: ClosureHandler(), log: .silent)
        await server.stop()
        await server.stop()
    }

    @Test func `does not begin on a port that is taken`() async throws {
        try await withServer { server in
            let error = await #expect(throws: HTTPServerError.self) {
                try await HTTPServer.start(
                    HTTPServerSettings(address: server.address), handler: ClosureHandler(), log: .silent)
            }
            #expect(error == .addressInUse(server.address))
            let words = "\(server.address) is in use by another program; stop that program, or choose another"
            #expect(error?.description.contains(words) == true)
        }
    }

    @Test func `does not begin on somebody else's address`() async throws {
        let address = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 0)
        let error = await #expect(throws: HTTPServerError.self) {
            try await HTTPServer.start(
                HTTPServerSettings(address: address), handler: ClosureHandler(), log: .silent)
        }
        #expect(error == .addressNotAvailable(address))
        #expect(error?.description.hasPrefix("192.0.2.1 is not an address of this machine; choose") == true)
    }

    @Test func `does not begin without its certificate`() async throws {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.tls = HTTPServerSettings.TLSFiles(certificate: "/nowhere/cert.pem", key: "/nowhere/key.pem")
        let error = await #expect(throws: HTTPServerError.self) {
            try await HTTPServer.start(settings, handler: ClosureHandler(), log: .silent)
        }
        #expect(error == .unreadableFile("/nowhere/cert.pem", detail: "No such file or directory"))
    }

    @Test func `does not begin with a certificate that is none`() async throws {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.tls = HTTPServerSettings.TLSFiles(certificate: "/etc/passwd", key: "/etc/passwd")
        let error = await #expect(throws: HTTPServerError.self) {
            try await HTTPServer.start(settings, handler: ClosureHandler(), log: .silent)
        }
        guard case .badCertificate = error else {
            Issue.record("got \(String(describing: error))")
            return
        }
        #expect(error?.description.hasPrefix("cannot use /etc/passwd with /etc/passwd for TLS: ") == true)
    }
}
