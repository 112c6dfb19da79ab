import Base
import HTTPTestSupport
import Testing

@testable import HTTP

private func ip(_ text: String) -> IPAddress {
    guard let ip = IPAddress(text) else {
        Issue.record("\(text) is no address")
        return .any
    }
    return ip
}

@Suite struct `Trusted proxies` {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.4", false), ("0.0.0.0/0", "203.0.113.9", true),
        ("0.0.0.0/0", "2001:db8::1", false),
        ("fd00::/8", "fdff::1", true), ("fd00::/8", "fc00::1", false), ("2001:db8::/65", "2001:db8::1", true),
        ("2001:db8::/65", "2001:db8:0:0:8000::1", false), ("::/0", "10.0.0.1", true),
    ])
    func `are addresses that begin alike`(network: String, address: String, isIn: Bool) throws {
        #expect(try #require(TrustedProxies.Network(network)).contains(ip(address)) == isIn)
    }

    @Test(arguments: [
        "", "x", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "/8", "10.0.0.0/8/8", "10.0.0.0/a",
        "10.0.0.0/+8", "10.0.0.0/-0", "::/+0", "10.0.0.0/ 8", "10.0.0.0/256", "10.0.0/8", "10.0.0.0/٨",
    ])
    func `are nothing else`(text: String) {
        #expect(TrustedProxies.Network(text) == nil)
    }

    @Test(
        arguments: [
            (nil, "127.0.0.1"), ("203.0.113.9", "203.0.113.9"), ("1.2.3.4, 203.0.113.9", "203.0.113.9"),
            ("203.0.113.9, 10.0.0.7", "203.0.113.9"),
            ("1.2.3.4,203.0.113.9 , 10.0.0.7,10.0.0.8", "203.0.113.9"),
            ("203.0.113.9:4711", "203.0.113.9"), ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("10.0.0.7", "10.0.0.7"), ("", "127.0.0.1"), ("unknown", "127.0.0.1"),
            ("x, 10.0.0.7", "10.0.0.7"),
            ("203.0.113.9, x", "127.0.0.1"), ("127.0.0.1, 203.0.113.9", "203.0.113.9"),
        ] as [(String?, String)])
    func `name who asks, and nobody before them does`(field: String?, client: String) throws {
        let proxies = TrustedProxies(
            [
                try #require(TrustedProxies.Network("127.0.0.1")),
                try #require(TrustedProxies.Network("10.0.0.0/8")),
            ])
        #expect(proxies.client(of: .loopback, forwardedFor: field) == ip(client))
    }
}

@Suite struct `Limits of addresses` {
    private var limits: AddressLimits

    init() {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.maximumConnectionsPerAddress = 10
        settings.requestBurstPerAddress = 10
        settings.requestRatePerAddress = 1
        limits = AddressLimits(settings)
    }

    private func client(_ text: String, isForwarded: Bool = false) -> AddressLimits.Client {
        AddressLimits.Client(ip: ip(text), isForwarded: isForwarded)
    }

    /// A site has 65,536 networks of 64 bits.
    @Test mutating func `count sites of IPv6 too`() {
        func connected(_ address: (Int) -> String) -> Int {
            (0..<1_000).count { limits.connect(client(address($0)), at: 0) }
        }
        #expect(connected { "2001:db8:0:1::\(String($0, radix: 16))" } == 10)
        // The same /56, of which 10 are taken.
        #expect(connected { "2001:db8:0:\(String(2 + $0 % 200, radix: 16))::1" } == 30)
        #expect(connected { "2001:db8:0:\(String(256 + $0 * 16, radix: 16))::1" } == 120)
        let result1 = limits.connect(client("2001:db8:1::1"), at: 0)
        #expect(result1)
        for address in ["2001:db8:0:1::1", "2001:db8:0:100::1"] { limits.disconnect(client(address)) }
        let result2 = limits.connect(client("2001:db8:0:2::1"), at: 0)
        #expect(result2)
    }

    @Test mutating func `count requests of sites`() {
        let passed = (0..<1_000).count { index in
            limits.request(client("2001:db8:0:\(String(index, radix: 16))::1"), at: 0) == nil
        }
        #expect(passed == 160)
        let result3 = limits.request(client("192.0.2.1"), at: 0)
        #expect(result3 == nil)
    }

    @Test mutating func `trust this machine, but not what is forwarded to it`() {
        let own = (0..<100).count { _ in limits.request(client("127.0.0.1"), at: 0) == nil }
        #expect(own == 100)
        let passed = (0..<100).count { _ in
            limits.request(client("127.0.0.1", isForwarded: true), at: 0) == nil
        }
        #expect(passed == 10)
    }

    @Test mutating func `let large requests cost more`() {
        let client = client("192.0.2.1")
        let result4 = limits.request(client, at: 0)
        #expect(result4 == nil)
        limits.charge(12, to: client, at: 0)
        // Three are owed, and one is wanted.
        let result5 = limits.request(client, at: 0)
        #expect(result5 == 4)
        limits.charge(1e9, to: client, at: 0)
        let result6 = limits.request(client, at: 0)
        #expect(result6 == 11)
        let result7 = limits.request(client, at: 11_000)
        #expect(result7 == nil)
        limits.forgetIdle(at: 1_000_000)
        #expect(limits.count == 0)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Behind a proxy` {
    private func alive(_ fields: String...) -> String {
        "GET /alive HTTP/1.1\r\nHost: h\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    private static let echo = ClosureHandler(answer: { request in
        .text(200, "\(request.clientAddress) \(request.origin ?? "")")
    })

    @Test func `limits are of who asks`() async throws {
        try await withServer(Self.echo) {
            $0.trustedProxies = TrustedProxies([TrustedProxies.Network("127.0.0.1")].compactMap { $0 })
            $0.requestBurstPerAddress = 3
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            func ask(_ fields: String) async throws -> RawClient.Response {
                let client = try RawClient(server.address)
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\r\n")
                return try await client.response()
            }
            for index in 0..<3 {
                // What the client invents changes every time.
                let answer = try await ask("X-Forwarded-For: 198.51.100.\(index), 203.0.113.9")
                #expect(answer.status == 200 && answer.text == "203.0.113.9 http://h\n")
            }
            #expect(try await ask("X-Forwarded-For: 198.51.100.7, 203.0.113.9").status == 429)
            // In two lines, as some proxies append.
            #expect(
                try await ask("X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 203.0.113.9").status == 429)
            let other = try await ask(
                "X-Forwarded-For: 203.0.113.10\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: example.org")
            #expect(other.status == 200 && other.text == "203.0.113.10 https://example.org\n")
            // The proxy's own, such as a look whether we are well; or its clients', whom it does not name.
            for _ in 0..<3 { #expect(try await ask("Accept: */*").text == "127.0.0.1 http://h\n") }
            #expect(try await ask("Accept: */*").status == 429)
        }
    }

    @Test func `that shows itself by its old HTTP, all count as one`() async throws {
        try await withServer(Self.echo) {
            $0.requestBurstPerAddress = 3
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            var statuses: [Int] = []
            for _ in 0..<4 {
                let client = try RawClient(server.address)
                try await client.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n")
                statuses.append(try await client.response().status)
            }
            #expect(statuses == [200, 200, 200, 429])
        }
    }

    @Test func `requests that are under way count as connections of who asks`() async throws {
        let (started, start) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(answer: { _ in
            start.yield()
            await waitInVain()
            return .text(200, "late")
        })
        try await withServer(handler) {
            $0.trustedProxies = TrustedProxies([TrustedProxies.Network("127.0.0.1")].compactMap { $0 })
            $0.maximumConnectionsPerAddress = 2
        } _: { server in
            let waiting = [try RawClient(server.address), try RawClient(server.address)]
            for client in waiting { try await client.send(alive("X-Forwarded-For: 203.0.113.9")) }
            var count = 0
            for await _ in started {
                count += 1
                if count == 2 { break }
            }
            let third = try RawClient(server.address)
            try await third.send(alive("X-Forwarded-For: 203.0.113.9"))
            #expect(try await third.response().status == 429)
        }
    }

    @Test func `that nobody trusts, all count as one`() async throws {
        try await withServer(Self.echo) {
            $0.requestBurstPerAddress = 3
            $0.requestRatePerAddress = 0.0001
        } _: { server in
            let client = try RawClient(server.address)
            var statuses: [Int] = []
            for index in 0..<4 {
                try await client.send(alive("X-Forwarded-For: 203.0.113.\(index)"))
                statuses.append(try await client.response().status)
            }
            #expect(statuses == [200, 200, 200, 429])
            try await client.send(alive())
            let own = try await client.response()
            #expect(own.status == 200 && own.text == "127.0.0.1 http://h\n")
        }
    }

    @Test func `a full server closes what is idle`() async throws {
        try await withServer(Self.echo) {
            $0.maximumConnections = 4
        } _: { server in
            var idle: [RawClient] = []
            for _ in 0..<4 {
                let client = try RawClient(server.address)
                try await client.send(alive())
                #expect(try await client.response().status == 200)
                idle.append(client)
            }
            let next = try RawClient(server.address)
            try await next.send(alive())
            #expect(try await next.response().status == 200)
            _ = idle
        }
    }
}
