import Base
import Testing

@testable import HTTP

private func address(_ text: String) -> IPAddress {
    guard let ip = IPAddress(text) else {
        Issue.record("\(text) is no address")
        return .any
    }
    return ip
}

/// What a client says of the server's name is repeated in answers, such as links.
@Suite struct `The origin of a request` {
    private func origin(_ host: String?, publicHost: String? = nil, isSecure: Bool = false) -> String? {
        var headers = HTTPHeaders()
        if let host { headers.add("Host", host) }
        var request = HTTPRequest(method: .get, path: "/", headers: headers, isSecure: isSecure)
        request.publicHost = publicHost
        return request.origin
    }

    @Test(arguments: [
        "example.org", "EXAMPLE.org:8443", "a_b-c.example", "[2001:db8::1]:80", "127.0.0.1:1",
        String(repeating: "a", count: 255),
    ])
    func `is the host as the client wrote it`(host: String) {
        #expect(origin(host) == "http://\(host)")
        #expect(origin(host, isSecure: true) == "https://\(host)")
    }

    @Test(arguments: [
        "", "a b", "a/b", "a\\b", "a@b", "a\"b", "a>b", "a<b", "a'b", "a,b", "a;b", "a?b", "a#b", "a%20b",
        "a\r\nb", "a\0", "ä.example", "a\u{7F}", String(repeating: "a", count: 256),
    ])
    func `is nothing that could be more than a host`(host: String) {
        #expect(origin(host) == nil)
        // A proxy passes on what it was told, too.
        #expect(origin("example.org", publicHost: host) == nil)
    }

    @Test func `is what a trusted proxy says, and nothing without a host`() {
        #expect(origin("inner:8080", publicHost: "example.org", isSecure: true) == "https://example.org")
        #expect(origin(nil, publicHost: "example.org") == "http://example.org")
        #expect(origin(nil) == nil)
    }
}

@Suite struct `A request that came through others` {
    @Test(arguments: [
        "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto",
        "X-Forwarded-Server", "X-Real-IP", "x-real-ip",
    ])
    func `is known by any of their fields, even an empty one`(name: String) {
        var headers: HTTPHeaders = ["Host": "h"]
        #expect(!HTTPRequest(method: .get, path: "/", headers: headers).isForwarded)
        headers.add(name, "")
        #expect(HTTPRequest(method: .get, path: "/", headers: headers).isForwarded)
    }

    @Test func `is known by the proxy itself`() {
        var request = HTTPRequest(method: .get, path: "/", headers: ["Host": "h", "X-Forwarded": "1"])
        #expect(!request.isForwarded)
        request.isByProxy = true
        #expect(request.isForwarded)
    }
}

@Suite struct `The address that a proxy names` {
    private let proxies = TrustedProxies(
        ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].compactMap { TrustedProxies.Network($0) })

    @Test(arguments: [
        ("203.0.113.9:0", "203.0.113.9"), ("203.0.113.9:65535", "203.0.113.9"),
        ("203.0.113.9:65536", "127.0.0.1"), ("203.0.113.9:", "127.0.0.1"), ("203.0.113.9:a", "127.0.0.1"),
        (":80", "127.0.0.1"), ("[203.0.113.9]:80", "203.0.113.9"), ("[]:80", "127.0.0.1"),
        ("[]", "127.0.0.1"), ("[", "127.0.0.1"), ("\"[2001:db8::1]\"", "127.0.0.1"),
        ("for=203.0.113.9", "127.0.0.1"), (" \t203.0.113.9\t ", "203.0.113.9"),
        ("203.0.113.9 10.0.0.1", "127.0.0.1"), ("203.0.113.9,", "127.0.0.1"), (",", "127.0.0.1"),
        (",203.0.113.9", "203.0.113.9"), ("::ffff:203.0.113.9", "203.0.113.9"),
        // Of proxies alone, the farthest.
        ("fd00::7, 10.0.0.8", "fd00::7"), ("[fd00::7]:1, ::ffff:10.0.0.8", "fd00::7"),
        // The chain breaks at what is no address, behind the proxy that wrote it.
        ("203.0.113.9, x, 10.0.0.8", "10.0.0.8"), ("203.0.113.9, , 10.0.0.8", "10.0.0.8"),
        ("3405803785", "127.0.0.1"), ("203.0.28937", "127.0.0.1"), ("203.0.113", "127.0.0.1"),
        ("[203.0.113.9]x", "127.0.0.1"), ("[203.0.113.9]:", "127.0.0.1"), ("203.0.113.9:+80", "127.0.0.1"),
    ])
    func `is an address, with or without a port`(field: String, client: String) {
        let found = proxies.client(of: .loopback, forwardedFor: field)
        #expect(found == address(client))
    }

    @Test(arguments: ["203.0.113.1", "11.0.0.1", "127.0.0.2", "fc00::1"])
    func `counts only where the proxy is trusted`(peer: String) {
        let found = proxies.client(of: address(peer), forwardedFor: "198.51.100.1")
        #expect(found == address(peer))
        let nobody = TrustedProxies().client(of: .loopback, forwardedFor: "198.51.100.1")
        #expect(nobody == .loopback)
    }

    /// However long the client makes its own part of the list.
    @Test func `is not among those that the client made up`() {
        let invented = (0..<2_000).map { "10.0.\($0 / 256).\($0 % 256)" }.joined(separator: ", ")
        let found = proxies.client(of: .loopback, forwardedFor: invented + ", 203.0.113.9, 10.0.0.1")
        #expect(found == address("203.0.113.9"))
    }

    /// Such characters, in what the client sent, make one with the comma that the proxy adds, or with one before them.
    @Test(arguments: ["\u{600}", "\u{D4E}", "\u{111C2}", "\u{301}", "\u{200D}", "\u{1F1E6}", "\r"])
    func `does not depend on characters that join others`(joiner: String) {
        for invented in ["[198.51.100.7]", "198.51.100.7", "x", "10.0.0.9, [198.51.100.7]:80", ""] {
            let found = proxies.client(of: .loopback, forwardedFor: invented + joiner + ", 203.0.113.9")
            #expect(found == address("203.0.113.9"))
        }
    }

    @Test(arguments: [
        ("10.1.2.3/8", "10.0.0.0/8"), ("203.0.113.7", "203.0.113.7/32"), ("255.255.255.255/1", "128.0.0.0/1"),
        ("10.1.2.3/0", "0.0.0.0/0"), ("10.1.2.255/31", "10.1.2.254/31"), ("fd12::1/8", "fd00::/8"),
        ("2001:db8::1", "2001:db8::1/128"), ("2001:db8::ffff/0", "::/0"),
        ("2001:db8:0:1:8000::1/65", "2001:db8:0:1:8000::/65"),
        ("2001:db8:0:ffff:ffff::/64", "2001:db8:0:ffff::/64"), ("2001:db8:0:ff::1/63", "2001:db8:0:fe::/63"),
    ])
    func `may be in a network, which is told by its first address`(text: String, shown: String) throws {
        let network = try #require(TrustedProxies.Network(text))
        #expect(network.description == shown)
        let again = try #require(TrustedProxies.Network(shown))
        #expect(again == network)
    }
}

@Suite struct `The fields of a head` {
    private func lines(of headers: HTTPHeaders) -> [String] {
        headers.fields.map { "\($0.name)=\($0.value)" }
    }

    @Test func `are found in any letter case, the first of a name`() {
        var headers: HTTPHeaders = ["X-A": "1", "x-b": "2"]
        headers.add("x-a", "3")
        #expect(headers["X-a"] == "1" && headers["X-B"] == "2" && headers["x"] == nil)
        #expect(headers.fields.map(\.name) == ["x-a", "x-b", "x-a"])
    }

    @Test func `are replaced with all of their name, and stand last then`() {
        var headers: HTTPHeaders = ["A": "1", "B": "2", "a": "3", "C": "4"]
        headers.set("a", "5")
        #expect(lines(of: headers) == ["b=2", "c=4", "a=5"])
        var others: HTTPHeaders = ["B": "6", "D": "7"]
        others.add("b", "8")
        headers.set(others)
        #expect(lines(of: headers) == ["c=4", "a=5", "d=7", "b=8"])
        headers.set(HTTPHeaders())
        #expect(headers.fields.count == 4)
    }
}

@Suite struct `The line of a log` {
    private func target(_ path: String, _ query: (String, String)...) -> String {
        HTTPRequest(
            method: .get, path: path, query: query.map { HTTPRequest.QueryItem(name: $0.0, value: $0.1) }
        ).loggedTarget
    }

    @Test(arguments: [
        ("/t/eyJ.eyJ.c2ln", "/t/<secret>"), ("/eyJ.a.b/eyJ.c.d/x", "/<secret>/<secret>/x"),
        ("/e..", "/<secret>"), ("/eyJ.a.b/", "/<secret>/"), ("/t/eyJ.a", "/t/eyJ.a"),
        ("/t/eyJ.a.b.c", "/t/eyJ.a.b.c"), ("/t/xyJ.a.b", "/t/xyJ.a.b"), ("/", "/"), ("//a//", "//a//"),
    ])
    func `has no token of a path`(path: String, shown: String) {
        #expect(target(path) == shown)
    }

    @Test func `has no token of a query, each time that there is one`() {
        let shown = target("/a", ("access_token", "x"), ("b", ""), ("access_token", ""), ("c", "d"))
        #expect(shown == "/a?access_token=<secret>&b=&access_token=<secret>&c=d")
    }
}
