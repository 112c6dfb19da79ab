import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Webhooks

@Suite(.timeLimit(.minutes(5))) struct `A poster of webhooks` {
    /// What a poster makes of a receiver that says `response` and hangs up.
    private func exchange(_ response: String) async throws -> (answer: WebhookAnswer, request: String) {
        let request = Mutex("")
        let server = try ScriptedServer { connection in
            let bytes = connection.receive(through: "{\"a\":1}")
            request.withLock { $0 = String(decoding: bytes, as: UTF8.self) }
            connection.send(response)
            connection.finish()
        }
        defer { server.stop() }
        let poster = HTTPPoster(timeout: .seconds(3_600))
        defer { poster.close() }
        let answer = await poster.post(
            to: "http://127.0.0.1:\(server.port)/hook?key=1", headers: ["X-One: 1", "X-Two: a b"],
            body: Array(#"{"a":1}"#.utf8))
        return (answer, request.withLock { $0 })
    }

    @Test func `sends one request, as it was told to`() async throws {
        let (answer, request) = try await exchange("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(answer == .status(204, retryAfter: nil))
        let lines = request.components(separatedBy: "\r\n")
        #expect(lines.first == "POST /hook?key=1 HTTP/1.1")
        #expect(lines.contains("X-One: 1") && lines.contains("X-Two: a b"))
        #expect(lines.contains("Content-Length: 7"))
        // Which would cost a round trip.
        #expect(!lines.contains { $0.lowercased().hasPrefix("expect") })
        #expect(lines.last == #"{"a":1}"#)
    }

    @Test(
        arguments: [
            ("200 OK\r\n", 200, nil), ("404 Not Found\r\n", 404, nil),
            ("503 Busy\r\nRetry-After: 7\r\n", 503, 7_000),
            ("429 Slow down\r\nRETRY-AFTER:   120\r\n", 429, 120_000),
            ("503 Busy\r\nRetry-After: 0\r\n", 503, nil), ("503 Busy\r\nRetry-After: soon\r\n", 503, nil),
            ("503 Busy\r\nRetry-After: -5\r\n", 503, nil),
            // A date that has passed.
            ("503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 503, nil),
            ("302 Found\r\nLocation: http://127.0.0.1:1/\r\n", 302, nil),
        ] as [(String, Int, Int64?)])
    func `reads the status, and for how long to wait`(
        head: String, status: Int, retryAfter: Int64?
    ) async throws {
        let (answer, _) = try await exchange("HTTP/1.1 \(head)Content-Length: 2\r\n\r\nok")
        #expect(answer == .status(status, retryAfter: retryAfter))
    }

    @Test func `takes the last of several answers`() async throws {
        let (answer, _) = try await exchange(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
        #expect(answer == .status(410, retryAfter: nil))
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "SSH-2.0-OpenSSH\r\n", "\0\0\0"])
    func `counts what is no whole answer as none`(response: String) async throws {
        let (answer, _) = try await exchange(response)
        guard case .unreachable(let text) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(!text.isEmpty)
    }

    @Test(
        arguments: [
            "", "http://", "ftp://127.0.0.1/", "file:///etc/hostname", "http://127.0.0.1:99999/",
            "gopher://127.0.0.1:1/", "http://[::1/",
        ])
    func `reaches nobody at what is no URL of HTTP`(url: String) async {
        let poster = HTTPPoster(timeout: .seconds(3_600))
        defer { poster.close() }
        let answer = await poster.post(to: url, headers: [], body: [])
        guard case .unreachable(let text) = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(!text.isEmpty)
    }

    @Test func `gives up a receiver that says nothing in time`() async throws {
        let server = try ScriptedServer { connection in
            while !connection.receive().isEmpty {}
        }
        defer { server.stop() }
        let poster = HTTPPoster(timeout: .milliseconds(100))
        defer { poster.close() }
        let answer = await poster.post(to: "http://127.0.0.1:\(server.port)/", headers: [], body: [1])
        guard case .unreachable = answer else {
            Issue.record("\(answer)")
            return
        }
    }

    /// Nobody may wait for an answer for ever, however the server's end and a request meet.
    @Test func `answers everyone when it is closed, and then at once`() async throws {
        let asked = Watched(0)
        let server = try ScriptedServer { connection in
            asked.change { $0 += 1 }
            while !connection.receive().isEmpty {}
        }
        defer { server.stop() }
        let url = "http://127.0.0.1:\(server.port)/"
        let poster = HTTPPoster(timeout: .seconds(3_600))
        let posts = (0..<5).map { _ in Task { await poster.post(to: url, headers: [], body: [1]) } }
        try await asked.wait { $0 > 0 }
        poster.close()
        for post in posts { #expect(await post.value == .unreachable("the server is ending")) }
        let late = await poster.post(to: url, headers: [], body: [1])
        #expect(late == .unreachable("the server is ending"))
        poster.close()
    }
}
