import Base
import Foundation
import HTTP
import Stage
import Synchronization
import TestSupport
import Testing
import Transcoder

@testable import Gateway
@testable import Node
@testable import Recordings

/// Each way in which a gated stream could get out, asked by those who lack the tier and by those who have it.
@Suite struct `A gated stream over HTTP` {
    private static let gate = StageDetails.Gate(
        tier: "gold", freeSeconds: 10, unlock: "https://shop.example/gold")
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("s1"))
    }

    private func bench() throws -> Bench {
        let bench = try Bench()
        var snapshot = StreamSnapshot(waitingFor: show)
        snapshot.state = .live
        snapshot.createdAt = WallTime(milliseconds: 1)
        snapshot.details.gate = Self.gate
        bench.service.state.withLock { $0.snapshots = [snapshot] }
        return bench
    }

    private func expectGated(_ response: HTTPResponse, _ what: String) throws {
        #expect(response.status == 403, "\(what): \(response.text)")
        let problem = try response.json(JSON.self)
        #expect(problem["rule"] == .string("gated"), "\(what)")
        #expect(problem["tier"] == .string("gold"), "\(what)")
        #expect(problem["unlock"] == .string("https://shop.example/gold"), "\(what)")
    }

    @Test func `says by HLS what opens it, and leaves nothing of it in shared caches`() async throws {
        let bench = try bench()
        let (poor, rich) = (try bench.token(.viewer), try bench.token(.viewer, tiers: ["gold"]))
        for file in ["index.m3u8", "media.m3u8", "a-s1.m4s", "a-i0.mp4"] {
            try expectGated(await bench.ask(.get, "/hls/s1/\(file)"), file)
            try expectGated(await bench.ask(.get, "/hls/s1/\(file)", token: poor), file)
            try expectGated(await bench.ask(.get, "/hls/s1/t/\(poor)/\(file)"), file)
            let byHeader = await bench.ask(.get, "/hls/s1/\(file)", token: rich)
            #expect(byHeader.status == 200)
            #expect(byHeader.headers["cache-control"]?.hasPrefix("private") == true, "\(file)")
            let byPath = await bench.ask(.get, "/hls/s1/t/\(rich)/\(file)")
            #expect(byPath.status == 200)
            #expect(byPath.headers["cache-control"]?.hasPrefix("public") == true, "\(file)")
        }
    }

    @Test func `has a preview in which nothing can be made out`() async throws {
        let bench = try bench()
        var picture = PreviewPicture(width: 360, height: 203, blurHash: "L", webP: [1], jpeg: [2])
        (picture.blurredWebP, picture.blurredJPEG) = ([3], [4])
        let about = StreamPreview(
            width: 360, height: 203, capturedAt: WallTime(milliseconds: Int64(Bench.now) * 1_000),
            blurHash: "L", url: "/v1/streams/s1/preview.webp")
        bench.service.state.withLock { [show] in
            $0.previews[show] = StoredPreview(picture, about: about)
        }
        let (poor, rich) = (try bench.token(.viewer), try bench.token(.viewer, tiers: ["gold"]))
        for (format, sharp, blurred) in [("webp", [UInt8(1)], [UInt8(3)]), ("jpg", [2], [4])] {
            let path = "/v1/streams/s1/preview.\(format)"
            let stranger = await bench.ask(.get, path)
            #expect(stranger.body == blurred)
            #expect(stranger.headers["cache-control"] == "private, max-age=5")
            #expect(stranger.headers["vary"]?.contains("Authorization") == true)
            #expect(await bench.ask(.get, path, token: poor).body == blurred)
            let viewer = await bench.ask(.get, path, token: rich)
            #expect(viewer.body == sharp)
            // Who kept the one is not told that it is the other.
            #expect(viewer.headers["etag"] != stranger.headers["etag"])
        }
    }

    @Test func `keeps what was recorded of it to those who may see it`() async throws {
        let bench = try bench()
        let file = FileManager.default.temporaryDirectory.appending(path: "gate-\(UUID().uuidString).webm")
        try Data([7, 7, 7]).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var entry = RecordingEntry(id: "r1", stream: show, part: 1, startedAt: 1, tier: "gold")
        (entry.state, entry.fileExtension) = (.ended, "webm")
        bench.service.state.withLock { [entry] in
            ($0.recordings, $0.recordingPath) = ([entry], file.path)
        }
        let (poor, rich) = (try bench.token(.viewer), try bench.token(.admin, stream: "*"))
        let path = "/v1/streams/s1/recordings/r1.webm"
        try expectGated(await bench.ask(.get, path), "nobody")
        #expect(await bench.ask(.get, "/v1/streams/s1/recordings").status == 200)
        // What is known of the stream is forgotten; the recording stays.
        bench.service.state.withLock { $0.snapshots = [] }
        for token in [nil, poor] {
            let refused = await bench.ask(.get, path, token: token)
            #expect(refused.status == 403 && refused.text.contains("gated"))
        }
        #expect(await bench.ask(.get, path, token: try bench.token(.viewer, tiers: ["gold"])).status == 200)
        #expect(await bench.ask(.get, path, token: rich).status == 200)
    }

    @Test func `is refused to players with what opens it`() async throws {
        let bench = try bench()
        bench.service.state.withLock { $0.refusal = .gated(Self.gate) }
        let response = await bench.ask(
            .post, "/whep/s1", ["Content-Type": "application/sdp"], body: "v=0")
        try expectGated(response, "WHEP")
    }

    @Test func `takes a token for a session, of somebody who may watch`() async throws {
        let bench = try bench()
        let session = try await bench.open("whep")
        #expect(await bench.ask(.get, "\(session)/gate").text.contains("open"))
        #expect(await bench.ask(.post, "\(session)/gate").status == 401)
        let other = try bench.token(.viewer, stream: "s2", tiers: ["gold"])
        #expect(await bench.ask(.post, "\(session)/gate", token: other).status == 403)
        let expired = try bench.token(.viewer, tiers: ["gold"], expires: Bench.now - 600)
        #expect(await bench.ask(.post, "\(session)/gate", token: expired).status == 401)
    }

    /// On a node, from a token to what its bearer is given.
    @Test func `is set by its host, told to all, and opened by a claim of the token`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            // Nobody sends, and a slow machine takes its time.
            let stream = #"{"id":"s1","hostGraceSeconds":3600}"#
            await bench.do(.post, "/v1/streams", token: host, body: stream)
            let body = #"{"gate":{"tier":"gold","unlock":"https://shop.example"}}"#
            let edited = await bench.do(.patch, "/v1/streams/s1", token: host, body: body)
            #expect(edited["gate"]?["tier"] == .string("gold"))
            #expect(edited["gate"]?["freeSeconds"] == .integer(0))
            await bench.do(.post, "/v1/streams/s1/live", token: host)
            let offer = try Fixtures.text("Offers/chrome-play.sdp")
            func play(_ token: String?) async -> HTTPResponse {
                await bench.ask(.post, "/whep/s1?wait=9", token: token, body: offer, type: "application/sdp")
            }
            let viewer = try bench.token("vic", .viewer, stream: "s1")
            #expect(await play(viewer).status == 403)
            // A renewed token opens what it opened before, and one for a guest nothing.
            let gold = try bench.token("vip", .viewer, stream: "s1", tiers: ["gold"])
            let renewed = await bench.do(.post, "/v1/streams/s1/tokens", token: gold)
            for token in [gold, renewed["token"]?.string ?? "", host] {
                #expect(await play(token).status == 201)
            }
            // Somebody else's hosts and speakers are viewers here.
            #expect(await play(try bench.token("fay", .host)).status == 403)
            #expect(await play(try bench.token("sue", .speaker)).status == 403)
            for wrong in [
                #"{"gate":{}}"#, #"{"gate":{"tier":"a b"}}"#, #"{"gate":{"tier":"a","freeSeconds":9999}}"#,
                #"{"gate":{"tier":"a","unlock":"javascript:x"}}"#, #"{"gate":7}"#,
            ] {
                let refused = await bench.ask(.patch, "/v1/streams/s1", token: host, body: wrong)
                #expect(refused.status == 422, "\(wrong)")
            }
            let open = await bench.do(.patch, "/v1/streams/s1", token: host, body: #"{"gate":null}"#)
            #expect(open["gate"] == .null)
            #expect(await play(viewer).status == 201)
        }
    }
}
