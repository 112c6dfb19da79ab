import Foundation
import HTTPTestSupport
import TestSupport
import Testing

@testable import HTTP

/// - Source: RFC 9110 §5.6.7.
@Suite struct `A date of HTTP` {
    @Test func `is read as it was written`() {
        var random = SeededGenerator(seed: 5_322)
        // To the end of the year 9999.
        let seconds = (0..<2_000).map { _ in Int.random(in: 0...253_402_300_799, using: &random) }
        for second in [0, 1, 59, 86_399, 951_782_400, 4_107_542_399, 253_402_300_799] + seconds {
            let text = HTTPDate.text(second)
            #expect(text.utf8.count == 29, "\(text)")
            #expect(HTTPDate.seconds(text) == Int64(second), "\(text)")
        }
    }

    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
    ])
    func `is that of the calendar`(text: String, seconds: Int) {
        #expect(HTTPDate.text(seconds) == text)
        #expect(HTTPDate.seconds(text) == Int64(seconds))
    }

    /// A leap second counts as the next one.
    @Test func `may have a leap second`() {
        #expect(HTTPDate.seconds("Thu, 31 Dec 1998 23:59:60 GMT") == 915_148_800)
    }

    @Test(arguments: [
        "", "GMT", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 1994 08:49:37 GMT", "Sun, 29 Feb 2100 08:49:37 GMT",
        "Sun, 30 Feb 2000 08:49:37 GMT", "Sun, 32 Dec 1994 08:49:37 GMT", "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 -8:49:37 GMT", "Sun, 06 Nov 1994 08:x:49:37 GMT",
        "Sun, 06 Nov 1994 08::49:37 GMT", "Sun, 06 Nov 1994 08:49:37: GMT", "Sun, 06 Nov 1994 0a:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:٣٧ GMT",
    ])
    func `is nothing else`(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }
}

/// - Source: RFC 9112 §6.3; RFC 9110 §8.6, §15.
@Suite struct `The head of a response` {
    private func head(_ response: HTTPResponse, closing: Bool = false, isChunked: Bool = false) -> [String] {
        let head = ResponseHead(response, closing: closing, isChunked: isChunked, now: 784_111_777)
        return String(decoding: head.bytes, as: UTF8.self).components(separatedBy: "\r\n")
    }

    @Test func `has a line for each field, and an empty one in the end`() {
        let response = HTTPResponse(status: 201, headers: ["Location": "/a", "ETag": "\"1\""], body: [1, 2])
        #expect(
            head(response, closing: true) == [
                "HTTP/1.1 201 Created", "location: /a", "etag: \"1\"", "date: Sun, 06 Nov 1994 08:49:37 GMT",
                "content-length: 2", "connection: close", "", "",
            ])
    }

    @Test(arguments: 100..<600)
    func `tells a length where there may be a body, and nowhere else`(status: Int) {
        let response = HTTPResponse(status: status, body: [1, 2, 3])
        let lines = head(response)
        let mayHaveBody = status >= 200 && status != 204 && status != 304
        #expect(lines.contains("content-length: 3") == mayHaveBody)
        #expect(response.hasNoBody == !mayHaveBody)
        #expect(response.withoutForbiddenBody.body == (mayHaveBody ? [1, 2, 3] : []))
        #expect(lines.first?.hasPrefix("HTTP/1.1 \(status) ") == true)
        #expect(lines.count { $0.lowercased().hasPrefix("content-length") } <= 1)
    }

    /// Whoever chooses a part of a value must not add lines to the head.
    @Test func `has no line that a value made`() {
        var random = SeededGenerator(seed: 113)
        let letters: [Character] = [
            "a", "\r", "\n", "\r\n", "\0", "\u{7F}", ":", " ", "é", "\u{85}", "\u{2028}",
        ]
        for _ in 0..<500 {
            let count = Int.random(in: 0...12, using: &random)
            var value = ""
            for _ in 0..<count { value.append(letters[Int.random(in: 0..<letters.count, using: &random)]) }
            let bytes = ResponseHead(
                HTTPResponse(status: 204, headers: ["X-Name": value]), closing: false, now: 0
            ).bytes
            #expect(bytes.count { $0 == 0x0A } == 4)
            #expect(bytes.count { $0 == 0x0D } == 4)
            #expect(!bytes.contains(0) && !bytes.contains(0x7F))
            #expect(bytes.suffix(4).elementsEqual("\r\n\r\n".utf8))
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A response that may have no body` {
    /// A client would take the bytes for its next response.
    @Test(arguments: [204, 304], [false, true])
    func `is sent without one, and the connection goes on`(status: Int, isAtOnce: Bool) async throws {
        let bare = HTTPResponse(status: status, body: Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        let handler = ClosureHandler(
            answer: { $0.path == "/bare" ? bare : ClosureHandler.echo($0) },
            atOnce: { isAtOnce && $0.path == "/bare" ? bare : nil })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            for number in 0..<3 {
                try await client.send(
                    "GET /bare HTTP/1.1\r\nHost: h\r\n\r\nGET /\(number) HTTP/1.1\r\nHost: h\r\n\r\n")
                let response = try await client.response()
                #expect(response.status == status)
                #expect(response.headers["content-length"] == nil)
                let next = try await client.response()
                #expect(next.status == 200)
                #expect(next.text.hasPrefix("GET\n/\(number)\n"))
            }
        }
    }
}

@Suite struct `The limit that a client is told of` {
    @Test func `has a name, a wait and a quota`() {
        let limit = RateLimit("requests", wait: 4, quota: .init(burst: 200, rate: 50))
        #expect(limit.headers["retry-after"] == "4")
        #expect(limit.headers["ratelimit"] == #""requests";r=0;t=4"#)
        #expect(limit.headers["ratelimit-policy"] == #""requests";q=200;w=4"#)
        #expect(RateLimit("requests", wait: 4).headers["ratelimit-policy"] == nil)
    }

    @Test func `has no name that would end its quotes`() {
        let limit = RateLimit("a\"; b\r\nc-1é", wait: 1)
        #expect(limit.headers["ratelimit"] == #""abc-1";r=0;t=1"#)
    }

    @Test(
        arguments: [
            (1, 100, 1, 1), (0.5, 1, 0, 1), (10, 0, 10, 1_000_000_000), (7, 2, 7, 3),
            (1e300, 1, 1_000_000_000, 1_000_000_000),
        ] as [(Double, Double, Int, Int)])
    func `has a window of at least a second, and no absurd number`(
        burst: Double, rate: Double, count: Int, window: Int
    ) {
        let quota = RateLimit.Quota(burst: burst, rate: rate)
        #expect(quota.count == count)
        #expect(quota.window == window)
    }
}
