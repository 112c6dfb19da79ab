import Foundation
import HTTP
import HTTPTestSupport
import TestSupport
import Testing

@testable import RostrumClient

/// A value as the member of an object: whether a document may be a number alone, is another question.
private func json(_ text: String) throws -> JSONValue {
    try JSONValue(parsing: Data(#"{"value":\#(text)}"#.utf8))["value"]
}

@Suite struct `The order of the feed` {
    private var list = FeedList()

    private mutating func begin(_ ids: String...) throws {
        let items = ids.map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
        _ = list.receive(try json(#"{"type":"snapshot","items":[\#(items)]}"#))
    }

    private var ids: [String] { list.streams.map(\.id) }

    @Test mutating func `is that which is read, for all that is read`() throws {
        try begin("a", "b", "c", "d", "e")
        list.arrange(["d", "x", "b", "d", "a"])
        #expect(ids == ["d", "b", "a", "c", "e"])
        list.arrange([])
        #expect(ids == ["d", "b", "a", "c", "e"] && list.count == 5)
        list = FeedList()
        list.arrange(["a"])
        #expect(ids.isEmpty && list.count == 0)
    }

    @Test mutating func `has room for a thousand, the first of them`() throws {
        let items = (1...1_003).map { #"{"id":"s\#($0)"}"# }.joined(separator: ",")
        _ = list.receive(try json(#"{"type":"snapshot","items":[\#(items)]}"#))
        #expect(list.count == 1_000 && ids.first == "s1" && ids.last == "s1000")
        _ = list.receive(try json(#"{"type":"change","added":[{"item":{"id":"new"},"after":null}]}"#))
        #expect(list.count == 1_000 && ids.first == "new" && ids.last == "s999")
    }

    @Test mutating func `puts behind all what follows nobody that is known`() throws {
        try begin("a", "b")
        _ = list.receive(try json(#"{"type":"change","added":[{"item":{"id":"c"},"after":"zzz"}]}"#))
        _ = list.receive(try json(#"{"type":"change","moved":[{"id":"a","after":"zzz"}]}"#))
        #expect(ids == ["b", "c", "a"])
    }

    @Test(arguments: [
        #"{"type":"change","added":[{"after":null},{"item":7},{"item":{"id":null}}]}"#,
        #"{"type":"change","moved":[{"id":"zzz","after":null},{},7]}"#,
        #"{"type":"change","edited":[{"title":"x"},{"id":"zzz"},[]],"ended":["zzz",1,null]}"#,
        #"{"type":"change","viewers":{"zzz":3},"ended":{"a":1},"added":"a"}"#, #"{"type":"change"}"#,
    ])
    mutating func `is not changed by what makes no sense`(message: String) throws {
        try begin("a", "b")
        let before = list
        _ = list.receive(try json(message))
        #expect(list == before)
    }

    @Test mutating func `comes twice for nobody`() throws {
        try begin("a", "b", "a")
        #expect(ids == ["b", "a"])
        let item = #"{"id":"b","viewers":4}"#
        _ = list.receive(try json(#"{"type":"change","added":[{"item":\#(item),"after":"a"}]}"#))
        #expect(ids == ["a", "b"] && list.streams.last?.viewers == 4)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A follower of the feed` {
    private let sockets = FakeSockets()

    /// The first list with these streams, in any order.
    private func list(
        _ streams: AsyncStream<[StreamInfo]>, until isSo: ([String]) -> Bool
    ) async -> [String] {
        for await list in streams {
            let ids = list.map(\.id)
            if isSo(ids) { return ids }
        }
        return []
    }

    @Test func `reads the order anew once more moved than the server names`() async throws {
        let pages = ["-": ("c,b", "2"), "2": ("a,x", "3"), "3": ("", "4")]
        let asked = Watched<[String]>([])
        let handler = ClosureHandler(answer: { request in
            let cursor = request.query("cursor") ?? "-"
            asked.change {
                $0.append("\(request.path) \(request.query("limit") ?? "") \(cursor)")
            }
            let (ids, next) = pages[cursor] ?? ("", "")
            let items = ids.split(separator: ",").map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
            return HTTPResponse(
                status: 200, body: Array(#"{"items":[\#(items)],"next":"\#(next)"}"#.utf8))
        })
        try await withServer(handler) { server in
            let http = HTTPClient(try #require(URL(string: "http://\(server.address)")))
            let feed = FeedSync(
                http, tokens: TokenKeeper(http, stream: "*", source: .fixed("t")), transport: sockets,
                spread: .zero)
            var connections = sockets.opened.makeAsyncIterator()
            let opened = try #require(await connections.next())
            let connection = opened.0
            connection.tell(#"{"type":"snapshot","items":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#)
            connection.tell(#"{"type":"change","reordered":true,"viewers":{"a":5}}"#)
            let arranged = await list(feed.streams) { $0 == ["c", "b", "a"] }
            #expect(arranged == ["c", "b", "a"])
            await feed.close()
        }
        // As many pages as the list is long.
        #expect(asked.value == ["/v1/feed 100 -", "/v1/feed 100 2"])
    }

    @Test func `keeps its order where the server does not tell another`() async throws {
        let asked = Watched(0)
        let handler = ClosureHandler(answer: { _ in
            asked.change { $0 += 1 }
            return HTTPResponse(status: 503)
        })
        try await withServer(handler) { server in
            let http = HTTPClient(try #require(URL(string: "http://\(server.address)")))
            let feed = FeedSync(
                http, tokens: TokenKeeper(http, stream: "*", source: .fixed("t")), transport: sockets,
                spread: .zero)
            var connections = sockets.opened.makeAsyncIterator()
            let opened = try #require(await connections.next())
            let connection = opened.0
            connection.tell(#"{"type":"snapshot","items":[{"id":"a"},{"id":"b"}]}"#)
            connection.tell(#"{"type":"change","reordered":true}"#)
            try await asked.wait { $0 == 1 }
            // The next change asks again.
            connection.tell(#"{"type":"change","reordered":true,"moved":[{"id":"a","after":"b"}]}"#)
            try await asked.wait { $0 == 2 }
            let moved = await list(feed.streams) { $0 == ["b", "a"] }
            #expect(moved == ["b", "a"])
            await feed.close()
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A follower of a stream` {
    private let sockets = FakeSockets()

    /// How following ends on a server that answers every request so, after a socket was refused.
    private func end(_ status: Int, rule: String) async throws -> ConnectionState? {
        var last: ConnectionState?
        let body = Array(#"{"rule":"\#(rule)","detail":"No."}"#.utf8)
        let handler = ClosureHandler(answer: { _ in HTTPResponse(status: status, body: body) })
        try await withServer(handler) { server in
            let url = try #require(URL(string: "http://\(server.address)"))
            let sync = RostrumServer(url, sockets: sockets).stream("talk", tokens: .fixed("t")).follow()
            var connections = sockets.opened.makeAsyncIterator()
            let opened = try #require(await connections.next())
            let connection = opened.0
            connection.hangUp(4_401)
            for await state in sync.states { last = state }
        }
        return last
    }

    /// The token is good, but another one is needed: to try again with it for ever helps nobody.
    @Test func `does not come back with a token for another stream`() async throws {
        let refusal = RostrumError.refused(
            status: 403, rule: "other-stream", detail: "No.", retryAfter: nil)
        #expect(try await end(403, rule: "other-stream") == .disconnected(.refused(refusal)))
        #expect(try await end(403, rule: "banned") == .disconnected(.banned))
        #expect(try await end(401, rule: "x") == .disconnected(.expired))
    }
}

@Suite struct `A value of JSON` {
    @Test func `is merged as RFC 7396 has it`() throws {
        // The examples of its appendix A.
        let examples: [(String, String, String)] = [
            (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#), (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
            (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
            (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
            (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
            (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
            (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#), (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
            (#"{"a":"foo"}"#, #"null"#, #"null"#), (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
            (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
            (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
            (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
        ]
        for (target, patch, result) in examples {
            var value = try json(target)
            value.merge(try json(patch))
            #expect(try value == json(result), "\(target) \(patch)")
        }
    }

    @Test func `may be nested, but not endlessly`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        func parsed(_ text: String) throws -> JSONValue { try JSONValue(parsing: Data(text.utf8)) }
        #expect(try parsed(nested(32)).elements.count == 1)
        #expect(throws: RostrumError.self) { try parsed(nested(33)) }
        // Brackets in strings are text, and quotes may be escaped.
        let text = #"{"a":"\#(String(repeating: "[", count: 100))\"\#(String(repeating: "{", count: 100))"}"#
        #expect(try parsed(text)["a"].string?.count == 201)
        // Beside each other they are not nested.
        let many = Array(repeating: "[[]]", count: 100).joined(separator: ",")
        #expect(try parsed("[\(many)]").elements.count == 100)
    }

    @Test(
        arguments: [
            ("7", 7), ("-3.9", -3), ("0.5", 0), ("1e3", 1_000), ("9007199254740993", 9_007_199_254_740_992),
            ("1e300", nil), ("-1e19", nil), ("true", nil), (#""7""#, nil), ("null", nil),
        ] as [(String, Int?)])
    func `is a whole number if it can be`(text: String, number: Int?) throws {
        #expect(try json(text).integer == number)
    }

    @Test func `is no number, switch or text that it is not`() throws {
        #expect(try json("1").bool == nil && json("true").string == nil && json(#""true""#).bool == nil)
        #expect(try json("[1]")["a"] == .null && json("{}").elements.isEmpty && json("[]").members.isEmpty)
        #expect(try json(#"{"a":{"b":1}}"#)["a"]["b"]["c"]["d"] == .null)
    }

    @Test(
        arguments: [
            ("2030-01-01T20:00:00Z", 1_893_528_000), ("2030-01-01T20:00:00.250Z", 1_893_528_000.25),
            ("yesterday", nil), ("", nil),
        ] as [(String, Double?)])
    func `is a time if it is written as one`(text: String, seconds: Double?) throws {
        let found = try json("\"\(text)\"").date?.timeIntervalSince1970
        if let seconds {
            #expect(abs((found ?? 0) - seconds) < 0.001)
        } else {
            #expect(found == nil)
        }
    }

    @Test func `is a stream, a comment and a person only with what they must have`() throws {
        #expect(StreamInfo(try json(#"{"state":"live"}"#)) == nil)
        #expect(Comment(try json(#"{"number":1}"#)) == nil)
        #expect(Comment(try json(#"{"author":"a"}"#)) == nil)
        #expect(Me(try json(#"{"role":"host"}"#)) == nil)
        let odd = try json(#"{"id":"a","viewers":"9","paused":1,"startsAt":5}"#)
        let stream = try #require(StreamInfo(odd))
        #expect(stream.state == "waiting" && !stream.isLive && stream.viewers == 0 && !stream.isPaused)
        #expect(stream.startsAt == nil && stream.title == nil)
        let comment = try #require(Comment(try json(#"{"number":3,"author":"a","at":"never"}"#)))
        #expect(comment.id == "" && comment.text == "" && comment.name == nil && comment.at == nil)
        let me = try #require(Me(try json(#"{"id":"a","role":"king","invited":"yes"}"#)))
        #expect(me.role == .viewer && !me.isInvited && !me.isAdmitted && me.handPlace == nil)
    }

    @Test func `is a state however little of it there is`() throws {
        let hands = #"{"c":{},"b":{},"d":{"order":1}}"#
        let state = StageState(try json(#"{"speakers":{"a":7},"raisedHands":\#(hands)}"#))
        #expect(state.stream == nil && state.viewers.isEmpty && state.invitations.isEmpty)
        #expect(state.speakers["a"]?.isHost == false && state.speakers["a"]?.name == nil)
        // Hands without a place come last, by name.
        #expect(state.raisedHands == ["d", "b", "c"])
    }
}
