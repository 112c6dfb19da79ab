import Base
import HTTPTestSupport
import Synchronization
import Testing

@testable import HTTP

@Suite struct `Parts of a body that wait` {
    @Test func `go out in order, in pieces, and then the end`() {
        var queue = StreamQueue(limit: 10)
        let first = queue.next(4)
        #expect(first == .nothing)
        let results = [queue.append([1, 2, 3]), queue.append([4, 5, 6]), queue.append([7, 8, 9, 10, 11])]
        #expect(results == [.queued, .queued, .full])
        let isNews = [queue.finish(), queue.finish()]
        #expect(isNews == [true, false])
        let late = queue.append([12])
        #expect(late == .closed)
        let output = (0..<4).map { _ in queue.next(4) }
        #expect(output == [.part([1, 2, 3, 4]), .part([5, 6]), .end, .end])
    }

    @Test func `are dropped when the client is gone`() {
        var queue = StreamQueue(limit: 10)
        _ = queue.append([1, 2, 3])
        queue.close()
        let result = queue.append([4])
        let output = queue.next(4)
        #expect(result == .closed && output == .nothing)
    }

    @Test func `are chunks by their length in hexadecimal digits`() {
        #expect(ChunkedCoding.chunk(Array("hello".utf8)) == Array("5\r\nhello\r\n".utf8))
        let long = ChunkedCoding.chunk([UInt8](repeating: 65, count: 256))
        #expect(long.starts(with: Array("100\r\n".utf8)))
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Streamed answers` {
    /// A handler whose bodies are made by a test.
    private struct Studio {
        let bodies: AsyncStream<HTTPStream>
        let handler: ClosureHandler
        let ends: AsyncStream<Bool>

        /// - Parameter limit: of bytes that wait.
        init(limit: Int = 64 * 1024) {
            let (bodies, body) = AsyncStream<HTTPStream>.makeStream()
            let (ends, end) = AsyncStream<Bool>.makeStream()
            (self.bodies, self.ends) = (bodies, ends)
            handler = ClosureHandler(answer: { request in
                guard request.path == "/stream" else { return ClosureHandler.echo(request) }
                var response = HTTPResponse(status: 200, headers: ["Content-Type": "text/event-stream"])
                response.stream = HTTPStream(limit: limit) { stream in
                    body.yield(stream)
                    await waitInVain()
                    end.yield(Task.isCancelled)
                }
                return response
            })
        }

        func body() async throws -> HTTPStream {
            for await body in bodies { return body }
            throw RawClient.Failure(what: "no body was made")
        }

        /// Whether what made the body was cancelled.
        func wasCancelled() async -> Bool {
            for await isCancelled in ends { return isCancelled }
            return false
        }
    }

    private static let get = "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"

    private func receive(_ text: String, by client: RawClient) async throws -> Bool {
        let bytes = Array(text.utf8)
        return try await client.receive(exactly: bytes.count) == bytes
    }

    @Test func `come part by part, and with an end`() async throws {
        let studio = Studio()
        let counters = HTTPCounters()
        let server = try await HTTPServer.start(
            patientSettings(), handler: studio.handler, counters: counters, log: .silent)
        let client = try RawClient(server.address)
        try await client.send(Self.get)
        let head = try await client.response()
        #expect(head.status == 200)
        #expect(head.headers["transfer-encoding"] == "chunked")
        #expect(head.headers["content-length"] == nil)
        #expect(head.headers["connection"] == "close")
        let body = try await studio.body()
        #expect(counters.copy.streams == 1)
        #expect(counters.copy.answers[2] == 1)
        for number in 0..<100 {
            #expect(body.send("part \(number % 10)".utf8) == .queued)
            #expect(try await receive("6\r\npart \(number % 10)\r\n", by: client))
        }
        body.finish()
        #expect(body.send("more".utf8) == .closed)
        #expect(try await client.receiveToEnd() == Array("0\r\n\r\n".utf8))
        #expect(await studio.wasCancelled())
        #expect(counters.copy.streams == 0)
        await server.stop(grace: .zero)
    }

    /// As a port gives connections whose TLS it removed.
    @Test func `go by a pair of sockets, and end when the client closes it`() async throws {
        let studio = Studio()
        let address = try #require(TransportAddress("203.0.113.9:50000"))
        try await withServer(
            studio.handler,
            { $0.receiveTimeout = .seconds(3) }
        ) { server in
            let (client, other) = try RawClient.pair()
            server.adopt(other, from: address, isDecrypted: true)
            try await client.send(Self.get)
            #expect(try await client.response().status == 200)
            let body = try await studio.body()
            // The looks that close who says nothing also find clients that are gone.
            let silent = try RawClient(server.address)
            #expect(try await silent.receive().isEmpty)
            #expect(body.send("part".utf8) == .queued)
            #expect(try await receive("4\r\npart\r\n", by: client))
            client.finish()
            #expect(await studio.wasCancelled())
        }
    }

    @Test func `end when what makes them returns`() async throws {
        let handler = ClosureHandler(answer: { _ in
            var response = HTTPResponse(status: 200)
            response.stream = HTTPStream { $0.send("all".utf8) }
            return response
        })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get)
            _ = try await client.response()
            #expect(try await client.receiveToEnd() == Array("3\r\nall\r\n0\r\n\r\n".utf8))
            // Without chunks, the end of the connection is the end.
            let old = try RawClient(server.address)
            try await old.send("GET /stream HTTP/1.0\r\n\r\n")
            #expect(try await old.response().headers["transfer-encoding"] == nil)
            #expect(try await old.receiveToEnd() == Array("all".utf8))
        }
    }

    @Test func `have no body for HEAD, which nobody makes`() async throws {
        let studio = Studio()
        try await withServer(studio.handler) { server in
            let client = try RawClient(server.address)
            try await client.send("HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n")
            let head = try await client.response(toHead: true)
            #expect(head.status == 200)
            #expect(head.headers["content-length"] == nil)
            try await client.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.response().text.hasPrefix("GET\n/other\n"))
        }
    }

    @Test(arguments: [false, true]) func `end when the client leaves`(_ isReset: Bool) async throws {
        let studio = Studio()
        try await withServer(studio.handler) { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get)
            let body = try await studio.body()
            if isReset { client.reset() } else { client.finish() }
            #expect(await studio.wasCancelled())
            #expect(body.send("part".utf8) == .closed)
        }
    }

    @Test func `keep no more for a slow reader than the limit, and then go on`() async throws {
        let studio = Studio(limit: 100_000)
        try await withServer(studio.handler) { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get)
            _ = try await client.response()
            let body = try await studio.body()
            let part = [UInt8](repeating: 65, count: 10_000)
            var queued = 0
            while body.send(part) == .queued {
                queued += 1
                await server.turn()
            }
            // What the kernel's buffers of both ends hold, and the limit.
            #expect(queued < 5_000)
            var length = 0
            while length < queued * part.count {
                length += try await client.receive().count(where: { $0 == 65 })
            }
            #expect(length == queued * part.count)
            // Nothing waits any more.
            #expect(body.send("!".utf8) == .queued)
            while try await !client.receive().contains(UInt8(ascii: "!")) {}
        }
    }

    @Test func `end when the client takes nothing for too long`() async throws {
        let studio = Studio(limit: 100_000)
        try await withServer(studio.handler) {
            $0.sendTimeout = .milliseconds(300)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get)
            let body = try await studio.body()
            let part = [UInt8](repeating: 65, count: 10_000)
            while body.send(part) == .queued { await server.turn() }
            #expect(await studio.wasCancelled())
            #expect(body.send(part) == .closed)
            _ = client
        }
    }

    @Test func `may be silent for longer than a client may be slow`() async throws {
        let studio = Studio()
        try await withServer(studio.handler) {
            $0.sendTimeout = .milliseconds(1)
            $0.idleTimeout = .milliseconds(1)
        } _: { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get)
            _ = try await client.response()
            let body = try await studio.body()
            // Deadlines are looked at four times a second: another's that is over says that this one's would be.
            let other = try RawClient(server.address)
            try await other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await other.receiveToEnd()
            #expect(body.send("still".utf8) == .queued)
            #expect(try await receive("5\r\nstill\r\n", by: client))
        }
    }

    @Test func `end in good order when the server stops`() async throws {
        let studio = Studio()
        let server = try await HTTPServer.start(patientSettings(), handler: studio.handler, log: .silent)
        let client = try RawClient(server.address)
        try await client.send(Self.get)
        _ = try await client.response()
        let body = try await studio.body()
        body.send("last".utf8)
        async let stopped: Void = server.stop(grace: .seconds(600))
        #expect(try await client.receiveToEnd() == Array("4\r\nlast\r\n0\r\n\r\n".utf8))
        #expect(await studio.wasCancelled())
        await stopped
    }

    @Test func `do not begin any more when the server stops`() async throws {
        let (released, release) = AsyncStream<Void>.makeStream()
        let (entered, enter) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { request in
            guard request.path == "/stream" else { return ClosureHandler.echo(request) }
            enter.yield()
            for await _ in released { break }
            var response = HTTPResponse(status: 200)
            response.stream = HTTPStream { _ in await waitInVain() }
            return response
        })
        let server = try await HTTPServer.start(patientSettings(), handler: handler, log: .silent)
        let client = try RawClient(server.address)
        try await client.send(Self.get)
        for await _ in entered { break }
        let idle = try RawClient(server.address)
        try await idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try await idle.response()
        async let stopped: Void = server.stop(grace: .seconds(600))
        // Who is idle is let go of as soon as it stops.
        #expect(try await idle.receiveToEnd().isEmpty)
        release.yield()
        #expect(try await client.response().status == 503)
        await stopped
    }

    @Test func `are let go of when another request comes on their connection`() async throws {
        let studio = Studio()
        try await withServer(studio.handler) { server in
            let client = try RawClient(server.address)
            try await client.send(Self.get + "GET /other HTTP/1.1\r\nHost: h\r\n\r\n")
            let body = try await studio.body()
            body.send("part".utf8)
            body.finish()
            let text = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
            #expect(!text.contains("/other"))
            let another = try RawClient(server.address)
            try await another.send("GET /another HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await another.response().status == 200)
        }
    }
}
