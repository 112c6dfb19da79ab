import HTTP
import HTTPTestSupport
import Testing

@testable import Gateway

@Suite(.timeLimit(.minutes(10))) struct `Behind a proxy, with routes` {
    /// Also by one that adds no header, and calls us by the address that it has.
    @Test(arguments: [true, false])
    func `requests through a proxy do not count as from this machine`(isTrusted: Bool) async throws {
        let bench = try Bench()
        let handler = ClosureHandler(answer: { await bench.handler.respond(to: $0) })
        try await withServer(handler) {
            guard isTrusted else { return }
            $0.trustedProxies = TrustedProxies([TrustedProxies.Network("127.0.0.1")].compactMap { $0 })
        } _: { server in
            func ask(_ line: String, _ fields: String = "") async throws -> Int {
                let client = try RawClient(server.address)
                let body = line.hasPrefix("POST") ? #"{"sub":"ann","role":"host","stream":"s1"}"# : ""
                try await client.send(
                    "\(line)\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n\(fields)"
                        + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
                )
                return try await client.response().status
            }
            let token = try await ask("POST /v1/tokens HTTP/1.1")
            #expect(token == (isTrusted ? 401 : 201))
            #expect(try await ask("GET /metrics HTTP/1.1") == (isTrusted ? 401 : 200))
            // As nginx asks, unless it is told otherwise; browsers and curl do not.
            #expect(try await ask("POST /v1/tokens HTTP/1.0") == 401)
            #expect(try await ask("GET /metrics HTTP/1.0") == 401)
            #expect(try await ask("GET /metrics HTTP/1.1", "X-Real-IP: 203.0.113.9\r\n") == 401)
        }
    }
}

@Suite struct `The time of a request` {
    @Test func `a request for a capture may take as much longer as a capture`() throws {
        let handler = try Bench().handler
        func extraTime(_ path: String) -> Duration {
            handler.extraTime(HTTPRequest(method: .get, path: path))
        }
        #expect(extraTime("/v1/sessions/abc/capture") == .seconds(60))
        #expect(extraTime("/v1/sessions/abc") == .zero)
        #expect(extraTime("/whep/capture") == .zero)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The price of a request` {
    /// Of more than a hundred players behind one address, which the usual allowance would leave twelve of.
    @Test func `is a tenth for what players of HLS ask`() async throws {
        let bench = try Bench()
        let handler = ClosureHandler(
            answer: { await bench.handler.respond(to: $0) }, cost: { bench.handler.surcharge($0) })
        try await withServer(handler) {
            $0.limitsLoopback = true
            $0.requestBurstPerAddress = 3
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            var statuses: [Int] = []
            let player = Array(repeating: "/hls/s1/media.m3u8", count: 19)
            for path in player + ["/v1/streams/s1", "/hls/s1/media.m3u8"] {
                let client = try RawClient(server.address)
                try await client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
                statuses.append(try await client.response().status)
            }
            #expect(!statuses.dropLast().contains(429))
            #expect(statuses.suffix(2) == [404, 429])
        }
    }

    /// Dozens for each page, and hundreds of people in an office may open it in the same minute.
    @Test func `is a tenth for a file of a page, and one for the page`() throws {
        let handler = try Bench().handler
        func extra(_ method: HTTPMethod, _ path: String) -> Double {
            handler.surcharge(HTTPRequest(method: method, path: path))
        }
        #expect(extra(.get, "/assets/build-x/session.js") == -0.9 && extra(.get, "/watch/s1") == 0)
        #expect(extra(.post, "/assets/session.js") == 0)
    }

    @Test func `is five for a list of streams`() async throws {
        let bench = try Bench()
        let handler = ClosureHandler(
            answer: { await bench.handler.respond(to: $0) }, cost: { bench.handler.surcharge($0) })
        try await withServer(handler) {
            $0.limitsLoopback = true
            $0.requestBurstPerAddress = 8
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            var statuses: [Int] = []
            for path in ["/v1/streams?limit=1", "/v1/streams/s1", "/v1/streams", "/v1/streams"] {
                let client = try RawClient(server.address)
                try await client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
                statuses.append(try await client.response().status)
            }
            #expect(statuses == [200, 404, 200, 429])
        }
    }
}
