import Base
import HTTP
import Testing

@testable import Gateway

@Suite struct `A token sent as a message` {
    private func read(_ text: String) -> String? { TokenMessage(.text(text))?.token }

    private func makeRequest(_ query: [(String, String)], _ headers: HTTPHeaders = [:]) -> HTTPRequest {
        let items = query.map { HTTPRequest.QueryItem(name: $0.0, value: $0.1) }
        return HTTPRequest(method: .get, path: "/v1/feed/sync", query: items, headers: headers)
    }

    @Test(arguments: [
        #"{"type":"token","token":"a.b.c"}"#, #"{"token":"a.b.c","type":"token"}"#,
        #" { "type" : "token" , "token" : "a.b.c" } "#, #"{"type":"token","token":"a.b.c","more":[1]}"#,
        #"{"type":"token","token":"a\u002eb.c"}"#,
    ]) func `is read in every order, with what later versions may add`(text: String) {
        #expect(read(text) == "a.b.c")
    }

    @Test(arguments: [
        "", " ", "a.b.c", "null", "[]", "{}", #"{"type":"token"}"#, #"{"token":"a.b.c"}"#,
        #"{"type":"Token","token":"a.b.c"}"#, #"{"type":"vote","token":"a.b.c"}"#,
        #"{"type":"token","token":null}"#, #"{"type":"token","token":5}"#, #"{"type":"token","Token":"x"}"#,
        #"["token","a.b.c"]"#, #"{"type":"token","token":"a.b.c""#,
    ]) func `is no other message`(text: String) {
        #expect(read(text) == nil)
    }

    @Test func `is a text, not the same bytes`() {
        let bytes = Array(#"{"type":"token","token":"a.b.c"}"#.utf8)
        let token = TokenMessage(.binary(bytes))?.token
        #expect(token == nil)
    }

    /// Whoever has shown no token yet must not make the server read much.
    @Test func `has 8 kB at most`() {
        let (start, end) = (#"{"type":"token","token":""#, "\"}")
        let room = 8_192 - start.utf8.count - end.utf8.count
        let longest = String(repeating: "a", count: room)
        let found = read(start + longest + end)
        #expect(found == longest)
        let longer = read(start + longest + "a" + end)
        #expect(longer == nil)
        // Bytes count, not characters.
        let wide = String(repeating: "é", count: room / 2 + 1)
        let wider = read(start + wide + end)
        #expect(wider == nil)
    }

    @Test func `is waited for only where it is announced, and no other token is there`() {
        let announced = ("authenticate", "message")
        #expect(TokenMessage.isAnnounced(by: makeRequest([announced])))
        #expect(TokenMessage.isAnnounced(by: makeRequest([("since", "5"), announced])))
        #expect(!TokenMessage.isAnnounced(by: makeRequest([])))
        #expect(!TokenMessage.isAnnounced(by: makeRequest([("authenticate", "")])))
        #expect(!TokenMessage.isAnnounced(by: makeRequest([("authenticate", "Message")])))
        #expect(!TokenMessage.isAnnounced(by: makeRequest([announced, ("access_token", "x")])))
        // Also an empty one: it is refused, and not replaced by what comes later.
        #expect(!TokenMessage.isAnnounced(by: makeRequest([announced, ("access_token", "")])))
        let field: HTTPHeaders = ["Authorization": "Bearer x"]
        #expect(!TokenMessage.isAnnounced(by: makeRequest([announced], field)))
    }

    @Test func `takes the place of any other in the request`() throws {
        let message = try #require(TokenMessage(.text(#"{"type":"token","token":"a.b.c"}"#)))
        let request = makeRequest([], ["authorization": "Basic x", "Host": "a.example"]).bearing(message)
        let fields = request.headers.fields.filter { $0.name == "authorization" }
        #expect(fields.map(\.value) == ["Bearer a.b.c"])
        #expect(request.headers["host"] == "a.example")
    }

    /// 4403 tells a page that its participant was removed, after which it does not come back.
    @Test(
        arguments: [
            (401, 4_401), (403, 4_401), (404, 4_404), (409, 4_409), (429, 4_429), (503, 4_503),
        ] as [(Int, UInt16)])
    func `that is refused closes the socket by its status, but never as a removal does`(
        status: Int, code: UInt16
    ) {
        let close = WebSocketClose(Problem(status, "some-rule", "No."))
        #expect(close == WebSocketClose(code: code, reason: "some-rule"))
    }
}

@Suite struct `Identities for guests` {
    private let allowance = GuestAllowance()
    /// In seconds of the clock for durations.
    private static let now = 1_000_000

    private func makeRequest(_ ip: UInt32, isByProxy: Bool = false) -> HTTPRequest {
        var request = HTTPRequest(method: .post, path: "/v1/streams/s1/tokens")
        request.clientAddress = IPAddress(ipv4: ip)
        request.isByProxy = isByProxy
        return request
    }

    /// How many of so many requests at one time get one.
    private func count(_ attempts: Int, _ request: HTTPRequest, at now: Int) -> Int {
        (0..<attempts).count { _ in take(request, at: now) == nil }
    }

    private func take(_ request: HTTPRequest, at now: Int) -> Int? {
        allowance.take(request, at: MonotonicTime(nanoseconds: Int64(now) * 1_000_000_000))
    }

    @Test func `come back one a second, and sixty at most after any time`() {
        let request = makeRequest(0xC000_0207)
        let first = count(100, request, at: Self.now)
        #expect(first == 60)
        let second = count(100, request, at: Self.now + 1)
        #expect(second == 1)
        let tenth = count(100, request, at: Self.now + 11)
        #expect(tenth == 10)
        let later = count(100, request, at: Self.now + 1_000_000)
        #expect(later == 60)
    }

    /// The table is swept once a second; what was taken must not be forgotten with that.
    @Test func `are not given again because others ask at other times`() {
        let (request, other) = (makeRequest(0xC000_0207), makeRequest(0xC633_6407))
        let first = count(60, request, at: Self.now)
        #expect(first == 60)
        for second in 1...30 { _ = take(other, at: Self.now + second) }
        let back = count(100, request, at: Self.now + 30)
        #expect(back == 30)
    }

    @Test func `are not limited on this machine, unless a proxy there forwards somebody`() {
        let local = count(200, makeRequest(0x7F00_0001), at: Self.now)
        #expect(local == 200)
        let forwarded = count(200, makeRequest(0x7F00_0001, isByProxy: true), at: Self.now)
        #expect(forwarded == 60)
    }

    @Test func `survive a clock that is wrong`() {
        let request = makeRequest(0xC000_0207)
        _ = allowance.take(request, at: MonotonicTime(nanoseconds: .min))
        for now in [-1, 0, Self.now, 0, Int(Int32.max)] { _ = take(request, at: now) }
        let left = count(100, request, at: Int(Int32.max))
        #expect(left < 60)
    }
}
