import Base
import Foundation
import HTTP
import Node
import TestSupport
import Testing

@testable import Gateway

/// Follows the feed, and says whenever it is told something.
private final class FeedNews: SyncFollower {
    let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func send(_: String) -> SyncDelivery {
        continuation.yield()
        return .queued
    }

    var isDrained: Bool { true }
    func close(_: SyncClose) { continuation.finish() }
}

/// The feed over HTTP, on a real node without media.
@Suite(.timeLimit(.minutes(10))) struct FeedRoutes {
    private func goLive(_ bench: StageBench, _ names: [String]) async throws {
        for name in names {
            let host = try bench.token("ann", .host, stream: name)
            // Nobody sends, and a slow machine takes its time.
            let body = #"{"id":"\#(name)","title":"Title of \#(name)","hostGraceSeconds":3600}"#
            await bench.do(.post, "/v1/streams", token: host, body: body)
            await bench.do(.post, "/v1/streams/\(name)/live", token: host)
        }
    }

    /// The page, once the feed, which hears of streams a moment later, has so many.
    private func list(
        _ bench: StageBench, _ target: String = "/v1/feed", token: String, until count: Int
    ) async throws -> JSON {
        let news = FeedNews()
        let everything = FeedReader(scope: .all, sender: nil, standing: .all)
        // Begins with a snapshot, so that nothing is missed.
        let following = await bench.node.followFeed(everything, limit: 100, until: nil, news)
        for await _ in news.stream {
            let page = try await bench.ask(.get, target, token: token).json(JSON.self)
            guard page["items"]?.array?.count == count else { continue }
            await following.stop()
            return page
        }
        throw CancellationError()
    }

    @Test func `list live streams in order, page by page, each once`() async throws {
        try await StageBench.run { bench in
            let viewer = try bench.token("vic", .viewer)
            try await goLive(bench, ["s1", "s2", "s3"])
            let all = try await list(bench, token: viewer, until: 3)
            let items = try #require(all["items"]?.array)
            #expect(items.map { $0["position"] } == [.integer(0), .integer(1), .integer(2)])
            #expect(items[0]["title"] == .string("Title of \(items[0]["id"]?.string ?? "")"))
            #expect(items[0]["state"] == .string("live"))
            #expect(items[0]["hostName"] == .string("Ann"))
            #expect(items[0]["preview"] == .null)
            var seen: [JSON?] = []
            var target = "/v1/feed?limit=1"
            for _ in 0..<3 {
                let page = try await list(bench, target, token: viewer, until: 1)
                seen += page["items"]?.array?.map { $0["id"] } ?? []
                target = "/v1/feed?limit=1&cursor=\(page["next"]?.string ?? "")"
                #expect(page["last"] == .bool(seen.count == 3))
            }
            #expect(seen == items.map { $0["id"] })
        }
    }

    @Test func `show each viewer what their token is for`() async throws {
        try await StageBench.run { bench in
            try await goLive(bench, ["s1", "s2"])
            let one = try await list(
                bench, token: try bench.token("vic", .viewer, stream: "s2"), until: 1)
            #expect(one["items"]?.array?.map { $0["id"] } == [.string("s2")])
            let host = try bench.token("ann", .host, stream: "s2")
            await bench.do(.post, "/v1/streams/s2/bans", token: host, body: #"{"participant":"bad"}"#)
            let rest = try await list(bench, token: try bench.token("bad", .viewer), until: 1)
            #expect(rest["items"]?.array?.map { $0["id"] } == [.string("s1")])
            await bench.do(.post, "/v1/streams/s1/end", token: try bench.token("ann", .host, stream: "s1"))
            let last = try await list(bench, token: try bench.token("vic", .viewer), until: 1)
            #expect(last["items"]?.array?.map { $0["id"] } == [.string("s2")])
        }
    }

    @Test func `answer 304 to who has the page`() async throws {
        try await StageBench.run { bench in
            let viewer = try bench.token("vic", .viewer)
            try await goLive(bench, ["s1"])
            _ = try await list(bench, token: viewer, until: 1)
            let tag = try #require(await bench.ask(.get, "/v1/feed", token: viewer).headers["etag"])
            for condition in [tag, "W/\(tag)", "*", "\"x\", \(tag)"] {
                let response = await bench.ask(
                    .get, "/v1/feed", token: viewer, ["If-None-Match": condition])
                #expect(response.status == 304)
                #expect(response.body.isEmpty)
            }
            let other = await bench.ask(.get, "/v1/feed", token: viewer, ["If-None-Match": "\"x\""])
            #expect(other.status == 200)
        }
    }

    @Test(arguments: [
        ("cursor=x", 400), ("cursor=0.1.2.3.4", 410), ("limit=0", 422), ("limit=101", 422), ("limit=x", 422),
    ])
    func `refuse what makes no sense`(query: String, status: Int) async throws {
        try await StageBench.run { bench in
            let viewer = try bench.token("vic", .viewer)
            let response = await bench.ask(.get, "/v1/feed?\(query)", token: viewer)
            #expect(response.status == status)
            #expect(response.headers["content-type"] == "application/problem+json")
        }
    }

    @Test func `make sessions that turn from stream to stream`() async throws {
        try await StageBench.run { bench in
            let viewer = try bench.token("vic", .viewer)
            try await goLive(bench, ["s1", "s2"])
            _ = try await list(bench, token: viewer, until: 2)
            let offer = try Fixtures.text("Offers/chrome-feed.sdp")
            let made = await bench.ask(
                .post, "/v1/feed/sessions?stream=s1&preload=on-swipe", token: viewer, body: offer,
                type: "application/sdp")
            #expect(made.status == 201, "\(made.text)")
            let path = try #require(made.headers["location"])
            #expect(path.hasPrefix("/v1/feed/sessions/"))
            #expect(made.headers["rostrum-stream"] == "s1")
            let stray = await bench.ask(
                .post, "/v1/feed/sessions?stream=gone", token: try bench.token("eve", .viewer), body: offer,
                type: "application/sdp")
            #expect(stray.headers["rostrum-stream"].map { ["s1", "s2"].contains($0) } == true)
            #expect(await bench.ask(.get, path, token: viewer).status == 204)

            func post(_ action: String, _ body: String) async -> (
                status: Int, streams: [String?], rule: JSON?
            ) {
                let response = await bench.ask(.post, "\(path)/\(action)", token: viewer, body: body)
                let json = (try? response.json(JSON.self)) ?? .null
                let lines = json["slots"]?.array ?? []
                return (response.status, lines.map { $0["stream"]?.string }, json["rule"])
            }
            // Audio and video of the first pair, then of the second.
            #expect(await post("peek", #"{"stream":"s2"}"#).streams == ["s1", "s1", nil, "s2"])
            #expect(await post("peek", #"{"stream":"s2"}"#).streams == ["s1", "s1", nil, "s2"])
            #expect(await post("release", "").streams == ["s1", "s1", nil, nil])
            #expect(await post("focus", #"{"stream":"s2","ahead":"s1"}"#).streams == [nil, nil, "s2", "s2"])
            func request(_ action: String, _ body: String) async -> JSON? {
                let response = await bench.ask(.post, "\(path)/\(action)", token: viewer, body: body)
                return ((try? response.json(JSON.self)) ?? .null)["request"]
            }
            // Who numbers requests hears which ones the slots are true after.
            #expect(await request("peek", #"{"stream":"s1"}"#) == nil)
            #expect(await request("peek", #"{"stream":"s1","request":4294967295}"#) == .integer(UInt32.max))
            #expect(await request("release", #"{"request":3}"#) == .integer(UInt32.max))
            let refused: [(String, String, Int, String)] = [
                ("focus", #"{"stream":"s1","request":-1}"#, 422, "invalid"),
                ("peek", #"{"stream":"s1","request":4294967296}"#, 422, "invalid"),
                ("release", #"{"request":"1"}"#, 422, "invalid"),
                ("focus", #"{"stream":"s1","request":0.5}"#, 422, "invalid"),
                ("peek", #"{"stream":"s9"}"#, 404, "not-live"), ("focus", #"{"stream":3}"#, 422, "invalid"),
                ("focus", "{", 400, ""), ("peek", #"{"stream":"s1","direction":"up"}"#, 422, "invalid"),
                ("peek", "{}", 422, "invalid"),
            ]
            for (action, body, status, rule) in refused {
                let answer = await post(action, body)
                #expect(answer.status == status, "\(action) \(body)")
                #expect(answer.rule?.string?.hasPrefix(rule) ?? rule.isEmpty, "\(action) \(body)")
            }
            #expect(await bench.ask(.delete, path, token: viewer).status == 200)
            #expect(await post("focus", #"{"stream":"s1"}"#).status == 404)
        }
    }

    @Test(arguments: [
        ("chrome-play", "", 422), ("chrome-feed", "?preload=never", 422),
        ("chrome-feed", "?stream=a%20b", 422),
        ("chrome-feed", "?stream=nothing", 201),
    ])
    func `take offers of two pairs of m-lines`(offer: String, query: String, status: Int) async throws {
        try await StageBench.run { bench in
            let response = await bench.ask(
                .post, "/v1/feed/sessions\(query)", token: try bench.token("vic", .viewer),
                body: try Fixtures.text("Offers/\(offer).sdp"), type: "application/sdp")
            #expect(response.status == status, "\(response.text)")
        }
    }

    @Test func `let nobody hold more than two streams`() async throws {
        try await StageBench.run { bench in
            let viewer = try bench.token("vic", .viewer)
            try await goLive(bench, ["s1", "s2", "s3"])
            _ = try await list(bench, token: viewer, until: 3)
            let offer = try Fixtures.text("Offers/chrome-feed.sdp")
            var paths: [String] = []
            for stream in ["s1", "s2", "s3"] {
                let made = await bench.ask(
                    .post, "/v1/feed/sessions?stream=\(stream)&preload=on-swipe", token: viewer, body: offer,
                    type: "application/sdp")
                paths.append(try #require(made.headers["location"]))
            }
            var statuses: [Int] = []
            for path in paths {
                let answer = await bench.ask(
                    .post, "\(path)/peek", token: viewer, body: #"{"stream":"s1"}"#)
                statuses.append(answer.status)
            }
            // The oldest has lost its place to the newest, the second one its room.
            #expect(statuses == [404, 409, 200])
        }
    }
}

extension JSON {
    var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
}
