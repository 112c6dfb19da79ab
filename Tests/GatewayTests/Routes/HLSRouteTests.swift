import Base
import Foundation
import HTTP
import Stage
import Synchronization
import Testing

@testable import Gateway
@testable import Node

@Suite struct `HLS over HTTP` {
    private func get(
        _ bench: Bench, _ path: String, _ query: [String: String] = [:], _ headers: HTTPHeaders = [:]
    ) async -> HTTPResponse {
        await bench.handler.respond(
            to: HTTPRequest(
                method: .get, path: path,
                query: query.map { HTTPRequest.QueryItem(name: $0.key, value: $0.value) }, headers: headers))
    }

    /// What a cache of many viewers may do with a playlist that holds for so many seconds.
    private static func shared(_ seconds: Int) -> String { "s-maxage=\(seconds), stale-while-revalidate=1" }
    private static let short = "public, max-age=0, \(shared(1))"

    @Test func `tells caches how long they may keep what`() async throws {
        let bench = try Bench { $0.viewers = .everyone }
        let master = await get(bench, "/hls/s1/index.m3u8")
        #expect(master.status == 200)
        #expect(master.text == "#EXTM3U\nmedia.m3u8\n")
        let all = await get(bench, "/hls/s1/index.m3u8", ["renditions": "all"])
        #expect(all.text == "#EXTM3U\nmedia.m3u8\nall\n")
        #expect(await get(bench, "/hls/s1/index.m3u8", ["renditions": "some"]).status == 400)
        #expect(master.headers["content-type"] == "application/vnd.apple.mpegurl")
        #expect(master.headers["cache-control"] == Self.short)
        #expect(master.headers["access-control-allow-origin"] == "*")
        #expect(await get(bench, "/hls/s1/media.m3u8").headers["cache-control"] == Self.short)
        for rendition in ["source", "original", "low", "sound"] {
            let playlist = await get(bench, "/hls/s1/media.m3u8", ["rendition": rendition])
            #expect(playlist.text == "#EXTM3U\n#\(rendition) media.m3u8\n")
        }
        let blocking = await get(bench, "/hls/s1/media.m3u8", ["_HLS_msn": "7", "_HLS_part": "1"])
        #expect(blocking.headers["cache-control"] == "public, max-age=5, \(Self.shared(6))")
        let segment = await get(bench, "/hls/s1/a-s1.m4s")
        #expect(segment.body == [1, 2, 3])
        #expect(segment.headers["content-type"] == "video/iso.segment")
        #expect(segment.headers["cache-control"] == "public, max-age=60, immutable")
        #expect(await get(bench, "/hls/s1/a-i0.mp4").headers["content-type"] == "video/mp4")
        let file = FileManager.default.temporaryDirectory.appending(path: "segment-\(UUID().uuidString).m4s")
        try Data([4, 5]).write(to: file)
        bench.service.state.withLock { $0.recordingPath = file.path }
        let stored = await get(bench, "/hls/s1/a-s0.m4s")
        #expect(stored.status == 200 && stored.file != nil)
        #expect(stored.headers["cache-control"] == "public, max-age=60, immutable")
        // It may go at any time.
        try FileManager.default.removeItem(at: file)
        #expect(await get(bench, "/hls/s1/a-s0.m4s").status == 404)
        let missing = await get(bench, "/hls/s1/a-s2.m4s")
        #expect(missing.status == 404)
        #expect(missing.headers["cache-control"] == "max-age=1")
    }

    @Test func `refuses what makes no sense, at once`() async throws {
        let bench = try Bench { $0.viewers = .everyone }
        #expect(await get(bench, "/hls/s1/media.m3u8", ["rendition": "best"]).status == 400)
        for query in [["_HLS_msn": "x"], ["_HLS_part": "1"], ["_HLS_msn": "1", "_HLS_part": "-1"]] {
            #expect(await get(bench, "/hls/s1/media.m3u8", query).status == 400, "\(query)")
        }
        let far = await get(bench, "/hls/s1/media.m3u8", ["_HLS_msn": "100"])
        #expect(far.status == 400)
        #expect(far.text.contains("too-far-ahead"))
        #expect(await get(bench, "/hls/off/index.m3u8").status == 404)
        #expect(await get(bench, "/hls/a.b/index.m3u8").status == 404)
        let forbidden = await get(bench, "/hls/forbidden/index.m3u8")
        #expect(forbidden.status == 404)
        #expect(forbidden.text.contains("hls-off"))
        // It may be there in a moment.
        #expect(forbidden.headers["cache-control"] == "max-age=1")
    }

    /// Players take a 404 for the end of the stream.
    @Test func `asks for a short pause while the server is being restarted`() async throws {
        let bench = try Bench { $0.viewers = .everyone }
        for name in ["index.m3u8", "media.m3u8", "dvr.m3u8", "a-s2.m4s"] {
            let response = await get(bench, "/hls/late/\(name)")
            #expect(response.status == 503, "\(name)")
            #expect(response.headers["retry-after"] == "1")
            #expect(response.headers["cache-control"] == "no-store")
        }
    }

    @Test func `goes back where there is something to go back to`() async throws {
        let bench = try Bench { $0.viewers = .everyone }
        // It is the source's alone.
        let playlist = await get(bench, "/hls/s1/dvr.m3u8", ["rendition": "low"])
        #expect(playlist.text == "#EXTM3U\n#source media.m3u8 and before\n")
        #expect(playlist.headers["cache-control"] == Self.short)
        #expect(await get(bench, "/hls/s1/dvr.m3u8", ["_HLS_msn": "x"]).status == 400)
        let short = await get(bench, "/hls/short/dvr.m3u8")
        #expect(short.status == 404)
        #expect(short.text.contains("no-dvr"))
    }

    @Test func `takes a viewer's token in the path`() async throws {
        let bench = try Bench { $0.viewers = .token }
        #expect(await get(bench, "/hls/s1/index.m3u8").status == 401)
        #expect(await get(bench, "/hls/s1/a-s1.m4s").status == 401)
        #expect(await get(bench, "/hls/s1/t/x.y.z/index.m3u8").status == 401)
        let token = try bench.token(.viewer)
        for name in ["index.m3u8", "media.m3u8", "dvr.m3u8", "a-s1.m4s"] {
            #expect(await get(bench, "/hls/s1/t/\(token)/\(name)").status == 200, "\(name)")
            #expect(await get(bench, "/hls/s2/t/\(token)/\(name)").status == 403, "\(name)")
        }
    }

    /// A cache in front would give it to whoever asks without a token.
    @Test func `leaves nothing in shared caches that a token in the header opened`() async throws {
        let bench = try Bench { $0.viewers = .token }
        let token = try bench.token(.viewer)
        for name in ["index.m3u8", "media.m3u8", "dvr.m3u8", "a-s1.m4s", "a-i0.mp4"] {
            let byHeader = await bench.ask(.get, "/hls/s1/\(name)", token: token)
            #expect(byHeader.headers["cache-control"]?.hasPrefix("private") == true, "\(name)")
            let byPath = await bench.ask(.get, "/hls/s1/t/\(token)/\(name)")
            #expect(byPath.headers["cache-control"]?.hasPrefix("public") == true, "\(name)")
        }
    }

    /// The names of the next parts follow from those before.
    @Test(arguments: [GatewaySettings.Viewers.everyone, .token])
    func `gives no part to somebody who is banned`(_ viewers: GatewaySettings.Viewers) async throws {
        let bench = try Bench { $0.viewers = viewers }
        let token = try bench.token(.viewer)
        let paths = ["/hls/s1/t/\(token)/a-s1.m4s", "/hls/s1/t/\(token)/a-i0.mp4"]
        for path in paths { #expect(await get(bench, path).status == 200) }
        var stream = StreamSnapshot(waitingFor: try #require(StreamID("s1")))
        let ann = try #require(ParticipantID("ann"))
        stream.banned[ann] = WallTime(milliseconds: 1)
        let closed = stream
        bench.service.state.withLock { $0.snapshots = [closed] }
        for path in paths {
            #expect(bench.handler.answerAtOnce(bench.request(.get, path)) == nil)
            let response = await get(bench, path)
            #expect(response.status == 403)
            #expect(response.text.contains("banned"))
        }
        #expect(await bench.ask(.get, "/hls/s1/a-s1.m4s", token: token).status == 403)
        // An admin of that name is not kept out.
        let admin = try bench.token(.admin)
        #expect(bench.handler.answerAtOnce(bench.request(.get, "/hls/s1/t/\(admin)/a-s1.m4s")) != nil)
    }

    @Test(arguments: [GatewaySettings.Viewers.everyone, .token])
    func `are answered at once with what lies in memory, as others are`(_ viewers: GatewaySettings.Viewers)
        async throws
    {
        let bench = try Bench { $0.viewers = viewers }
        let token = try bench.token(.viewer)
        var count = 0
        for method in [HTTPMethod.get, .head] {
            for (path, shown) in [
                ("/hls/s1/a-s1.m4s", token), ("/hls/s1/t/\(token)/a-s1.m4s", nil),
                ("/hls/s1/a-s1.m4s", viewers == .everyone ? nil : token),
            ] {
                let request = bench.request(method, path, token: shown)
                let response = try #require(bench.handler.answerAtOnce(request))
                let other = await bench.handler.respond(to: request)
                #expect(response.status == 200 && response.body == other.body)
                #expect(response.headers == other.headers)
                count += 1
            }
        }
        #expect(count == 6)
        // All that is refused, or has to be waited for, is for whoever can say why.
        for (path, shown) in [
            ("/hls/s1/a-s2.m4s", token), ("/hls/s3/a-s1.m4s", token), ("/hls/s1/index.m3u8", token),
            ("/hls/s1/t/x.y.z/a-s1.m4s", nil), ("/hls/a.b/a-s1.m4s", token), ("/v1/streams", token),
            ("/hls/s1/recordings/a-s1.m4s", token),
        ] {
            #expect(bench.handler.answerAtOnce(bench.request(.get, path, token: shown)) == nil, "\(path)")
        }
        #expect(bench.handler.answerAtOnce(bench.request(.post, "/hls/s1/a-s1.m4s", token: token)) == nil)
        guard viewers == .token else { return }
        #expect(bench.handler.answerAtOnce(bench.request(.get, "/hls/s1/a-s1.m4s")) == nil)
        #expect(bench.handler.answerAtOnce(bench.request(.get, "/hls/s2/a-s1.m4s", token: token)) == nil)
    }
}
