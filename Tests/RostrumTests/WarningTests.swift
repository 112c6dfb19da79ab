import Base
import Testing

@testable import rostrum

@Suite struct `A start` {
    private let outward = IPAddress(ipv4: 0xC000_0207)

    private func warnings(_ flags: String..., announced: [IPAddress]) throws -> [Warning] {
        let values = try OptionValues.parse(arguments: ["--dev"] + flags).values
        return try Configuration(values, processors: 1).warnings(announced: announced)
    }

    @Test func `warns of nothing by default`() throws {
        #expect(try warnings(announced: [outward, .loopback]).isEmpty)
    }

    @Test func `warns when hostile pictures are decoded unconfined, by wish only`() throws {
        let own = [outward]
        #expect(try warnings("--transcoder-confinement", "on", announced: own).isEmpty)
        #expect(
            try warnings("--transcoder-confinement", "off", announced: own).map(\.event) == [
                "transcoder-unconfined"
            ])
        #expect(try warnings("--transcoder-confinement=off", "--transcoder=off", announced: own).isEmpty)
        #expect(throws: ConfigurationError.self) {
            try warnings("--transcoder-confinement", "no", announced: own)
        }
    }

    @Test func `warns when Firefox cannot reach what it announces, and names the flag`() throws {
        let reason = "Firefox cannot connect to a loopback address, only Chromium can; "
        let first = try warnings("--udp", "127.0.0.1:17000", announced: [.loopback, .loopback])
        #expect(first == [Warning(event: "only-loopback", reason: reason + "set --udp 0.0.0.0:17000")])
        let sixth = IPAddress(high: 0, low: 1)
        #expect(
            try warnings("--udp", "[::1]:9", announced: [sixth])
                == [Warning(event: "only-loopback", reason: reason + "set --udp [::]:9")])
        // Nothing to give: there is no network.
        #expect(
            try warnings(announced: [.loopback])
                == [
                    Warning(
                        event: "only-loopback",
                        reason: reason + "this machine has no other address")
                ])
        #expect(Help.full.contains("Firefox"))
    }

    @Test func `warns where it has no address at all`() throws {
        #expect(try warnings(announced: []).map(\.event) == ["only-loopback"])
    }

    /// Over TCP, or by way of something that stands before it.
    @Test func `does not warn when there is another way`() throws {
        #expect(try warnings("--udp", "127.0.0.1:17000", announced: [.loopback, outward]).isEmpty)
    }

    @Test func `warns of a TURN server that no browser will use`() throws {
        func events(_ flags: String...) throws -> [String] {
            let values = try OptionValues.parse(arguments: ["--dev"] + flags).values
            return try Configuration(values, processors: 1).warnings(announced: [outward]).map(\.event)
        }
        let server = "--ice-server"
        #expect(try events(server, "turn:a:1") == ["turn-without-password"])
        #expect(try events(server, "turns:a:1", server, "turn:b,ann,p") == ["turn-without-password"])
        #expect(try events(server, "turn:a:1", "--ice-server-secret", "s") == [])
        #expect(try events(server, "stun:a:1", server, "turn:b,ann,p") == [])
        let warning = try warnings(server, "turn:a:1", announced: [outward]).first
        #expect(warning?.reason.contains("give turn:a:1,USER,PASSWORD or set --ice-server-secret") == true)
    }

    @Test func `warns of unencrypted pages and open doors, each by its name`() throws {
        let open = ["--http", "0.0.0.0:80", "--admin", "0.0.0.0:81", "--transcoder-confinement", "off"]
        let values = try OptionValues.parse(arguments: ["--dev"] + open).values
        let configuration = try Configuration(values, processors: 1)
        #expect(
            configuration.warnings(announced: [outward]).map(\.event)
                == ["no-tls", "development", "transcoder-unconfined", "admin-open"])
        #expect(try warnings("--admin", "[::1]:81", announced: [outward]).isEmpty)
    }

    @Test func `tells a first command with the address that clients use, if that is known`() throws {
        func link(_ flags: String...) throws -> String? {
            let values = try OptionValues.parse(arguments: flags).values
            return try Configuration(values, processors: 1).firstLink
        }
        let key = ["--key-id=k", "--secret=0123456789abcdef0123456789abcdef"]
        #expect(try link("--dev") == nil)
        #expect(try link(key[0], key[1])?.hasSuffix("--link https://HOST") == true)
        #expect(try link(key[0], key[1], "--http", ":443")?.hasSuffix("--link https://HOST") == true)
        let known = try link(key[0], key[1], "--http", "203.0.113.7:443")
        #expect(known?.hasSuffix("--link https://203.0.113.7:443") == true)
    }

    @Test func `warns of pages without TLS, and of tokens for everybody`() throws {
        let events = try warnings("--http", "0.0.0.0:80", announced: [outward]).map(\.event)
        #expect(events == ["no-tls", "development"])
    }
}
