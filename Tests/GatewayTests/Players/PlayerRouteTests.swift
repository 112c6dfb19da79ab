import Base
import HTTP
import HTTPTestSupport
import Node
import Synchronization
import TestSupport
import Testing

@testable import Gateway

private let json: HTTPHeaders = ["Content-Type": "application/json"]

/// What the draft that players go by has beside the session.
@Suite(.timeLimit(.minutes(10))) struct `Extensions of WHEP` {
    private func bench() throws -> Bench {
        try Bench {
            $0.viewers = .token
            $0.playerEvents = GatewaySettings.PlayerEvents(
                interval: .milliseconds(20), silence: .seconds(3_600))
        }
    }

    @Test func `are told with a player's session, and no publisher's`() async throws {
        let bench = try bench()
        func links(_ endpoint: String) async throws -> [String] {
            let response = await bench.ask(
                .post, "/\(endpoint)/s1", token: try bench.token(.host), ["Content-Type": "application/sdp"],
                body: "v=0")
            #expect(response.headers["access-control-expose-headers"]?.contains("Link") == true)
            return response.headers.fields.filter { $0.name == "link" }.map(\.value)
        }
        #expect(try await links("whip").isEmpty)
        let path = try await links("whep")
        let id = try #require(
            bench.service.state.withLock { $0.sessions.first { $0.value.purpose == .play }?.key })
        #expect(
            path == [
                "</whep/s1/\(id)/events>; rel=\"urn:ietf:params:whep:ext:core:server-sent-events\"; "
                    + "events=\"active,inactive,layers,viewercount\"",
                "</whep/s1/\(id)/layer>; rel=\"urn:ietf:params:whep:ext:core:layer\"",
            ])
    }

    @Test(arguments: [
        (#"["active","inactive","layers","viewercount"]"#, "active,inactive,layers,viewercount"),
        (#"["viewercount","vad","active","active"]"#, "active,viewercount"),
        ("", "active,inactive,layers,viewercount"),
    ])
    func `have an address for the kinds of events that somebody wants`(body: String, kinds: String)
        async throws
    {
        let bench = try bench()
        let path = try await bench.open("whep")
        let response = await bench.ask(.post, path + "/events", json, body: body)
        #expect(response.status == 201)
        #expect(response.headers["location"] == "\(path)/events?kinds=\(kinds)")
    }

    @Test(arguments: [
        ("events", "{", 400, "JSON array"), ("events", "{}", 400, "JSON array"),
        ("events", "[1]", 400, "JSON array"),
        ("events", #"["vad"]"#, 422, "active,inactive"), ("events", "[]", 422, "active,inactive"),
        ("layer", "[", 400, "JSON object"), ("layer", #"["h"]"#, 400, "JSON object"),
        ("layer", #"{"encodingId":7}"#, 422, "encodingId"),
        ("layer", #"{"mediaId":1}"#, 422, "mediaId"),
        ("layer", #"{"encoding":"h"}"#, 400, "Did you mean encodingId?"),
        ("layer", #"{"encodingId":"h","spatialLayerId":1}"#, 422, "spatialLayerId must be 0"),
        ("layer", #"{"maxTemporalLayerId":-1}"#, 422, "maxTemporalLayerId"),
        ("layer", #"{"maxTemporalLayerId":"x"}"#, 422, "maxTemporalLayerId"),
    ])
    func `refuse what makes no sense`(part: String, body: String, status: Int, words: String) async throws {
        let bench = try bench()
        let response = await bench.ask(
            .post, try await bench.open("whep") + "/\(part)", json, body: body)
        #expect(response.status == status, "\(response.text)")
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.text.contains(words), "\(response.text)")
        #expect(bench.service.state.withLock { $0.choices.isEmpty })
    }

    @Test func `refuse other types, other sessions and other kinds`() async throws {
        let bench = try bench()
        let path = try await bench.open("whep")
        #expect(await bench.ask(.post, path + "/events", body: "[]").status == 415)
        #expect(await bench.ask(.post, path + "/layer", body: "{}").status == 415)
        #expect(await bench.ask(.get, path + "/events?kinds=vad").status == 400)
        let publisher = try await bench.open("whip").replacing("/whip/", with: "/whep/")
        for path in [publisher, "/whep/s2/\(path.split(separator: "/")[2])", "/whep/s1/7"] {
            #expect(await bench.ask(.get, path + "/events").status == 404)
            #expect(await bench.ask(.post, path + "/events", json, body: "").status == 404)
            #expect(await bench.ask(.post, path + "/layer", json, body: "{}").status == 404)
            #expect(await bench.ask(.delete, path + "/layer").status == 404)
        }
    }

    /// A browser's `EventSource` has no token to send.
    @Test func `tell what changes, without a token, until the session ends`() async throws {
        let bench = try bench()
        let handler = ClosureHandler(answer: { await bench.handler.respond(to: $0) })
        try await withServer(handler) { server in
            let path = try await bench.open("whep")
            let client = try RawClient(server.address)
            let request = "GET \(path)/events HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n"
            try await client.send(request)
            let head = try await client.response()
            #expect(head.status == 200)
            #expect(head.headers["content-type"] == "text/event-stream")
            #expect(head.headers["cache-control"] == "no-store")
            #expect(head.headers["x-accel-buffering"] == "no")
            #expect(head.headers["access-control-allow-origin"] == "*")
            func read(to end: String) async throws -> String {
                var text = ""
                while !text.hasSuffix(end + "\n\n\r\n") {
                    let bytes = try await client.receive()
                    try #require(!bytes.isEmpty, "\(text)")
                    text += String(decoding: bytes, as: UTF8.self)
                }
                return text
            }
            let first = try await read(to: #"{"viewercount":1}"#)
            #expect(first.contains("event: active\ndata: {}\n\nevent: layers\ndata: {}\n\n"))
            bench.service.state.withLock { $0.view.isActive = false }
            let second = try await read(to: "event: inactive\ndata: {}")
            #expect(!second.contains("layers"))
            bench.service.state.withLock { $0.view.viewers = 2 }
            let third = try await read(to: #"{"viewercount":2}"#)
            #expect(!third.contains("active"))
            #expect(bench.handler.eventStreams.count == 1)

            let ended = await bench.ask(.delete, path, token: try bench.token(.viewer))
            #expect(ended.status == 200)
            #expect(try await client.receiveToEnd() == Array("0\r\n\r\n".utf8))
            let late = try RawClient(server.address)
            try await late.send(request)
            #expect(try await late.response().status == 404)
        }
    }

    @Test func `tell a proxy that they are in use when there is nothing to tell`() async throws {
        let bench = try Bench {
            $0.playerEvents = GatewaySettings.PlayerEvents(interval: .milliseconds(20), silence: .zero)
        }
        let handler = ClosureHandler(answer: { await bench.handler.respond(to: $0) })
        try await withServer(handler) { server in
            let client = try RawClient(server.address)
            try await client.send(
                "GET \(try await bench.open("whep"))/events?kinds=inactive HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await client.response()
            for _ in 0..<3 {
                #expect(try await client.receive(exactly: 8) == Array("3\r\n:\n\n\r\n".utf8))
            }
        }
    }

    @Test func `have no body for HEAD, and take no place`() async throws {
        let bench = try bench()
        let response = await bench.ask(.head, try await bench.open("whep") + "/events")
        #expect(response.status == 200)
        #expect(response.stream == nil)
        #expect(bench.handler.eventStreams.count == 0)
    }

    @Test func `choose an encoding, and have the server choose again`() async throws {
        let bench = try bench()
        let path = try await bench.open("whep") + "/layer"
        for body in [
            #"{"mediaId":"1","encodingId":"h"}"#,
            // As an event has it.
            #"{"encodingId":"q","simulcastIdx":0,"bitrate":1000,"spatialLayerId":0,"temporalLayerId":0,"#
                + #""maxSpatialLayerId":0,"maxTemporalLayerId":0,"width":320,"height":180}"#,
            #"{"mediaId":"1"}"#, "{}", "",
        ] {
            #expect(await bench.ask(.post, path, json, body: body).status == 200, "\(body)")
        }
        #expect(await bench.ask(.delete, path).status == 200)
        #expect(
            bench.service.state.withLock { $0.choices } == [
                EncodingChoice(mid: "1", encoding: "h"), EncodingChoice(encoding: "q"),
                EncodingChoice(mid: "1"), EncodingChoice(), EncodingChoice(), EncodingChoice(),
            ])
        for (refusal, status, words) in [
            (.unknownMedia(known: ["1"]), 422, "with video: 1."),
            (.unknownEncoding(known: ["h", "q"]), 422, "that is sent now: h, q ("),
            (.unknownSize, 409, "key frame"),
            (.unknownSession, 404, "session"),
        ] as [(EncodingRefusal, Int, String)] {
            bench.service.state.withLock { $0.choiceRefusal = refusal }
            let response = await bench.ask(.post, path, json, body: #"{"encodingId":"x"}"#)
            #expect(response.status == status)
            #expect(response.text.contains(words), "\(response.text)")
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Extensions of WHEP on a node` {
    @Test func `know of nothing while nobody publishes`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host, body: #"{"id":"s1"}"#)
            await bench.do(.post, "/v1/streams/s1/live", token: host)
            let made = await bench.ask(
                .post, "/whep/s1?wait=3600", token: host,
                body: try Fixtures.text("Offers/chrome-play.sdp"), type: "application/sdp")
            let path = try #require(made.headers["location"])
            let id = try #require(SessionID(String(path.split(separator: "/")[2])))
            let view = try #require(await bench.node.playerView(of: id, withMedia: true))
            #expect(!view.isActive)
            #expect(view.media.map(\.encodings) == [[]])
            let mid = try #require(view.media.first?.mid)
            for (body, status) in [
                (#"{"encodingId":"h"}"#, 422), (#"{"mediaId":"x"}"#, 422), (#"{"mediaId":"\#(mid)"}"#, 200),
                ("{}", 200),
            ] {
                #expect(await bench.ask(.post, path + "/layer", body: body).status == status, "\(body)")
            }
            // What was chosen otherwise before is the server's again.
            _ = await bench.ask(
                .patch, path, token: host, body: #"{"maxHeight":90,"pin":"low","audioOnly":true}"#,
                type: "application/merge-patch+json")
            #expect(await bench.ask(.delete, path + "/layer").status == 200)
            let quality = try #require(await bench.node.quality(of: id))
            #expect(
                quality["preferences"]
                    == .object(["maxHeight": .null, "pin": .null, "audioOnly": .bool(true)]))
        }
    }
}
