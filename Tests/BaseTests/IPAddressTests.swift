import Base
import TestSupport
import Testing

@Suite struct IPAddresses {
    /// The recommendations of RFC 5952 §4, by their sections, and the ends of the range.
    @Test(arguments: [
        ("2001:0db8::0001", "2001:db8::1"),
        ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"),
        ("2001:db8::0:1", "2001:db8::1"),
        ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:DB8::AbCd", "2001:db8::abcd"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("1:0:0:0:0:0:0:0", "1::"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("1:2:3:4:5:6:255.254.253.252", "1:2:3:4:5:6:fffe:fdfc"),
    ])
    func `of version 6 have one text form`(text: String, canonical: String) {
        #expect(IPAddress(text)?.description == canonical)
        #expect(IPAddress(text)?.ipv4 == nil)
    }

    @Test(arguments: ["0.0.0.0", "192.0.2.1", "127.0.0.1", "255.255.255.255", "10.20.30.40"])
    func `of version 4 are written as they are read`(text: String) {
        #expect(IPAddress(text)?.description == text)
        #expect(IPAddress(text)?.ipv4 != nil)
    }

    @Test func `of version 4 are the same in their mapped form`() {
        #expect(IPAddress("::ffff:192.0.2.1") == IPAddress("192.0.2.1"))
        #expect(IPAddress("::ffff:c000:201") == IPAddress(ipv4: 0xC000_0201))
        #expect(IPAddress("::FFFF:192.0.2.1")?.description == "192.0.2.1")
        #expect(IPAddress("::192.0.2.1") != IPAddress("192.0.2.1"))
    }

    @Test(arguments: [
        "", " ", ".", ":", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-1", "1.2.3.+4", "01.2.3.4", "1.2.3.00",
        "1..2.3",
        "1.2.3.4 ", "1.2.3.x", "0x1.2.3.4", "１.2.3.4", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
        "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:", ":1", "1:2:3:4:5:6:7:", ":2:3:4:5:6:7:8", "12345::",
        "g::",
        "::+1", "::-0", "::-1", "::1%eth0", "[::1]", "1.2.3.4::", "::1.2.3.4:5", "::1.2.3", "::1.2.3.256",
        "1:2:3:4:5:6:7:1.2.3.4", "::" + String(repeating: "0", count: 60),
    ])
    func `are not made of other text`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `come back from their text`() {
        var random = SeededGenerator(seed: 5_952)
        for _ in 0..<5_000 {
            // Masks make runs of zeros, which are where text forms differ.
            let high = random.next() & UInt64.random(in: 0...15, using: &random) &* 0x1111_0000_1111
            let low = random.next() & (Bool.random(using: &random) ? .max : 0xFFFF_0000_0000_FFFF)
            let address = IPAddress(high: high, low: low)
            #expect(IPAddress(address.description) == address)
        }
    }

    @Test(arguments: ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1"])
    func `of the machine itself are known`(text: String) throws {
        #expect(try #require(IPAddress(text)).isLoopback)
    }

    @Test(arguments: ["128.0.0.1", "10.0.0.1", "::2", "::", "1::1"])
    func `of other machines are known`(text: String) throws {
        #expect(try #require(IPAddress(text)).isLoopback == false)
    }

    @Test func `that stand for all are known`() {
        #expect(IPAddress.any.isUnspecified)
        #expect(IPAddress("::")?.isUnspecified == true)
        #expect(IPAddress("::ffff:0.0.0.0")?.isUnspecified == true)
        #expect(!IPAddress.loopback.isUnspecified)
        #expect(IPAddress("::1")?.isUnspecified == false)
        #expect(IPAddress.loopback.description == "127.0.0.1")
    }
}

@Suite struct TransportAddresses {
    @Test(arguments: ["192.0.2.1:7000", "0.0.0.0:0", "[2001:db8::1]:65535", "[::]:443"])
    func `are written as they are read`(text: String) {
        #expect(TransportAddress(text)?.description == text)
    }

    @Test func `hold an address and a port`() {
        let address = TransportAddress("[2001:db8::1]:7000")
        #expect(address?.ip == IPAddress("2001:db8::1"))
        #expect(address?.port == 7_000)
        #expect(TransportAddress("[::ffff:192.0.2.1]:1")?.description == "192.0.2.1:1")
    }

    @Test(arguments: [
        "", ":", "192.0.2.1", "192.0.2.1:", ":7000", "192.0.2.1:65536", "192.0.2.1:-1", "192.0.2.1:+80",
        "192.0.2.1:-0", "192.0.2.1: 80", "192.0.2.1:８", "2001:db8::1:7000", "[2001:db8::1]",
        "[2001:db8::1]7000",
        "[192.0.2.1]:7000", "[2001:db8::1:7000", "2001:db8::1]:7000", "[]:1", "localhost:7000",
        "[::1%eth0]:1",
    ])
    func `are not made of other text`(text: String) {
        #expect(TransportAddress(text) == nil)
    }
}
