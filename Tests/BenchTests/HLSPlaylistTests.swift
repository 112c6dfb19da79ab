import Foundation
import TestSupport
import Testing

@testable import sfu_bench

/// A playlist as Rostrum writes it, of a stream that has just begun its third segment.
enum PlaylistSample {
    static let text = """
        #EXTM3U
        #EXT-X-VERSION:9
        #EXT-X-TARGETDURATION:2
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.0,PART-HOLD-BACK=1.500
        #EXT-X-PART-INF:PART-TARGET=0.500
        #EXT-X-MEDIA-SEQUENCE:7
        #EXT-X-DISCONTINUITY-SEQUENCE:0
        #EXT-X-MAP:URI="t-i0.mp4"
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T03:40:07.375Z
        #EXTINF:2.000,
        t-s7.m4s
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T03:40:09.375Z
        #EXT-X-PART:DURATION=0.500,URI="t-p8-0.m4s",INDEPENDENT=YES
        #EXT-X-PART:DURATION=0.500,URI="t-p8-1.m4s"
        #EXT-X-PART:DURATION=0.500,URI="t-p8-2.m4s"
        #EXT-X-PART:DURATION=0.500,URI="t-p8-3.m4s"
        #EXTINF:2.000,
        t-s8.m4s
        #EXT-X-PROGRAM-DATE-TIME:2026-11-21T03:40:11.375Z
        #EXT-X-PART:DURATION=0.500,URI="t-p9-0.m4s",INDEPENDENT=YES
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI="t-p9-1.m4s"

        """
    static let base = "http://127.0.0.1/hls/s1/"

    static func read(_ text: String) throws(PlaylistFailure) -> PlaylistDocument {
        guard let url = URL(string: base + "media.m3u8") else { throw .malformed("address") }
        return try PlaylistDocument(parsing: Array(text.utf8), at: url)
    }

    static func media(_ text: String = text) throws -> MediaPlaylist {
        guard case .media(let playlist) = try read(text) else { throw PlaylistFailure.noPlaylist }
        return playlist
    }
}

@Suite struct `A playlist` {
    private typealias Position = MediaPlaylist.Position

    private static let half: Int64 = 500_000_000

    @Test func `tells its segments, parts and what comes next`() throws {
        let playlist = try PlaylistSample.media()
        #expect(playlist.targetDuration == 4 * Self.half && playlist.partTarget == Self.half)
        #expect(playlist.partHoldBack == 3 * Self.half && playlist.canBlock && playlist.canSkip)
        #expect(playlist.segments.map(\.number) == [7, 8, 9])
        #expect(playlist.segments.map(\.parts.count) == [0, 4, 1])
        #expect(playlist.segments.map(\.url) == [7, 8].map { "\(PlaylistSample.base)t-s\($0).m4s" } + [nil])
        #expect(playlist.segments.allSatisfy { $0.initialization == PlaylistSample.base + "t-i0.mp4" })
        #expect(playlist.segments[1].parts.map(\.isIndependent) == [true, false, false, false])
        #expect(playlist.segments[0].date == 1_795_232_407_375)
        #expect(playlist.hint == PlaylistSample.base + "t-p9-1.m4s" && !playlist.hasEnded)
        #expect(playlist.end == Position(number: 9, part: 1))
    }

    @Test func `reads the same with other ends of lines`() throws {
        let other = PlaylistSample.text.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(try PlaylistSample.media(other) == PlaylistSample.media())
    }

    @Test func `is begun where a decoder can begin, and shown from where the server wants it`() throws {
        // Of 4.5 s the last 1.5 s are held back: 3 s, a second behind the beginning of segment 8.
        let start = try #require(try PlaylistSample.media().start)
        #expect(start.position == Position(number: 8, part: 0) && start.offset == 2 * Self.half)
    }

    @Test func `says what is at each place`() throws {
        let playlist = try PlaylistSample.media()
        guard case .listed(let whole) = playlist.item(at: Position(number: 7, part: 0)),
            case .listed(let part) = playlist.item(at: Position(number: 8, part: 3))
        else {
            Issue.record("not listed")
            return
        }
        #expect(whole.duration == 4 * Self.half && whole.next == Position(number: 8, part: 0))
        #expect(part.duration == Self.half && part.date == 1_795_232_410_875)
        #expect(part.next == Position(number: 8, part: 4))
        // A part behind the last one is the next segment's first.
        guard case .listed(let next) = playlist.item(at: part.next) else {
            Issue.record("not listed")
            return
        }
        #expect(next.position == Position(number: 9, part: 0))
        #expect(
            playlist.item(at: Position(number: 9, part: 1)) == .hinted(PlaylistSample.base + "t-p9-1.m4s"))
        #expect(playlist.item(at: Position(number: 10, part: 0)) == .awaited)
        for gone in [(6, 0), (7, 1), (9, 2), (30, 0), (8, -1)] {
            #expect(playlist.item(at: Position(number: gone.0, part: gone.1)) == .gone, "\(gone)")
        }
    }

    @Test func `has whole segments alone for players that know no low latency`() throws {
        let playlist = try PlaylistSample.media().ofWholeSegments
        #expect(playlist.segments.map(\.number) == [7, 8])
        #expect(playlist.segments.allSatisfy { $0.parts.isEmpty && $0.duration == 4 * Self.half })
        #expect(!playlist.canBlock && !playlist.canSkip && playlist.partTarget == nil && playlist.hint == nil)
        #expect(playlist.end == Position(number: 9, part: 0))
        #expect(playlist.item(at: playlist.end) == .awaited)
    }

    @Test func `counts what a delta update leaves out`() throws {
        let delta = PlaylistSample.text.replacingOccurrences(
            of: "#EXT-X-MAP:URI=\"t-i0.mp4\"\n", with: "#EXT-X-SKIP:SKIPPED-SEGMENTS=5\n")
        let playlist = try PlaylistSample.media(delta)
        #expect(playlist.skipped == 5 && playlist.segments.map(\.number) == [12, 13, 14])
        #expect(playlist.segments.allSatisfy { $0.initialization == nil })
    }

    @Test func `of whole segments is begun three segments from its end`() throws {
        let segments = (0..<6).map { "#EXTINF:4.0,\nseg\($0).ts?k=1\n" }.joined()
        let playlist = try PlaylistSample.media(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:100\n" + segments)
        #expect(playlist.start?.position == Position(number: 103, part: 0) && playlist.start?.offset == 0)
        #expect(!playlist.canBlock && playlist.partTarget == nil)
        #expect(playlist.end == Position(number: 106, part: 0))
        #expect(playlist.item(at: playlist.end) == .awaited)
        #expect(playlist.segments[0].url == PlaylistSample.base + "seg0.ts?k=1")
    }

    @Test func `may name others`() throws {
        let text = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=400000,CODECS="avc1.42E01F,mp4a.40.2",RESOLUTION=640x360
            low.m3u8
            #EXT-X-STREAM-INF:RESOLUTION=1280x720,BANDWIDTH=2000000
            http://example.org/high.m3u8

            """
        #expect(
            try PlaylistSample.read(text)
                == .multivariant([
                    PlaylistVariant(url: PlaylistSample.base + "low.m3u8", bandwidth: 400_000),
                    PlaylistVariant(url: "http://example.org/high.m3u8", bandwidth: 2_000_000),
                ]))
    }

    @Test(arguments: [
        ("", "does not begin with #EXTM3U"), ("<html>", "does not begin with #EXTM3U"),
        ("#EXTM3U\n", "EXT-X-TARGETDURATION"), ("#EXTM3U\n#EXT-X-TARGETDURATION:x\n", "EXT-X-TARGETDURATION"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\nlonely.ts\n", "EXTINF"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:-3,\na.ts\n", "EXTINF"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:inf,\na.ts\n", "EXTINF"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:99999999999999\n", "EXT-X-MEDIA-SEQUENCE"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART:DURATION=1\n", "EXT-X-PART"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1,\nfile:///etc/passwd\n", "EXTINF"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-BYTERANGE:3@4\n", "byte ranges"),
        (
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART:DURATION=1,URI=\"a\",BYTERANGE=\"3@4\"\n",
            "byte ranges"
        ),
        ("#EXTM3U\n#EXT-X-STREAM-INF:RESOLUTION=1x1\na.m3u8\n", "EXT-X-STREAM-INF"),
    ])
    func `says what is wrong`(text: String, words: String) {
        let failure = #expect(throws: PlaylistFailure.self) { try PlaylistSample.read(text) }
        #expect(failure?.description.contains(words) == true, "\(failure?.description ?? "")")
    }

    @Test(arguments: UInt64(0)..<20) func `of nonsense traps nobody`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let lines = PlaylistSample.text.split(separator: "\n").map(String.init)
        for _ in 0..<50 {
            var shuffled = lines.shuffled(using: &dice)
            for index in shuffled.indices where Int.random(in: 0..<4, using: &dice) == 0 {
                shuffled[index] = String(shuffled[index].shuffled(using: &dice))
            }
            guard
                case .media(let playlist)? = try? PlaylistSample.read(
                    "#EXTM3U\n" + shuffled.joined(separator: "\n"))
            else { continue }
            _ = (playlist.start?.offset, playlist.end)
            for number in 0..<20 { _ = playlist.item(at: Position(number: number, part: number % 5)) }
        }
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00.000Z", 0), ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2026-11-21T03:40:07.375Z", 1_795_232_407_375),
        ] as [(String, Int64)])
    func `has dates`(text: String, milliseconds: Int64) {
        #expect(PlaylistText.milliseconds(date: text[...]) == milliseconds)
    }

    @Test(arguments: [
        "", "Z", "2026-11-21", "2026-13-21T03:40:07Z", "2026-11-21T03:40:07+01:00", "2026-11-21T3Z",
    ])
    func `has no other dates`(text: String) {
        #expect(PlaylistText.milliseconds(date: text[...]) == nil)
    }
}
