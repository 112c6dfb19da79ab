import HTTP
import Testing

@testable import Gateway

@Suite struct `A path pattern` {
    private func match(_ pattern: String, _ path: String) -> [String: String]? {
        let route = Route(.get, pattern, "test") { _, _ in HTTPResponse(status: 200) }
        return route.match(path.split(separator: "/"))
    }

    @Test(
        arguments: [
            ("/a/b", "/a/b", [:]), ("/a/{x}", "/a/b", ["x": "b"]),
            ("/{x}/{y}", "/a/b", ["x": "a", "y": "b"]), ("/a/{file*}", "/a/b", ["file": "b"]),
            ("/a/{file*}", "/a/b/c/d", ["file": "b/c/d"]),
            ("/a/{participant}", "/a/b/c", ["participant": "b/c"]),
            ("/{x}/{participant}/mute", "/a/b/mute", ["x": "a", "participant": "b"]),
            ("/{x}/{participant}/mute", "/a/b/c/mute", ["x": "a", "participant": "b/c"]),
            ("/{x}/{participant}/mute", "/a/mute/mute", ["x": "a", "participant": "mute"]),
            ("/{x}/{participant}/mute", "/a/mute/mute/mute", ["x": "a", "participant": "mute/mute"]),
            ("/{participant}/{x}/end", "/a/b/c/end", ["participant": "a/b", "x": "c"]),
            ("/", "/", [:]),
        ] as [(String, String, [String: String])])
    func `finds the parameters of a path`(pattern: String, path: String, parameters: [String: String]) {
        #expect(match(pattern, path) == parameters)
    }

    @Test(arguments: [
        ("/a/b", "/a"), ("/a/b", "/a/b/c"), ("/a/b", "/a/B"), ("/a/{x}", "/a"), ("/a/{x}", "/a/"),
        ("/a/{x}", "/a/b/c"), ("/a/{file*}", "/a"), ("/a/{participant}", "/a"),
        ("/{x}/{participant}/mute", "/a/mute"), ("/{x}/{participant}/mute", "/a/b/c"),
        ("/{participant}/{x}/end", "/a/end"), ("/{participant}/{x}/end", "/b/c/end/d"), ("/", "/a"),
    ]) func `is not that of another path`(pattern: String, path: String) {
        #expect(match(pattern, path) == nil)
    }
}

@Suite struct `The router's choice` {
    private func find(_ method: HTTPMethod, _ path: String) -> String? {
        guard case .found(let route, _) = Router.route(method, path) else { return nil }
        return route.operationID
    }

    @Test(arguments: ["\u{301}bob", "bob\u{D4E}", "\u{200D}", "a\u{D4E}/\u{301}b"])
    func `leaves an identity as it is`(identity: String) {
        guard
            case .found(_, let parameters) = Router.route(.post, "/v1/streams/s1/speakers/\(identity)/mute")
        else {
            Issue.record("not found")
            return
        }
        #expect(parameters["participant"]?.utf8.elementsEqual(identity.utf8) == true)
        #expect(parameters["stream"] == "s1")
    }

    /// Of two patterns that fit, the one that says more.
    @Test(arguments: [
        (HTTPMethod.get, "/hls/s1/index.m3u8", "showHLS"), (.get, "/hls/s1/x.mp4", "showHLSFile"),
        (.get, "/hls/s1/t/a.b.c/index.m3u8", "showHLSByToken"),
        (.post, "/v1/streams/s1/invitations/bob/accept", "acceptInvitation"),
        (.post, "/v1/streams/s1/invitations/a/b/accept", "acceptInvitation"),
        (.delete, "/v1/streams/s1/invitations/bob/accept", "endInvitation"),
        (.delete, "/v1/streams/s1/speakers/mute", "leaveStage"),
        (.post, "/v1/streams/s1/speakers/a/b/mute", "requestMute"),
        (.head, "/v1/streams", "listStreams"), (.head, "/v1/streams/s1", "showStream"),
        // An identity may begin or end with a character that joins the slash beside it: its owner can be muted, too.
        (.post, "/v1/streams/s1/speakers/\u{301}bob/mute", "requestMute"),
        (.post, "/v1/streams/s1/speakers/bob\u{D4E}/mute", "requestMute"),
    ])
    func `is the route that the path names`(method: HTTPMethod, path: String, operation: String) {
        #expect(find(method, path) == operation)
    }

    @Test(
        arguments: [
            (HTTPMethod.put, "/v1/streams/s1", [HTTPMethod.get, .head, .patch, .options]),
            (.get, "/whip/s1/x/y", nil), (.head, "/v1/tokens", [.post, .options]),
            (.post, "/v1/streams/s1/card", [.put, .delete, .options]),
        ] as [(HTTPMethod, String, [HTTPMethod]?)])
    func `says what else may be done with a path`(method: HTTPMethod, path: String, others: [HTTPMethod]?) {
        let outcome = Router.route(method, path)
        switch outcome {
        case .found(let route, _): Issue.record("\(route.operationID)")
        case .otherMethods(let methods): #expect(methods == others)
        case .nothing: #expect(others == nil)
        }
    }
}
