import Base
import Foundation
import HTTP
import Stage
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Gateway
@testable import Node
@testable import Recordings

/// A stream that has ended, and what was recorded of it, asked of the handler.
@Suite struct `A recording by HLS` {
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("off"))
    }

    private func entry(_ id: String, part: Int = 1, startedAt: Int64, tier: String? = nil) -> RecordingEntry {
        var entry = RecordingEntry(id: id, stream: show, part: part, startedAt: startedAt, tier: tier)
        (entry.state, entry.fileExtension, entry.endedAt) = (.ended, "mp4", startedAt + 1_200)
        return entry
    }

    private func snapshot(_ state: StreamState) -> StreamSnapshot {
        var snapshot = StreamSnapshot(waitingFor: show)
        snapshot.state = state
        return snapshot
    }

    /// - Parameter body: is given a bench whose recordings all have the file of a fixture.
    private func run(
        _ change: (inout GatewaySettings) -> Void = { _ in },
        _ body: (Bench, _ file: [UInt8]) async throws -> Void
    ) async throws {
        let bytes = try PacketCapture("Recordings/recordings.hex").packets[0]
        let file = FileManager.default.temporaryDirectory.appending(path: "hls-\(UUID().uuidString).mp4")
        try Data(bytes).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try Bench(change)
        let (ended, entries) = (
            snapshot(.ended),
            [
                entry("r1", startedAt: 1_000), entry("r2", startedAt: 20_000),
                entry("r2-2", part: 2, startedAt: 30_000),
            ]
        )
        bench.service.state.withLock {
            ($0.recordings, $0.recordingPath, $0.snapshots) = (entries, file.path, [ended])
        }
        try await body(bench, bytes)
    }

    @Test func `has a playlist of its own, and ranges of a file`() async throws {
        try await run { bench, bytes in
            let playlist = await bench.ask(.get, "/hls/off/recordings/r1.m3u8")
            #expect(playlist.status == 200, "\(playlist.text)")
            #expect(playlist.headers["content-type"] == "application/vnd.apple.mpegurl")
            #expect(
                playlist.headers["cache-control"]
                    == "public, max-age=59, s-maxage=60, stale-while-revalidate=1")
            #expect(playlist.text.contains("#EXT-X-PLAYLIST-TYPE:VOD\n"))
            #expect(playlist.text.contains("#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:01.000Z\n"))
            #expect(playlist.text.contains("\nr1.mp4\n") && !playlist.text.contains("r2"))
            let whole = await bench.ask(.get, "/hls/off/recordings/r1.mp4")
            let index = try #require(FragmentIndex(ByteSource(bytes)))
            #expect(whole.status == 200 && whole.headers["content-type"] == "video/mp4")
            #expect(whole.headers["cache-control"] == "public, max-age=3600")
            #expect(index.size < Int64(bytes.count))
            let path = "/hls/off/recordings/r1.mp4"
            let part = await bench.ask(.get, path, ["Range": "bytes=0-\(index.initialization.count - 1)"])
            #expect(part.status == 206)
            #expect(
                part.headers["content-range"] == "bytes 0-\(index.initialization.count - 1)/\(index.size)")
            // What stands behind the fragments is none of them.
            #expect(await bench.ask(.get, path, ["Range": "bytes=\(index.size)-"]).status == 416)
        }
    }

    @Test func `an ended stream's playlist is that of its recordings`() async throws {
        try await run { bench, _ in
            let latest = await bench.ask(.get, "/hls/off/index.m3u8")
            #expect(latest.status == 200, "\(latest.text)")
            let files = latest.text.split(separator: "\n").filter { $0.hasSuffix(".mp4") }
            #expect(Set(files) == ["recordings/r2.mp4", "recordings/r2-2.mp4"])
            #expect(latest.text.contains("#EXT-X-DISCONTINUITY\n"))
            for state in [StreamState.live, .backstage] {
                let other = snapshot(state)
                bench.service.state.withLock { $0.snapshots = [other] }
                #expect(await bench.ask(.get, "/hls/off/index.m3u8").status == 404)
            }
            // Of a stream that nothing is known of any more the recordings are there.
            bench.service.state.withLock { $0.snapshots = [] }
            #expect(await bench.ask(.get, "/hls/off/index.m3u8").status == 200)
            bench.service.state.withLock { $0.recordings = [] }
            let none = await bench.ask(.get, "/hls/off/index.m3u8")
            #expect(none.status == 404 && none.text.contains("not-live"))
        }
    }

    @Test func `is refused where there is none`() async throws {
        try await run { bench, _ in
            for name in ["r9.m3u8", "r1.webm", "r1", "r1.m3u8.mp4", ".m3u8"] {
                let response = await bench.ask(.get, "/hls/off/recordings/\(name)")
                #expect(response.status == 404 && response.text.contains("unknown-recording"), "\(name)")
            }
            var (growing, webM) = (entry("r3", startedAt: 40_000), entry("r4", startedAt: 50_000))
            (growing.state, webM.fileExtension) = (.recording, "webm")
            bench.service.state.withLock { [growing, webM] in $0.recordings = [growing, webM] }
            let underWay = await bench.ask(.get, "/hls/off/recordings/r3.m3u8")
            #expect(underWay.status == 409 && underWay.text.contains("recording-under-way"))
            // Neither is what the stream is known by.
            #expect(await bench.ask(.get, "/hls/off/index.m3u8").status == 404)
            bench.service.state.withLock { $0.recordingPath = nil }
            let other = await bench.ask(.get, "/hls/off/recordings/r4.m3u8")
            #expect(other.status == 404 && other.text.contains("not-fragmented"))
            var off = snapshot(.ended)
            off.details.hls = .off
            bench.service.state.withLock { [off] in $0.snapshots = [off] }
            #expect(await bench.ask(.get, "/hls/off/recordings/r4.m3u8").text.contains("hls-off"))
        }
    }

    @Test func `is for those who may have the file`() async throws {
        try await run({ $0.viewers = .token }) { bench, _ in
            let token = try bench.token(.viewer, stream: "off")
            let stranger = try bench.token(.viewer, stream: "s2")
            for file in ["index.m3u8", "recordings/r1.m3u8", "recordings/r1.mp4"] {
                #expect(await bench.ask(.get, "/hls/off/\(file)").status == 401, "\(file)")
                #expect(await bench.ask(.get, "/hls/off/t/\(stranger)/\(file)").status == 403, "\(file)")
                let byPath = await bench.ask(.get, "/hls/off/t/\(token)/\(file)")
                #expect(byPath.status == 200, "\(file)")
                #expect(byPath.headers["cache-control"]?.hasPrefix("public") == true, "\(file)")
                let byHeader = await bench.ask(.get, "/hls/off/\(file)", token: token)
                #expect(byHeader.status == 200, "\(file)")
                #expect(byHeader.headers["cache-control"]?.hasPrefix("private") == true, "\(file)")
            }
        }
    }

    @Test func `stays behind its gate`() async throws {
        try await run { bench, _ in
            var gated = snapshot(.ended)
            gated.details.gate = StageDetails.Gate(tier: "gold")
            let poor = try bench.token(.viewer, stream: "off")
            let rich = try bench.token(.viewer, stream: "off", tiers: ["gold"])
            let old = entry("r1", startedAt: 1_000, tier: "gold")
            // Once nothing is known of the stream, the recording itself says what it took.
            for snapshots in [[gated], []] {
                bench.service.state.withLock { [old] in ($0.snapshots, $0.recordings) = (snapshots, [old]) }
                for file in ["index.m3u8", "recordings/r1.m3u8", "recordings/r1.mp4"] {
                    for token in [nil, poor] {
                        let refused = await bench.ask(.get, "/hls/off/\(file)", token: token)
                        #expect(refused.status == 403 && refused.text.contains("gated"), "\(file)")
                    }
                    #expect(await bench.ask(.get, "/hls/off/t/\(poor)/\(file)").status == 403, "\(file)")
                    #expect(await bench.ask(.get, "/hls/off/t/\(rich)/\(file)").status == 200, "\(file)")
                }
            }
        }
    }

    @Test func `is named by what is told of the file`() async throws {
        try await run { bench, _ in
            let listed = try await bench.ask(.get, "/v1/streams/off/recordings").json(JSON.self)
            guard case .array(let recordings) = listed["recordings"] else {
                Issue.record("no list: \(listed)")
                return
            }
            #expect(recordings.first?["hls"] == .string("/hls/off/recordings/r1.m3u8"))
        }
    }
}
