import Base
import Foundation
import Node
import Stage
import Store
import TestSupport
import Testing

@testable import Gateway
@testable import HTTP

@Suite struct StageRoutes {
    private struct List: Decodable {
        struct Stream: Decodable {
            let id: String
        }
        let streams: [Stream]
        let next: String?
    }

    @Test func `make a stream once for one key`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host)
            let first = await bench.ask(
                .post, "/v1/streams", token: host, body: #"{"title":"Hi"}"#, ["Idempotency-Key": "k"])
            #expect(first.status == 201)
            let again = await bench.ask(
                .post, "/v1/streams", token: host, body: #"{"title":"Hi"}"#, ["Idempotency-Key": "k"])
            #expect(again.status == 201)
            #expect(first.headers["location"] == again.headers["location"])
            let other = await bench.ask(
                .post, "/v1/streams", token: host, body: #"{"title":"Ho"}"#, ["Idempotency-Key": "k"])
            #expect(other.status == 422)
            // The key is the sender's own.
            let bob = await bench.ask(
                .post, "/v1/streams", token: try bench.token("bob", .host), body: #"{"title":"Ho"}"#,
                ["Idempotency-Key": "k"])
            #expect(bob.status == 201 && bob.headers["location"] != first.headers["location"])
        }
    }

    @Test func `remove nobody where it is unclear whether they may come back`() async throws {
        try await StageBench.run { bench in
            let (ann, bob) = (
                try bench.token("ann", .host, stream: "s1"), try bench.token("bob", .viewer, stream: "s1")
            )
            // Nobody sends, and a slow machine takes its time.
            await bench.do(.post, "/v1/streams", token: ann, body: #"{"hostGraceSeconds":3600}"#)
            try await bench.connect("bob", as: .viewer, to: "s1")
            let path = "/v1/streams/s1/participants/bob"
            for word in ["1", "yes", "True", ""] {
                let refused = await bench.ask(.delete, "\(path)?ban=\(word)", token: ann)
                #expect(refused.status == 422)
                #expect(try refused.json(JSON.self)["detail"]?.string == "ban must be true or false.")
            }
            #expect(await bench.ask(.get, "/v1/streams/s1/participants", token: bob).status == 200)
            await bench.do(.delete, "\(path)?ban=false", token: ann)
            #expect(await bench.ask(.get, "/v1/streams/s1/participants", token: bob).status == 200)
        }
    }

    @Test func `name a new stream by the body, the token, or a lot`() async throws {
        try await StageBench.run { bench in
            let all = try bench.token("ann", .host)
            #expect(
                await bench.ask(.post, "/v1/streams", token: all, body: #"{"id":"a"}"#).headers["location"]
                    == "/v1/streams/a")
            let one = try bench.token("ann", .host, stream: "b")
            #expect(
                await bench.ask(.post, "/v1/streams", token: one).headers["location"] == "/v1/streams/b")
            let drawn = await bench.do(.post, "/v1/streams", token: all)
            #expect(drawn["id"]?.string?.count == 12)
            #expect(drawn["host"] == .string("ann") && drawn["hostName"] == .string("Ann"))
            let admin = try bench.token("root", .admin)
            let other = await bench.do(
                .post, "/v1/streams", token: admin, body: #"{"host":"bob","hostName":"Bobby"}"#)
            #expect(other["host"] == .string("bob") && other["hostName"] == .string("Bobby"))
            #expect(
                await bench.ask(.post, "/v1/streams", token: all, body: #"{"host":"bob"}"#).status == 403)
        }
    }

    @Test(arguments: [
        (#"{"title":""}"#, "title"), (#"{"title":5}"#, "title"), (#"{"startsAt":"soon"}"#, "startsAt"),
        (#"{"startsAt":"2001-01-01T00:00:00Z"}"#, "startsAt"), (#"{"startsAt":1}"#, "startsAt"),
        (#"{"joinAheadSeconds":-1}"#, "joinAheadSeconds"), (#"{"joinAheadSeconds":1.5}"#, "joinAheadSeconds"),
        (#"{"joinAheadSeconds":1e300}"#, "joinAheadSeconds"),
        (#"{"joinAheadSeconds":true}"#, "joinAheadSeconds"),
        (#"{"dvrSeconds":7201}"#, "dvrSeconds"),
        (#"{"hostGraceSeconds":3601}"#, "hostGraceSeconds"), (#"{"programme":"x"}"#, "programme"),
        (#"{"layers":["x"]}"#, "layers"), (#"{"layers":{}}"#, "layers"),
        (#"{"layers":["lite","lite"]}"#, "layers"),
        (#"{"composition":7}"#, "composition"), (#"{"composition":{"width":641}}"#, "composition"),
        (#"{"composition":{"height":99999}}"#, "composition"), (#"{"composition":{"fps":0}}"#, "composition"),
        (#"{"composition":{"bitrate":1}}"#, "composition"),
        (#"{"composition":{"width":1920,"height":1920}}"#, "composition"),
        (#"{"composition":{"layout":"heap"}}"#, "composition"),
        (#"{"composition":{"background":"red"}}"#, "composition"),
    ])
    func `name the member that cannot be`(body: String, field: String) async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host)
            for (method, target) in [(HTTPMethod.post, "/v1/streams"), (.patch, "/v1/streams/s1")] {
                if method == .patch {
                    await bench.do(.post, "/v1/streams", token: host, body: #"{"id":"s1"}"#)
                }
                let response = await bench.ask(method, target, token: host, body: body)
                #expect(response.status == 422)
                let problem = try response.json(JSON.self)
                #expect(problem["rule"] == .string("invalid-field") && problem["field"] == .string(field))
            }
        }
    }

    @Test(arguments: ["[]", "x", "null", "\"a\"", "{", #"{"title":"#])
    func `refuse bodies that are no objects`(body: String) async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host)
            #expect(await bench.ask(.post, "/v1/streams", token: host, body: body).status == 400)
            #expect(
                await bench.ask(.post, "/v1/streams", token: host, body: "{}", type: "text/plain").status
                    == 415)
        }
    }

    @Test func `change what is named and clear what is null`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host)
            await bench.do(
                .post, "/v1/streams", token: host,
                body: #"{"id":"s1","title":"Hi","startsAt":"2999-01-01T12:00:00+02:00","layers":["player"]}"#)
            let edited = await bench.do(
                .patch, "/v1/streams/s1", token: host, body: #"{"title":null,"programme":"active-speaker"}"#)
            #expect(edited["title"] == .null)
            #expect(edited["startsAt"] == .string("2999-01-01T10:00:00.000Z"))
            #expect(edited["programme"] == .string("active-speaker"))
            #expect(edited["layers"] == .array([.string("player")]))
            let sized = await bench.do(
                .patch, "/v1/streams/s1", token: host,
                body:
                    ##"{"composition":{"width":720,"height":1280,"layout":"spotlight","background":"#a0B1c2"}}"##
            )
            #expect(
                sized["composition"]
                    == .object([
                        "width": .number(720), "height": .number(1_280), "fps": .number(30),
                        "bitrate": .number(2_000_000), "layout": .string("spotlight"),
                        "background": .string("#a0b1c2"),
                    ]))
            let usual = await bench.do(.patch, "/v1/streams/s1", token: host, body: #"{"composition":null}"#)
            #expect(usual["composition"] == .null)
        }
    }

    @Test func `list by state, host and time, page by page`() async throws {
        try await StageBench.run { bench in
            let (ann, bob) = (try bench.token("ann", .host), try bench.token("bob", .host))
            for number in 0..<7 {
                let token = number % 2 == 0 ? ann : bob
                // Nobody sends, and a slow machine takes its time.
                let times = #""startsAt":"300\#(number)-01-01T00:00:00Z","hostGraceSeconds":3600"#
                await bench.do(
                    .post, "/v1/streams", token: token, body: #"{"id":"s\#(number)",\#(times)}"#)
            }
            await bench.do(.post, "/v1/streams/s3/live", token: bob)
            await bench.do(.post, "/v1/streams/s4/live", token: ann)
            await bench.do(.post, "/v1/streams/s4/end", token: ann)
            func list(_ query: String) async throws -> List {
                try await bench.ask(.get, "/v1/streams?\(query)", token: ann).json(List.self)
            }
            #expect(try await list("state=live").streams.map(\.id) == ["s3"])
            #expect(try await list("state=live,ended&host=ann").streams.map(\.id) == ["s4"])
            #expect(
                try await list("after=3001-01-01T00:00:00Z&before=3005-01-01T00:00:00Z").streams.map(\.id)
                    == ["s2", "s1"])
            var seen: [String] = []
            var cursor = ""
            repeat {
                let page = try await list("limit=2\(cursor)")
                seen += page.streams.map(\.id)
                cursor = page.next.map { "&cursor=\($0)" } ?? ""
                // What is in between goes away; nothing is seen twice or skipped.
                if seen.count == 2 { await bench.do(.post, "/v1/streams/s2/end", token: ann) }
            } while !cursor.isEmpty
            #expect(seen == ["s3", "s6", "s5", "s2", "s1", "s0", "s4"])
            for query in ["state=x", "limit=0", "limit=x", "cursor=x", "after=x", "before="] {
                #expect(await bench.ask(.get, "/v1/streams?\(query)", token: ann).status == 422, "\(query)")
            }
        }
    }

    @Test func `carry a viewer onto the stage and back, with a token for each step`() async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            let ann = try bench.token("ann", .host, stream: "s1")
            let bob = try bench.token("bob", .viewer, stream: "s1")
            await bench.do(.post, "/v1/streams", token: ann)
            await bench.do(.post, "/v1/streams/s1/participants", token: bob)
            await bench.do(.post, "/v1/streams/s1/live", token: ann)
            await bench.do(.post, "/v1/streams/s1/invitations", token: ann, body: #"{"participant":"bob"}"#)
            let accepted = await bench.do(.post, "/v1/streams/s1/invitations/bob/accept", token: bob)
            let speaker = try #require(accepted["token"]?.string)
            let now = Int(Date().timeIntervalSince1970)
            #expect(try bench.authority.verify(speaker, now: now).role == .speaker)
            let offer = try Fixtures.text("Offers/chrome-publish.sdp")
            let live = await bench.ask(
                .post, "/whip/s1", token: speaker, body: offer, type: "application/sdp")
            #expect(live.status == 201)
            let down = await bench.do(.delete, "/v1/streams/s1/speakers/bob", token: speaker)
            let viewer = try #require(down["token"]?.string)
            #expect(try bench.authority.verify(viewer, now: now).role == .viewer)
            // The speaker's token is still good, but leads nowhere.
            let again = await bench.ask(
                .post, "/whip/s1", token: speaker, body: offer, type: "application/sdp")
            #expect(again.status == 403)
            #expect(try again.json(JSON.self)["rule"] == .string("not-on-stage"))
            let renewed = await bench.do(.post, "/v1/streams/s1/tokens", token: speaker)
            let role = try bench.authority.verify(try #require(renewed["token"]?.string), now: now).role
            #expect(role == .viewer)
        }
    }

    @Test func `renew a token again and again, but not for ever`() async throws {
        try await StageBench.run { bench in
            let ann = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: ann)
            let now = Int(Date().timeIntervalSince1970)
            let first = try bench.token("bob", .viewer, stream: "s1")
            let limit = try bench.authority.verify(first, now: now).renewableUntil
            var token = first
            for _ in 0..<3 {
                let answer = await bench.do(.post, "/v1/streams/s1/tokens", token: token)
                token = try #require(answer["token"]?.string)
                let read = try bench.authority.verify(token, now: now)
                #expect(read.renewableUntil == limit)
                #expect(read.expires > now + 3_000 && read.expires <= limit)
            }
            // As it is an hour before the limit: what is given in exchange ends there.
            let late = bench.authority.mint(
                subject: try #require(ParticipantID("bob")), name: nil,
                scope: .one(try #require(StreamID("s1"))), role: .viewer, issuedAt: now, expires: now + 100,
                renewableUntil: now + 600)
            let answer = await bench.do(
                .post, "/v1/streams/s1/tokens", token: try #require(late).exposed)
            let last = try bench.authority.verify(try #require(answer["token"]?.string), now: now)
            #expect(last.expires == now + 600 && last.renewableUntil == now + 600)
        }
    }

    @Test(arguments: ["a/b", "accept", "x/accept", "a//b", "/", "..", "100%", "ü ☂"])
    func `name any identity in a path or in the query`(name: String) async throws {
        try await StageBench.run { bench in
            let ann = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: ann)
            await bench.do(
                .post, "/v1/streams/s1/hands", token: try bench.token(name, .viewer, stream: "s1"))
            await bench.do(
                .post, "/v1/streams/s1/invitations", token: ann, body: "{\"participant\":\"\(name)\"}")
            // As the HTTP library gives it: decoded.
            var request = bench.request(.delete, "/v1/streams/s1/invitations/-", token: ann)
            if name.contains("//") || name == "/" || name == ".." {
                request.query = [HTTPRequest.QueryItem(name: "participant", value: name)]
            } else {
                request.path = "/v1/streams/s1/invitations/\(name)"
            }
            #expect(await bench.handler.respond(to: request).status == 200)
            let left = await bench.do(.get, "/v1/streams/s1/participants", token: ann)
            #expect(left["invitations"] == .object([:]))
            #expect(left["raisedHands"]?[name] != nil)
            let own = try bench.token(name, .viewer, stream: "s1")
            var accept = bench.request(.post, "/v1/streams/s1/invitations/-/accept", token: own)
            if request.query.isEmpty { accept.path = "/v1/streams/s1/invitations/\(name)/accept" }
            accept.query = request.query
            let refused = await bench.handler.respond(to: accept)
            #expect(try refused.json(JSON.self)["rule"] == .string("not-invited"))
        }
    }

    @Test func `tell viewers who come too early when it begins`() async throws {
        try await StageBench.run { bench in
            let ann = try bench.token("ann", .host, stream: "s1")
            await bench.do(
                .post, "/v1/streams", token: ann, body: #"{"startsAt":"2999-01-01T00:00:00Z"}"#)
            let offer = try Fixtures.text("Offers/chrome-play.sdp")
            let early = await bench.ask(
                .post, "/whep/s1?wait=9", token: try bench.token("bob", .viewer, stream: "s1"), body: offer,
                type: "application/sdp")
            #expect(early.status == 409 && early.headers["retry-after"] != nil)
            let problem = try early.json(JSON.self)
            #expect(problem["rule"] == .string("backstage"))
            #expect(problem["startsAt"] == .string("2999-01-01T00:00:00.000Z"))
            #expect(problem["waiting"] == .number(0))
            let guest = try bench.token("guy", .viewer, stream: "s1", capabilities: [.joinBackstage])
            #expect(
                await bench.ask(
                    .post, "/whep/s1?wait=9", token: guest, body: offer, type: "application/sdp"
                ).status == 201)
        }
    }

    @Test func `know nothing of streams nobody made`() async throws {
        try await StageBench.run { bench in
            let ann = try bench.token("ann", .host)
            let offer = try Fixtures.text("Offers/chrome-publish.sdp")
            #expect(
                await bench.ask(.post, "/whip/s1", token: ann, body: offer, type: "application/sdp").status
                    == 404)
            let play = try Fixtures.text("Offers/chrome-play.sdp")
            #expect(
                await bench.ask(.post, "/whep/s1?wait=9", token: ann, body: play, type: "application/sdp")
                    .status
                    == 404)
            #expect(await bench.ask(.post, "/v1/streams/s1/live", token: ann).status == 404)
            #expect(await bench.ask(.get, "/v1/streams/s1/participants", token: ann).status == 404)
            #expect(await bench.ask(.get, "/v1/streams/s1", token: ann).status == 404)
        }
    }
}

@Suite struct SyncRoute {
    /// A WebSocket whose messages a test reads.
    private struct Socket {
        let connection: WebSocketConnection
        let task: Task<Void, Never>
        let wakes: AsyncStream<Void>

        init(_ conversation: @escaping @Sendable (WebSocketConnection) async -> Void) {
            let (wakes, wake) = AsyncStream<Void>.makeStream()
            let settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
            let connection = WebSocketConnection(
                id: 1, remoteAddress: settings.address, settings: settings, wake: { _ in wake.yield() })
            self.connection = connection
            self.wakes = wakes
            task = Task { await conversation(connection) }
        }

        /// - Returns: nil when the server closes.
        func next() async throws -> JSON? {
            while true {
                switch connection.nextOutput() {
                case .send(.text(let text), _):
                    return try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
                case .close: return nil
                case .send(.binary, _): Issue.record("only text is expected")
                case .nothing: for await _ in wakes { break }
                }
            }
        }
    }

    private func follow(_ bench: StageBench, _ target: String) throws -> Socket {
        guard case .accept(let conversation) = bench.handler.upgrade(bench.request(.get, target)) else {
            throw CocoaError(.coderInvalidValue)
        }
        return Socket(conversation)
    }

    @Test func `tells a snapshot, changes, and what was missed`() async throws {
        try await StageBench.run { bench in
            let ann = try bench.token("ann", .host, stream: "s1")
            let bob = try bench.token("bob", .viewer, stream: "s1")
            // Nobody sends, and a slow machine takes its time.
            await bench.do(.post, "/v1/streams", token: ann, body: #"{"hostGraceSeconds":3600}"#)
            let socket = try follow(bench, "/v1/streams/s1/sync?access_token=\(bob)")
            let snapshot = try await socket.next()
            #expect(snapshot?["type"] == .string("snapshot"))
            #expect(try await socket.next()?["you"]?["role"] == .string("viewer"))
            let live = await bench.do(.post, "/v1/streams/s1/live", token: ann)
            var change = try await socket.next()
            // The viewer's own coming may be counted first.
            while change?["stream"]?["state"] == nil { change = try await socket.next() }
            #expect(change?["stream"]?["state"] == .string("live"))
            #expect(change?["version"] == live["version"])
            socket.connection.didClose(.lost)
            await socket.task.value
            guard case .number(let version) = snapshot?["version"] else { return }
            let again = try follow(bench, "/v1/streams/s1/sync?since=\(Int(version))&access_token=\(bob)")
            #expect(try await again.next()?["type"] == .string("change"))
            await bench.do(.delete, "/v1/streams/s1/participants/bob?ban=true", token: ann)
            while try await again.next() != nil {}
            again.connection.didClose(.lost)
            #expect(again.connection.closeReason?.code == 4_403)
            await again.task.value
            let banned = try follow(bench, "/v1/streams/s1/sync?access_token=\(bob)")
            #expect(try await banned.next() == nil)
        }
    }

    private func say(_ socket: Socket, token: String) {
        _ = socket.connection.deliver(.text("{\"type\":\"token\",\"token\":\"\(token)\"}"))
    }

    @Test(arguments: ["/v1/streams/s1/sync?authenticate=message", "/v1/feed/sync?authenticate=message"])
    func `takes the token as the first message, and tells nothing before`(_ target: String) async throws {
        try await StageBench.run { bench in
            await bench.do(.post, "/v1/streams", token: try bench.token("ann", .host, stream: "s1"))
            let socket = try follow(bench, target)
            say(socket, token: try bench.token("bob", .viewer, stream: "s1"))
            #expect(try await socket.next()?["type"] == .string("snapshot"))
            if target.contains("s1") {
                #expect(try await socket.next()?["you"]?["id"] == .string("bob"))
            }
            socket.connection.didClose(.lost)
            await socket.task.value
        }
    }

    @Test func `closes when the first message is no token, or none that is good`() async throws {
        try await StageBench.run { bench in
            await bench.do(.post, "/v1/streams", token: try bench.token("ann", .host, stream: "s1"))
            let expired = try bench.token("bob", .viewer, stream: "s1", expiresIn: -60)
            let foreign = try bench.token("bob", .viewer, stream: "other")
            let cases: [(String?, String)] = [
                ("x", "token-invalid"), (expired, "token-expired"), (foreign, "other-stream"),
                (nil, "token-missing"),
            ]
            for (token, reason) in cases {
                let socket = try follow(bench, "/v1/streams/s1/sync?authenticate=message")
                if let token {
                    say(socket, token: token)
                } else {
                    _ = socket.connection.deliver(.text("{\"type\":\"heartbeat\"}"))
                }
                #expect(try await socket.next() == nil)
                socket.connection.didClose(.lost)
                await socket.task.value
                #expect(socket.connection.closeReason == WebSocketClose(code: 4_401, reason: reason))
            }
        }
    }

    @Test func `waits for a token only for a while`() async throws {
        let settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        let (wakes, wake) = AsyncStream<Void>.makeStream()
        let connection = WebSocketConnection(
            id: 1, remoteAddress: settings.address, settings: settings, wake: { _ in wake.yield() })
        let waiting = Task { await TokenMessage.first(on: connection, patience: .milliseconds(1))?.token }
        for await _ in wakes { break }
        guard case .close(let reason) = connection.nextOutput() else {
            Issue.record("it stays open")
            return
        }
        #expect(reason == .noToken)
        connection.didClose(.lost)
        #expect(await waiting.value == nil)
    }

    @Test func `sends away whoever follows what nobody made`() async throws {
        try await StageBench.run { bench in
            let socket = try follow(
                bench, "/v1/streams/s1/sync?access_token=\(try bench.token("ann", .host))")
            #expect(try await socket.next() == nil)
            socket.connection.didClose(.lost)
            #expect(socket.connection.closeReason?.code == 4_404)
        }
        try await StageBench.run(createsStreams: true) { bench in
            let socket = try follow(
                bench, "/v1/streams/s1/sync?access_token=\(try bench.token("ann", .host))")
            #expect(try await socket.next()?["stream"]?["state"] == .string("waiting"))
            socket.connection.didClose(.lost)
            await socket.task.value
        }
    }
}
