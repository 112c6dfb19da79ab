import Base
import Foundation
import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `What a viewer by HLS has loaded` {
    private static let second: Int64 = 1_000_000_000
    private var buffer = PlaybackBuffer()

    private func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: 100 * Self.second + Int64(seconds * 1e9))
    }

    @Test mutating func `is shown in real time`() {
        buffer.append(2 * Self.second, at: at(0))
        buffer.advance(to: at(1.5))
        #expect(buffer.position == 3 * Self.second / 2 && buffer.isPlaying)
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls())
    }

    @Test mutating func `is shown from where it should begin`() {
        buffer.begin(at: Self.second)
        buffer.append(Self.second / 2, at: at(0))
        #expect(!buffer.isPlaying)
        buffer.append(Self.second, at: at(3))
        #expect(buffer.isPlaying && buffer.position == Self.second)
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls(), "what has not begun stands not still")
    }

    @Test mutating func `runs out when nothing comes, for as long as nothing comes`() {
        buffer.append(Self.second, at: at(0))
        // Looked at late, it still says when.
        buffer.advance(to: at(1.25))
        #expect(buffer.standsSince == at(1) && buffer.position == Self.second)
        buffer.advance(to: at(1.5))
        buffer.append(Self.second, at: at(2))
        #expect(buffer.standsSince == nil && buffer.isPlaying)
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls(count: 1, nanoseconds: Self.second))
        buffer.advance(to: at(2.5))
        #expect(buffer.position == 3 * Self.second / 2)
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls())
    }

    @Test mutating func `does not run out where more comes at its very end`() {
        buffer.append(Self.second, at: at(0))
        buffer.append(Self.second, at: at(1))
        buffer.advance(to: at(2))
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls() && buffer.position == 2 * Self.second)
    }

    @Test mutating func `tells of a stall once, however often it is looked at`() {
        buffer.append(Self.second, at: at(0))
        for tenth in 11...20 { buffer.advance(to: at(Double(tenth) / 10)) }
        let stalls = buffer.takeStalls()
        #expect(stalls.count == 1 && abs(stalls.nanoseconds - Self.second) < 1_000)
        buffer.advance(to: at(3))
        #expect(buffer.takeStalls() == PlaybackBuffer.Stalls(count: 0, nanoseconds: Self.second))
    }

    @Test mutating func `is over at the end, which is no stall`() {
        buffer.append(Self.second, at: at(0))
        buffer.finish(at: at(0.5))
        buffer.advance(to: at(5))
        #expect(buffer.isOver && buffer.takeStalls() == PlaybackBuffer.Stalls())
    }
}

@Suite struct `A player of HLS` {
    private var player = HLSPlayer(PlaylistSample.base + "index.m3u8", isDecoding: false)
    private var now = Moment(
        elapsed: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_232_412_000))

    private static let index = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nmedia.m3u8\n"
    /// Half a second later.
    private static let later = PlaylistSample.text.replacingOccurrences(
        of: "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"t-p9-1.m4s\"",
        with:
            "#EXT-X-PART:DURATION=0.500,URI=\"t-p9-1.m4s\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"t-p9-2.m4s\"")

    private mutating func pass(milliseconds: Int64) {
        now = Moment(
            elapsed: now.elapsed + .milliseconds(milliseconds),
            wall: WallTime(milliseconds: now.wall.milliseconds + milliseconds))
    }

    /// What it asks for now, without what all addresses begin with.
    private mutating func asked() -> [(path: String, request: HLSPlayer.Request)] {
        player.requests(at: now.elapsed).map {
            ($0.url.replacingOccurrences(of: PlaylistSample.base, with: ""), $0)
        }
    }

    @discardableResult
    private mutating func answer(
        _ request: HLSPlayer.Request, _ text: String = "", status: Int = 200, retryAfter: Double? = nil
    ) -> [HLSPlayer.Event] {
        let bytes = Array(text.utf8)
        return player.receive(
            FetchedAnswer(status: status, bytes: bytes, count: bytes.count, retryAfter: retryAfter),
            to: request.number, at: now
        ) { bytes, url throws(PlaylistFailure) in
            guard let base = URL(string: url) else { throw .malformed("address") }
            return try PlaylistDocument(parsing: bytes, at: base)
        }
    }

    /// Goes on until it waits for what comes next.
    /// - Returns: what it asked for, and the two requests that wait.
    private mutating func begin() throws -> (
        paths: [String], reload: HLSPlayer.Request, hint: HLSPlayer.Request
    ) {
        var paths: [String] = []
        var waiting: [HLSPlayer.Request] = []
        var events: [HLSPlayer.Event] = []
        for _ in 0..<20 {
            for (path, request) in asked() {
                paths.append(path)
                pass(milliseconds: 1)
                switch path {
                case "index.m3u8": answer(request, Self.index)
                case "media.m3u8": answer(request, PlaylistSample.text)
                case _ where path.contains("_HLS_msn") || path == "t-p9-1.m4s": waiting.append(request)
                default: events += answer(request, "media")
                }
            }
        }
        #expect(events.contains { if case .started = $0 { true } else { false } })
        let reload = try #require(waiting.first { $0.kind == .playlist })
        let hint = try #require(waiting.first { $0.kind == .media })
        try #require(waiting.count == 2)
        return (paths, reload, hint)
    }

    @Test mutating func `loads what is listed, and waits for what comes next`() throws {
        let (paths, reload, _) = try begin()
        #expect(reload.url.hasSuffix("media.m3u8?_HLS_msn=9&_HLS_part=1&_HLS_skip=YES"))
        #expect(
            paths.filter { !$0.contains("_HLS_") } == [
                "index.m3u8", "media.m3u8", "t-i0.mp4", "t-p8-0.m4s", "t-p8-1.m4s", "t-p8-2.m4s",
                "t-p8-3.m4s",
                "t-p9-0.m4s", "t-p9-1.m4s",
            ])
        #expect(player.buffer.end == 2_500_000_000 && player.buffer.isPlaying)
        #expect(asked().isEmpty, "one reload and one part at a time")
    }

    @Test(arguments: [false, true]) mutating func `goes on whichever comes first`(partFirst: Bool) throws {
        let (_, reload, hint) = try begin()
        pass(milliseconds: 400)
        var events: [HLSPlayer.Event] = []
        if partFirst { events += answer(hint, "media") }
        events += answer(reload, Self.later)
        if !partFirst { events += answer(hint, "media") }
        #expect(player.buffer.end == 3_000_000_000)
        let ages = events.compactMap { if case .arrived(let age) = $0 { age } else { nil } }
        // By the dates its first picture was made half a second after the segment's.
        #expect(ages == [now.wall.milliseconds - (1_795_232_411_375 + 500)])
        let next = asked().map(\.path)
        #expect(next.contains("t-p9-2.m4s") && next.contains { $0.contains("_HLS_msn=9&_HLS_part=2") })
    }

    @Test mutating func `knows when nothing is left to show`() throws {
        _ = try begin()
        pass(milliseconds: 4_000)
        #expect(asked().isEmpty)
        let stalls = player.takeStalls()
        // It began a second behind the beginning of what it loaded, and has had 1.5 s.
        #expect(stalls.count == 1 && (2_400_000_000...2_520_000_000).contains(stalls.nanoseconds))
    }

    @Test mutating func `loads what came instead of what was announced`() throws {
        let (_, reload, hint) = try begin()
        answer(reload, Self.later.replacingOccurrences(of: "t-p9-1.m4s", with: "t-p9-1b.m4s"))
        answer(hint, "media")
        #expect(player.buffer.end == 2_500_000_000)
        #expect(asked().map(\.path).contains("t-p9-1b.m4s"))
    }

    @Test mutating func `takes an announcement that leads to nothing for what it is`() throws {
        let (_, _, hint) = try begin()
        #expect(answer(hint, status: 404) == [])
        #expect(asked().isEmpty, "it is not asked for again")
    }

    @Test mutating func `begins anew near the end where it fell behind`() throws {
        let (_, reload, hint) = try begin()
        answer(hint, "media")
        let far = PlaylistSample.text.replacingOccurrences(of: "SEQUENCE:7", with: "SEQUENCE:70")
            .replacingOccurrences(of: "p8-", with: "p71-")
        let events = answer(reload, far)
        #expect(events.contains(.rejoined))
        #expect(asked().map(\.path).contains("t-p71-0.m4s"))
    }

    @Test mutating func `comes again when it is told to`() throws {
        let first = try #require(asked().first)
        let events = answer(first.request, status: 503, retryAfter: 3)
        #expect(events == [.refused("HTTP 503")])
        pass(milliseconds: 2_900)
        #expect(asked().isEmpty)
        pass(milliseconds: 200)
        #expect(asked().map(\.path) == ["index.m3u8"])
    }

    @Test mutating func `is done when the stream is`() throws {
        let (_, reload, hint) = try begin()
        answer(hint, status: 404)
        let ended = PlaylistSample.text.replacingOccurrences(
            of: "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"t-p9-1.m4s\"",
            with: "#EXTINF:0.500,\nt-s9.m4s\n#EXT-X-ENDLIST")
        #expect(answer(reload, ended).contains(.ended))
        pass(milliseconds: 10_000)
        #expect(asked().isEmpty && player.takeStalls() == PlaybackBuffer.Stalls())
    }

    @Test mutating func `asks a server that does not wait no oftener than HLS has it`() throws {
        let plain = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXTINF:2,\nb.ts\n"
        let first = try #require(asked().first)
        answer(first.request, plain)
        #expect(asked().map(\.path) == ["a.ts"])
        pass(milliseconds: 1_900)
        #expect(asked().isEmpty)
        pass(milliseconds: 200)
        #expect(asked().map(\.path) == ["index.m3u8"])
    }

    @Test mutating func `says what it was given instead of a playlist`() throws {
        let first = try #require(asked().first)
        let events = answer(first.request, "<html>")
        #expect(events.contains(.refused("\(PlaylistFailure.noPlaylist)")))
        #expect(asked().isEmpty)
    }
}
