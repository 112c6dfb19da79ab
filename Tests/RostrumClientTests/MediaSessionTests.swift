import Foundation
import HTTP
import HTTPTestSupport
import TestSupport
import Testing

@testable import RostrumClient

/// Against a server that answers as a test says, with connections that do as it says.
@Suite(.timeLimit(.minutes(10))) struct `A session of media` {
    private let engine = FakeMedia()
    /// What the server was asked: method, path, and token.
    private let requests = Watched<[String]>([])

    /// Runs a server that answers the nth offer, from 0 on; without an answer it makes a session of that number.
    private func withStream(
        tokens: TokenSource = .none, refusals: [Int: HTTPResponse] = [:],
        _ body: (StreamClient) async throws -> Void
    ) async throws {
        let handler = ClosureHandler(answer: { [requests] request in
            let name = "\(request.method.rawValue) \(request.path)"
            let offers = requests.change { requests in
                defer { requests.append("\(name) \(request.headers["authorization"] ?? "-")") }
                return requests.count { $0.hasPrefix("POST") }
            }
            guard request.method == .post else { return HTTPResponse(status: 200) }
            return refusals[offers]
                ?? HTTPResponse(
                    status: 201, headers: ["Location": "/sessions/\(offers)"],
                    body: Array("answer \(offers)".utf8))
        })
        try await withServer(handler) { server in
            let url = try #require(URL(string: "http://\(server.address)"))
            try await body(RostrumServer(url, sockets: FakeSockets()).stream("talk", tokens: tokens))
        }
    }

    /// The states up to one that is so.
    private func states(
        _ session: MediaSession, until isLast: (ConnectionState) -> Bool
    ) async -> [ConnectionState] {
        var seen: [ConnectionState] = []
        for await state in session.states {
            seen.append(state)
            if isLast(state) { break }
        }
        return seen
    }

    private func problem(_ status: Int, rule: String) -> HTTPResponse {
        HTTPResponse(status: status, body: Array(#"{"rule":"\#(rule)","detail":"No."}"#.utf8))
    }

    @Test func `is made of an offer and its answer, and ends on both sides`() async throws {
        try await withStream(tokens: .fixed("t")) { stream in
            let session = try await stream.watch(wait: 5, engine: engine)
            let connection = try await engine.connection(0)
            #expect(connection.lines == [.receiveAudio, .receiveVideo])
            #expect(connection.answer.value == "answer 0")
            #expect(session.resource?.path == "/sessions/0")
            connection.tell(.connected)
            let begun = await states(session) { $0 == .connected }
            #expect(begun == [.connecting, .connected])
            await session.close()
            #expect(connection.isClosed.value && session.resource == nil)
            let ended = await states(session) { _ in false }
            #expect(ended == [.disconnected(.closed)])
            // Nothing more comes of any kind.
            for await _ in session.packets { Issue.record("a packet") }
            for await _ in session.messages { Issue.record("a message") }
            for await _ in session.keyFrameRequests { Issue.record("a request") }
        }
        #expect(requests.value == ["POST /whep/talk Bearer t", "DELETE /sessions/0 Bearer t"])
    }

    @Test func `goes on in another session when it is lost`() async throws {
        try await withStream { stream in
            let session = try await stream.watch(engine: engine)
            let first = try await engine.connection(0)
            first.tell(.connected)
            first.tell(.lost("the path"))
            let second = try await engine.connection(1)
            second.tell(.connected)
            let begun = await states(session) { $0 == .connected }
            let again = await states(session) { $0 == .connected }
            #expect(begun == [.connecting, .connected] && again == [.reconnecting, .connected])
            #expect(first.isClosed.value && second.answer.value == "answer 1")
            #expect(session.resource?.path == "/sessions/1")
            await session.close()
        }
        #expect(
            requests.value == [
                "POST /whep/talk -", "DELETE /sessions/0 -", "POST /whep/talk -", "DELETE /sessions/1 -",
            ])
    }

    @Test(arguments: [
        (403, "banned", DisconnectReason.banned), (403, "link-revoked", .revoked), (401, "x", .expired),
        (403, "other", .refused(.refused(status: 403, rule: "other", detail: "No.", retryAfter: nil))),
    ])
    func `does not go on where the server says no for good`(
        status: Int, rule: String, reason: DisconnectReason
    ) async throws {
        try await withStream(refusals: [1: problem(status, rule: rule)]) { stream in
            let session = try await stream.watch(engine: engine)
            try await engine.connection(0).tell(.lost("the path"))
            let seen = await states(session) { _ in false }
            #expect(seen == [.connecting, .reconnecting, .disconnected(reason)])
            // Its connection is not left open either.
            #expect(try await engine.connection(1).isClosed.value)
            #expect(session.resource == nil)
        }
    }

    @Test func `tries again where the server only says not now`() async throws {
        try await withStream(refusals: [1: problem(503, rule: "overloaded")]) { stream in
            let session = try await stream.watch(engine: engine)
            try await engine.connection(0).tell(.lost("the path"))
            let last = try await engine.connection(2)
            last.tell(.connected)
            let seen = await states(session) { $0 == .connected }
            #expect(seen == [.connecting, .reconnecting, .connected])
            #expect(last.answer.value == "answer 2")
            for number in 0...1 { #expect(try await engine.connection(number).isClosed.value) }
            await session.close()
        }
    }

    @Test func `does not begin where the first offer is refused`() async throws {
        try await withStream(refusals: [0: problem(409, rule: "no-publisher")]) { stream in
            let error = await #expect(throws: RostrumError.self) { try await stream.watch(engine: engine) }
            #expect(
                error == .refused(status: 409, rule: "no-publisher", detail: "No.", retryAfter: nil))
            let isClosed = try await engine.connection(0).isClosed.value
            #expect(isClosed)
        }
        #expect(requests.value.count == 1)
    }

    @Test func `begins with another token where one is refused`() async throws {
        let tokens = TokenSource { refused in refused == nil ? "old" : "new" }
        try await withStream(tokens: tokens, refusals: [0: problem(401, rule: "x")]) { stream in
            let session = try await stream.watch(engine: engine)
            #expect(session.resource?.path == "/sessions/1")
            #expect(try await engine.connection(0).isClosed.value)
            await session.close()
        }
        #expect(
            requests.value == [
                "POST /whep/talk Bearer old", "POST /whep/talk Bearer new", "DELETE /sessions/1 Bearer new",
            ])
    }

    @Test(arguments: [(FakeMedia.Fault.making, 0), (.offer, 0), (.answer, 2)])
    func `leaves nothing open where the media stack fails`(fault: FakeMedia.Fault, asked: Int) async throws {
        let failing = FakeMedia(fault: fault)
        try await withStream { stream in
            let error = await #expect(throws: RostrumError.self) { try await stream.watch(engine: failing) }
            guard case .unusable = error else {
                Issue.record("\(error as Any)")
                return
            }
        }
        #expect(failing.made.value.allSatisfy { $0.isClosed.value })
        // A session whose answer cannot be used is ended.
        #expect(requests.value.count == asked && (asked == 0 || requests.value[1] == "DELETE /sessions/0 -"))
    }

    @Test func `passes on what comes, but for what makes no sense`() async throws {
        try await withStream { stream in
            let session = try await stream.watch(engine: engine)
            let connection = try await engine.connection(0)
            let packet = MediaPacket(mid: "0", codec: "opus", payload: [1], timestamp: 2)
            connection.tell(.controlOpened)
            connection.tell(.message("no JSON"))
            connection.tell(.message(#"{"type":"slots","slots":[]}"#))
            connection.tell(.keyFrameWanted(mid: "1"))
            connection.deliver(packet)
            var messages = session.messages.makeAsyncIterator()
            let message = await messages.next()
            #expect(message?.type == "slots")
            var wishes = session.keyFrameRequests.makeAsyncIterator()
            let wish = await wishes.next()
            #expect(wish == "1")
            var packets = session.packets.makeAsyncIterator()
            let delivered = await packets.next()
            #expect(delivered == packet)
            await session.send(packet)
            #expect(connection.sent.value == [packet])
            try await session.focus("other", ahead: "third")
            let said = try JSONDecoder().decode(
                [String: String].self, from: Data(try #require(connection.said.value.first).utf8))
            #expect(said == ["type": "focus", "stream": "other", "ahead": "third"])
            await session.close()
            await session.send(packet)
            #expect(connection.sent.value.count == 1)
            await #expect(throws: RostrumError.notConnected) { try await session.focus("other") }
            await #expect(throws: RostrumError.notConnected) { try await session.prefer(maxHeight: 360) }
        }
    }

    @Test func `has the lines of a stage, and asks for what it prefers`() async throws {
        let patches = Watched<[String]>([])
        let handler = ClosureHandler(answer: { request in
            if request.method == .patch {
                patches.change { $0.append(String(decoding: request.body, as: UTF8.self)) }
            }
            return HTTPResponse(status: 201, headers: ["Location": "/sessions/0"])
        })
        try await withServer(handler) { server in
            let url = try #require(URL(string: "http://\(server.address)"))
            let stream = RostrumServer(url, sockets: FakeSockets()).stream("a b")
            let session = try await stream.joinStage(
                sending: [.sendAudio, .sendVideo(codec: "VP8")], voices: 2, pictures: -1, engine: engine)
            #expect(
                try await engine.connection(0).lines == [
                    .sendAudio, .sendVideo(codec: "VP8"), .receiveAudio, .receiveAudio, .control,
                ])
            try await session.prefer(maxHeight: 360)
            try await session.prefer(maxHeight: nil, audioOnly: true)
            await session.close()
        }
        #expect(
            patches.value == [
                #"{"maxHeight":360,"audioOnly":false}"#, #"{"maxHeight":null,"audioOnly":true}"#,
            ])
    }
}
