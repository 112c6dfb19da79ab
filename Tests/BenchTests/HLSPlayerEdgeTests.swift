import Base
import Foundation
import TestSupport
import Testing

@testable import sfu_bench

/// A player with its own clock, whose requests are answered by hand.
private final class PlayerRig {
    var player: HLSPlayer
    var now = Moment(
        elapsed: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_232_412_000))

    init(_ path: String = "media.m3u8", isDecoding: Bool = false) {
        player = HLSPlayer(PlaylistSample.base + path, isDecoding: isDecoding)
    }

    func pass(milliseconds: Int64) {
        now = Moment(
            elapsed: now.elapsed + .milliseconds(milliseconds),
            wall: WallTime(milliseconds: now.wall.milliseconds + milliseconds))
    }

    /// The requests that it makes now.
    func requests() -> [HLSPlayer.Request] { player.requests(at: now.elapsed) }

    static func path(_ request: HLSPlayer.Request) -> String {
        request.url.replacingOccurrences(of: PlaylistSample.base, with: "")
    }

    func paths() -> [String] { requests().map(Self.path) }

    @discardableResult
    func answer(
        _ request: HLSPlayer.Request, _ text: String = "", status: Int = 200, retryAfter: Double? = nil,
        error: String = ""
    ) -> [HLSPlayer.Event] {
        let bytes = Array(text.utf8)
        return player.receive(
            FetchedAnswer(
                status: status, bytes: bytes, count: bytes.count, retryAfter: retryAfter, error: error),
            to: request.number, at: now
        ) { bytes, url throws(PlaylistFailure) in
            guard let base = URL(string: url) else { throw .malformed("address") }
            return try PlaylistDocument(parsing: bytes, at: base)
        }
    }

    /// Answers the only request that it makes now.
    @discardableResult
    func answerNext(_ text: String, status: Int = 200) throws -> [HLSPlayer.Event] {
        let made = requests()
        let only = try #require(made.first)
        try #require(made.count == 1)
        return answer(only, text, status: status)
    }

    /// Segments of two seconds with these names, from a server without low latency.
    static func plain(_ names: [String], from number: Int = 0, isFinal: Bool = false) -> String {
        let segments = names.map { "#EXTINF:2,\n\($0).ts\n" }.joined()
        return "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(number)\n" + segments
            + (isFinal ? "#EXT-X-ENDLIST\n" : "")
    }
}

@Suite struct `A player of HLS at the end of a stream` {
    private let rig = PlayerRig()

    private static let final = PlaylistSample.text.replacingOccurrences(
        of: "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"t-p9-1.m4s\"",
        with: "#EXTINF:0.500,\nt-s9.m4s\n#EXT-X-ENDLIST")

    @Test func `goes on behind a segment that does not exist any more`() throws {
        try rig.answerNext(PlayerRig.plain(["a", "b", "c"], isFinal: true))
        let first = try rig.answerNext("aa")
        #expect(first == [.loaded(.media, bytes: 2), .started(0)])
        let missing = try rig.answerNext("", status: 404)
        #expect(missing == [.refused("HTTP 404")])
        #expect(rig.paths().isEmpty, "it pauses after a failure")
        rig.pass(milliseconds: 1_000)
        let last = rig.requests()
        #expect(last.map(PlayerRig.path) == ["c.ts"])
        let only = try #require(last.first)
        let events = rig.answer(only, "cc")
        #expect(events == [.loaded(.media, bytes: 2), .ended])
        #expect(rig.player.buffer.end == 4_000_000_000 && rig.player.hasEnded)
        rig.pass(milliseconds: 60_000)
        #expect(rig.paths().isEmpty)
    }

    @Test(arguments: [404, 410])
    func `ends where even the last segment does not exist`(status: Int) throws {
        try rig.answerNext(PlayerRig.plain(["a"], isFinal: true))
        let events = try rig.answerNext("", status: status)
        #expect(events == [.refused("HTTP \(status)"), .ended])
        rig.pass(milliseconds: 60_000)
        let stalls = rig.player.takeStalls()
        #expect(rig.paths().isEmpty && stalls == .init())
    }

    @Test func `ends where nothing can be begun`() throws {
        let events = try rig.answerNext(PlayerRig.plain([], isFinal: true))
        #expect(events.contains(.ended) && !rig.player.hasStarted)
        rig.pass(milliseconds: 60_000)
        #expect(rig.paths().isEmpty)
    }

    /// The server may still answer a request for what it had announced.
    @Test(arguments: [false, true])
    func `takes what was announced for what is behind the end`(partFirst: Bool) throws {
        try rig.answerNext(PlaylistSample.text)
        var waiting: [HLSPlayer.Request] = []
        for _ in 0..<10 {
            for request in rig.requests() {
                if request.kind == .playlist || request.url.hasSuffix("t-p9-1.m4s") {
                    waiting.append(request)
                } else {
                    rig.answer(request, "media")
                }
            }
        }
        let (found, announced) = (
            waiting.first { $0.kind == .playlist }, waiting.first { $0.kind == .media }
        )
        let reload = try #require(found)
        let hint = try #require(announced)
        var events: [HLSPlayer.Event] = []
        if partFirst { events += rig.answer(hint, "media") }
        events += rig.answer(reload, Self.final)
        if !partFirst { events += rig.answer(hint, "media") }
        let ends = events.filter { $0 == .ended }.count
        #expect(ends == 1 && !events.contains(.rejoined))
        #expect(rig.player.buffer.end == 2_500_000_000)
        rig.pass(milliseconds: 60_000)
        let stalls = rig.player.takeStalls()
        #expect(rig.paths().isEmpty && stalls == .init())
    }
}

@Suite struct `A player of HLS whose requests fail` {
    private let rig = PlayerRig()

    @Test(
        arguments: [
            (nil, 1_000), (0.05, 100), (0.5, 500), (3, 3_000), (10, 10_000), (3_600, 10_000), (-5, 100),
        ] as [(Double?, Int64)])
    func `pauses as long as it is told, within limits`(retryAfter: Double?, pause: Int64) throws {
        let first = try #require(rig.requests().first)
        let events = rig.answer(first, status: 429, retryAfter: retryAfter)
        #expect(events == [.refused("HTTP 429")])
        rig.pass(milliseconds: pause - 1)
        #expect(rig.paths().isEmpty)
        rig.pass(milliseconds: 1)
        #expect(rig.paths() == ["media.m3u8"])
    }

    @Test func `says why there was no answer`() throws {
        let first = try #require(rig.requests().first)
        let events = rig.answer(first, status: 0, error: "connection refused")
        #expect(events == [.refused("connection refused")])
    }

    @Test func `does not take an answer twice, or to what it did not ask`() throws {
        let first = try #require(rig.requests().first)
        let other = HLSPlayer.Request(number: first.number + 7, url: first.url, kind: .media)
        #expect(rig.answer(other, "x") == [])
        let text = PlayerRig.plain(["a", "b"])
        #expect(rig.answer(first, text) == [.loaded(.playlist, bytes: text.utf8.count)])
        #expect(rig.answer(first, text) == [])
    }

    @Test func `asks plainly once after a blocking reload failed`() throws {
        try rig.answerNext(PlaylistSample.text)
        func reload() -> HLSPlayer.Request? {
            rig.requests().first { $0.kind == .playlist }
        }
        var made = reload()
        let blocking = try #require(made)
        #expect(PlayerRig.path(blocking) == "media.m3u8?_HLS_msn=9&_HLS_part=1&_HLS_skip=YES")
        rig.answer(blocking, status: 500)
        rig.pass(milliseconds: 1_000)
        made = reload()
        let plain = try #require(made)
        #expect(PlayerRig.path(plain) == "media.m3u8")
        // With nothing new, it waits for half a part.
        rig.answer(plain, PlaylistSample.text)
        rig.pass(milliseconds: 249)
        made = reload()
        #expect(made == nil)
        rig.pass(milliseconds: 1)
        made = reload()
        #expect(made?.url.contains("_HLS_msn=9") == true)
    }

    @Test func `leaves a segment that does not exist, and begins near the edge`() throws {
        try rig.answerNext(PlayerRig.plain(["a", "b", "c", "d"]))
        let missing = try rig.answerNext("", status: 404)
        #expect(missing == [.refused("HTTP 404")])
        rig.pass(milliseconds: 1_000)
        // Not the segment again, but a playlist, and at once.
        try rig.answerNext(PlayerRig.plain(["c", "d", "e", "f"], from: 2))
        #expect(rig.paths() == ["d.ts"])
    }

    @Test func `asks again for a segment that failed for another reason`() throws {
        try rig.answerNext(PlayerRig.plain(["a", "b", "c"]))
        try rig.answerNext("", status: 503)
        rig.pass(milliseconds: 1_000)
        #expect(rig.paths() == ["a.ts"])
    }
}

@Suite struct `A player of HLS with a choice` {
    @Test func `takes the best variant, and its address`() throws {
        let rig = PlayerRig("index.m3u8?token=x")
        let index = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=400000
            low.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=2000000
            high.m3u8?token=y
            #EXT-X-STREAM-INF:BANDWIDTH=900000
            mid.m3u8

            """
        try rig.answerNext(index)
        try rig.answerNext(PlaylistSample.text)
        let paths = rig.paths()
        #expect(paths.contains("high.m3u8?token=y&_HLS_msn=9&_HLS_part=1&_HLS_skip=YES"))
    }

    @Test func `follows playlists that name each other slowly`() throws {
        let rig = PlayerRig("a.m3u8")
        let circle = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb.m3u8\n"
        for _ in 0..<5 { try rig.answerNext(circle) }
        #expect(rig.paths().isEmpty)
        rig.pass(milliseconds: 1_000)
        #expect(rig.paths() == ["b.m3u8"])
    }

    @Test func `refuses another choice behind the first playlist`() throws {
        let rig = PlayerRig()
        try rig.answerNext(PlayerRig.plain(["a"]))
        try rig.answerNext("aa")
        rig.pass(milliseconds: 2_000)
        let events = try rig.answerNext("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb.m3u8\n")
        let words = PlaylistFailure.unsupported("a nested multivariant playlist").description
        #expect(events.last == .refused(words))
    }

    @Test func `loads each initialization segment once, before the media that needs it`() throws {
        let rig = PlayerRig(isDecoding: true)
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-MAP:URI="i0.mp4"
            #EXTINF:2,
            a.m4s
            #EXTINF:2,
            b.m4s
            #EXT-X-MAP:URI="i1.mp4"
            #EXTINF:2,
            c.m4s
            #EXT-X-ENDLIST

            """
        try rig.answerNext(text)
        var paths: [String] = []
        var media: [HLSPlayer.Event] = []
        while let request = rig.requests().first {
            paths.append(PlayerRig.path(request))
            media += rig.answer(request, "x").filter {
                switch $0 {
                case .initialization, .media: true
                default: false
                }
            }
        }
        #expect(paths == ["i0.mp4", "a.m4s", "b.m4s", "i1.mp4", "c.m4s"])
        let x = Array("x".utf8)
        #expect(
            media == [
                .initialization(x), .media(x, at: 0), .media(x, at: 2_000_000_000), .initialization(x),
                .media(x, at: 4_000_000_000),
            ])
    }

    @Test func `asks for nothing that is only announced, where a server does not wait`() throws {
        let rig = PlayerRig()
        let text = PlaylistSample.text.replacingOccurrences(of: "CAN-BLOCK-RELOAD=YES,", with: "")
        try rig.answerNext(text)
        var paths: [String] = []
        while let request = rig.requests().first {
            paths.append(PlayerRig.path(request))
            rig.answer(request, "x")
        }
        #expect(paths.last == "t-p9-0.m4s" && !paths.contains("media.m3u8"))
        // It reloads after the target duration.
        rig.pass(milliseconds: 1_999)
        #expect(rig.paths().isEmpty)
        rig.pass(milliseconds: 1)
        #expect(rig.paths() == ["media.m3u8"])
    }
}
