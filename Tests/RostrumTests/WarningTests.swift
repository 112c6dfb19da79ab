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

    /// Over TCP, or by way of something that stands before it.
    @Test func `does not warn when there is another way`() throws {
        #expect(try warnings("--udp", "127.0.0.1:17000", announced: [.loopback, outward]).isEmpty)
    }

    @Test func `warns of pages without TLS, and of tokens for everybody`() throws {
        let events = try warnings("--http", "0.0.0.0:80", announced: [outward]).map(\.event)
        #expect(events == ["no-tls", "development"])
    }
}
