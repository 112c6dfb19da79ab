import Base
import Foundation
import HLS
import TestSupport
import Testing

@Suite struct LivePlaylists {
    private var making = Making()

    @Test mutating func `says what a player has to know`() {
        making.parts(5)
        #expect(
            making.playlist.text() == """
                #EXTM3U
                #EXT-X-VERSION:9
                #EXT-X-TARGETDURATION:2
                #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.0,PART-HOLD-BACK=1.500
                #EXT-X-PART-INF:PART-TARGET=0.500
                #EXT-X-MEDIA-SEQUENCE:0
                #EXT-X-DISCONTINUITY-SEQUENCE:0
                #EXT-X-MAP:URI="abc-i0.mp4"
                #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:20.000Z
                #EXT-X-PART:DURATION=0.500,URI="abc-p0-0.m4s",INDEPENDENT=YES
                #EXT-X-PART:DURATION=0.500,URI="abc-p0-1.m4s"
                #EXT-X-PART:DURATION=0.500,URI="abc-p0-2.m4s"
                #EXT-X-PART:DURATION=0.500,URI="abc-p0-3.m4s"
                #EXTINF:2.000,
                abc-s0.m4s
                #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:20.000Z
                #EXT-X-PART:DURATION=0.500,URI="abc-p1-0.m4s",INDEPENDENT=YES
                #EXT-X-PRELOAD-HINT:TYPE=PART,URI="abc-p1-1.m4s"

                """)
    }

    @Test func `names itself with codecs and size`() throws {
        #expect(
            LivePlaylist(tag: "a", timing: .init(part: 1, segment: 1, partsPerSegment: 1))
                .variant(uri: "x") == nil)
        let source = try #require(making.playlist.variant(uri: "media.m3u8"))
        var sound = Making(width: 0, height: 0)
        sound.parts(4)
        let variants = [source, try #require(sound.playlist.variant(uri: "media.m3u8?rendition=sound"))]
        #expect(
            MultivariantPlaylist(variants).text == """
                #EXTM3U
                #EXT-X-VERSION:9
                #EXT-X-INDEPENDENT-SEGMENTS
                #EXT-X-STREAM-INF:BANDWIDTH=3260400,AVERAGE-BANDWIDTH=2213600,CODECS="avc1.64001F,mp4a.40.2",\
                RESOLUTION=1280x720,FRAME-RATE=30.000
                media.m3u8
                #EXT-X-STREAM-INF:BANDWIDTH=86000,AVERAGE-BANDWIDTH=16,CODECS="mp4a.40.2"
                media.m3u8?rendition=sound

                """)
    }

    @Test(arguments: [
        ("avc1.64001F", true), ("vp09.00.40.08", true), ("av01.0.05M.08", true), ("av01.2.31H.12", true),
        ("vp9", false), ("vp09.00.45.08", false), ("vp09.0.40.08", false), ("av01.0.5M.08", false),
        ("avc1.64001f", false),
    ]) func `names pictures as players know them`(_ codec: String, isRight: Bool) throws {
        var original = LivePlaylist(tag: "a", timing: .init(part: 500, segment: 2_000, partsPerSegment: 4))
        original.begin(
            initialization: [9], codecs: codec + ",mp4a.40.2", width: 1_280, height: 720,
            framesPerSecond: nil,
            meant: LivePlaylist.Bitrates(peak: 900_000, average: nil))
        let variants = [
            try #require(making.playlist.variant(uri: "media.m3u8")),
            try #require(original.variant(uri: "media.m3u8?rendition=original")),
        ]
        let text = MultivariantPlaylist(variants).text
        #expect(
            text.contains(
                "CODECS=\"\(codec),mp4a.40.2\",RESOLUTION=1280x720\nmedia.m3u8?rendition=original\n"))
        #expect(MultivariantConformance.check(text).isEmpty == isRight)
        #expect(!MultivariantConformance.check(text + text).isEmpty)
    }

    @Test mutating func `goes on as RFC 8216bis wants it where another codec takes the place of one`() {
        var checker = PlaylistConformance()
        for codec in ["vp09.00.40.08", "avc1.64001F", "av01.0.05M.08"] {
            making.playlist.begin(
                initialization: [9], codecs: codec + ",mp4a.40.2", width: 1_280, height: 720,
                framesPerSecond: nil,
                meant: LivePlaylist.Bitrates(peak: 900_000, average: nil))
            making.parts(8)
            #expect(checker.check(making.playlist.text()) == [])
            #expect(making.playlist.variant(uri: "x")?.codecs.hasPrefix(codec) == true)
        }
        #expect(making.playlist.text().components(separatedBy: "#EXT-X-DISCONTINUITY\n").count == 3)
    }

    /// Players look in the playlist that they change to for the number that comes next.
    @Test mutating func `counts on from another one without its segments`() {
        making.parts(4)
        making.begin()
        making.parts(6)
        var original = LivePlaylist(tag: "vp9", countingOnFrom: making.playlist)
        #expect(!original.hasCompleteSegment && original.text().contains("#EXT-X-MEDIA-SEQUENCE:3\n"))
        let next = { PlaylistQuery.Position(sequenceNumber: $0, part: 0) }
        #expect(original.standing(of: next(3)) == .awaited && original.standing(of: next(5)) == .tooFar)
        original.begin(
            initialization: [9], codecs: "vp09.00.40.08,mp4a.40.2", width: 1_280, height: 720,
            framesPerSecond: nil, meant: LivePlaylist.Bitrates(peak: 900_000, average: nil))
        original.append(
            LivePlaylist.Part(
                bytes: [1], milliseconds: 500, startsSegment: true, endsSegment: true,
                date: WallTime(milliseconds: 1_700_000_000_000)))
        var checker = PlaylistConformance()
        #expect(checker.check(original.text()) == [])
        #expect(original.text().contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
        #expect(original.text().contains("vp9-s3.m4s\n") && !original.text().contains("abc-"))
        #expect(original.standing(of: next(3)) == .there)
    }

    @Test mutating func `tells how far the stream's other renditions are`() {
        making.parts(6)
        let other = making.playlist.report(uri: "media.m3u8?rendition=low")
        let text = making.playlist.text(reports: [other].compactMap(\.self))
        #expect(
            text.hasSuffix(
                "#EXT-X-RENDITION-REPORT:URI=\"media.m3u8?rendition=low\",LAST-MSN=1,LAST-PART=1\n"))
        making.playlist.end()
        #expect(making.playlist.report(uri: "x") == nil)
        #expect(!making.playlist.text(reports: [other].compactMap(\.self)).contains("REPORT"))
    }

    @Test func `names what a publisher sends whose pictures are passed on`() {
        var playlist = LivePlaylist(tag: "a", timing: .init(part: 500, segment: 2_000, partsPerSegment: 4))
        playlist.begin(
            initialization: [9], codecs: "avc1.42E01F", width: 640, height: 360, framesPerSecond: nil,
            meant: LivePlaylist.Bitrates(peak: 900_000, average: nil))
        let bytes = [UInt8](repeating: 0, count: 500_000)
        for (place, length) in [500, 400].enumerated() {
            playlist.append(
                LivePlaylist.Part(
                    bytes: bytes, milliseconds: length, startsSegment: place == 0, endsSegment: place == 1,
                    date: WallTime(milliseconds: 0)))
        }
        let text = MultivariantPlaylist([playlist.variant(uri: "media.m3u8")].compactMap(\.self)).text
        #expect(text.contains("BANDWIDTH=8888888,AVERAGE-BANDWIDTH=8888888,"))
        #expect(!text.contains("FRAME-RATE"))
        #expect(playlist.text().contains("#EXTINF:0.900,"))
    }

    @Test mutating func `conforms at every part of a run with breaks`() {
        var conformance = PlaylistConformance()
        for step in 0..<400 {
            if step == 90 || step == 203 || step == 204 || step == 301 { making.begin() }
            making.part()
            #expect(conformance.check(making.playlist.text()) == [], "part \(step)")
            #expect(conformance.check(making.playlist.text(skips: true)) == [], "part \(step), skipped")
        }
        making.playlist.end()
        #expect(conformance.check(making.playlist.text()) == [])
    }

    @Test func `is not believed by a checker that cannot fail`() {
        var conformance = PlaylistConformance()
        var making = Making()
        making.parts(8)
        let text = making.playlist.text()
        for (right, wrong) in [
            ("#EXTINF:2.000", "#EXTINF:1.500"), (",INDEPENDENT=YES", ""),
            ("#EXT-X-MAP:URI=\"abc-i0.mp4\"\n", ""),
            ("PART-TARGET=0.500", "PART-TARGET=0.400"), ("abc-p2-0", "abc-p1-3"),
        ] {
            #expect(!conformance.check(text.replacing(right, with: wrong)).isEmpty, "\(wrong)")
        }
    }

    /// Players that change to it look for what they have.
    @Test mutating func `goes on where another rendition is`() {
        making.parts(10)
        var other = LivePlaylist(tag: "xyz", continuing: making.playlist)
        // The segment under way is the other's alone.
        #expect(other.text().contains("#EXTINF:2.000,\nabc-s1.m4s\n"))
        #expect(!other.text().contains("abc-p2-0"))
        #expect(!other.text().contains("HINT"))
        #expect(other.variant(uri: "x") == nil)
        #expect(other.standing(of: PlaylistQuery.Position(sequenceNumber: 2, part: 0)) == .awaited)
        other.begin(
            initialization: [8], codecs: "avc1.64001E", width: 640, height: 360, framesPerSecond: 30,
            meant: LivePlaylist.Bitrates(peak: 1, average: nil))
        other.append(
            LivePlaylist.Part(
                bytes: [77], milliseconds: 500, startsSegment: true, endsSegment: false,
                date: WallTime(milliseconds: 0)))
        let text = other.text()
        #expect(text.contains("abc-s1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"xyz-i1.mp4\"\n"))
        #expect(text.contains("URI=\"xyz-p2-0.m4s\",INDEPENDENT=YES\n"))
        #expect(text.hasSuffix("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"xyz-p2-1.m4s\"\n"))
        var conformance = PlaylistConformance()
        #expect(conformance.check(text) == [])
        // What it took over is there for as long as it is named.
        #expect(other.file(named: "abc-s1.m4s").bytes == [4, 5, 6, 7])
        #expect(other.file(named: "abc-i0.mp4").bytes == [9])
        #expect(other.file(named: "xyz-i1.mp4").bytes == [8])
        #expect(other.file(named: "xyz-p2-0.m4s").bytes == [77])
        #expect(other.file(named: "xyz-p2-1.m4s").standing == .awaited)
        for name in ["abc-p2-0.m4s", "abc-p2-2.m4s", "xyz-s1.m4s", "abc-i1.mp4", "xy-s1.m4s"] {
            #expect(other.file(named: name).standing == .nowhere, "\(name)")
        }
    }

    @Test mutating func `skips what lies behind six target durations`() {
        making.parts(40)
        let text = making.playlist.text(skips: true)
        #expect(text.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n"))
        #expect(!text.contains("abc-s3.m4s"))
        #expect(text.contains("abc-s4.m4s"))
        #expect(!making.playlist.text().contains("SKIP:"))
    }

    @Test mutating func `keeps ten segments and what is under way`() {
        making.parts(4 * 30 + 1)
        let text = making.playlist.text()
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:20\n"))
        #expect(making.playlist.byteCount == 41)
        #expect(making.playlist.file(named: "abc-s19.m4s").standing == .nowhere)
        #expect(making.playlist.file(named: "abc-s20.m4s").bytes == [80, 81, 82, 83])
    }

    @Test mutating func `keeps no more bytes than it may`() {
        let large = [UInt8](repeating: 0, count: 12 << 20)
        for index in 0..<12 {
            making.playlist.append(
                LivePlaylist.Part(
                    bytes: large, milliseconds: 500, startsSegment: true, endsSegment: index % 2 == 0,
                    date: WallTime(milliseconds: 0)))
            #expect(making.playlist.byteCount <= LivePlaylist.byteLimit)
        }
    }

    @Test mutating func `has whoever asks wait for the next part alone`() {
        making.parts(6)
        #expect(making.standing(0) == .there)
        #expect(making.standing(1) == .awaited)
        #expect(making.standing(1, 1) == .there)
        #expect(making.standing(1, 2) == .awaited)
        #expect(making.standing(2, 0) == .awaited)
        #expect(making.standing(3) == .tooFar)
        #expect(making.standing(1, 9) == .tooFar)
        #expect(making.playlist.file(named: "abc-p1-1.m4s").bytes == [5])
        #expect(making.playlist.file(named: "abc-p1-2.m4s").standing == .awaited)
        #expect(making.playlist.file(named: "abc-p1-3.m4s").standing == .tooFar)
        #expect(making.playlist.file(named: "abc-p900-0.m4s").standing == .tooFar)
        #expect(making.playlist.file(named: "abc-s1.m4s").standing == .nowhere)
        #expect(making.playlist.file(named: "abc-i0.mp4").bytes == [9])
    }

    /// A player that knows parts by their numbers cannot know that a segment became shorter than others.
    @Test mutating func `takes a part behind a segment's last for the next segment's first`() {
        making.parts(6)
        making.begin()
        #expect(making.standing(1, 1) == .there)
        #expect(making.standing(1, 2) == .awaited)
        making.part()
        #expect(making.standing(1, 2) == .there)
        making.parts(3)
        #expect(making.standing(2, 4) == .awaited)
    }

    @Test mutating func `marks what follows another initialization segment`() {
        making.parts(5)
        making.begin()
        #expect(!making.playlist.text().contains("HINT"))
        // A part of a segment whose beginning is not there.
        making.playlist.append(
            LivePlaylist.Part(
                bytes: [7], milliseconds: 500, startsSegment: false, endsSegment: false,
                date: WallTime(milliseconds: 0)))
        #expect(!making.playlist.text().contains("abc-p2-0"))
        making.part()
        let text = making.playlist.text()
        #expect(text.contains("abc-s1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"abc-i1.mp4\"\n"))
        #expect(text.contains("#EXTINF:0.500,\nabc-s1.m4s"))
    }

    @Test mutating func `ends, and lets nobody wait any longer`() {
        making.parts(6)
        making.playlist.end()
        let text = making.playlist.text()
        #expect(text.hasSuffix("#EXTINF:1.000,\nabc-s1.m4s\n#EXT-X-ENDLIST\n"))
        #expect(making.standing(1, 2) == .there)
        #expect(making.playlist.file(named: "abc-p1-2.m4s").standing == .nowhere)
        making.part()
        #expect(making.playlist.text() == text)
    }

    @Test(arguments: [
        "", "abc", "abc-", "abc-s", "abc-s0", "abc-s0.mp4", "abc-s-1.m4s", "abd-s0.m4s", "abc-p0.m4s",
        "abc-p0-0-0.m4s", "abc-s0.m4s.m4s", "abc-s9999999999999999999999.m4s", "abc-x0.m4s", "abc--0.m4s",
        "../abc-s0.m4s",
    ])
    func `has no file by another name`(name: String) {
        var making = Making()
        making.parts(8)
        #expect(making.playlist.file(named: name).standing == .nowhere)
    }

    @Test func `survives any name and any question`() {
        var random = SeededGenerator(seed: 17)
        var making = Making()
        making.parts(9)
        let alphabet = Array("abc-psi0123456789.m4")
        for _ in 0..<20_000 {
            let name = String(
                (0..<Int.random(in: 0...20, using: &random)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                })
            _ = making.playlist.file(named: name)
            guard let query = try? PlaylistQuery(sequenceNumber: name, part: name, skip: name),
                let position = query.position
            else { continue }
            _ = making.playlist.standing(of: position)
        }
    }
}

@Suite struct PlaylistQueries {
    @Test func `takes numbers and nothing else`() throws {
        let query = try PlaylistQuery(sequenceNumber: "12", part: "3", skip: "YES")
        #expect(query.position == PlaylistQuery.Position(sequenceNumber: 12, part: 3))
        #expect(query.skips)
        #expect(try PlaylistQuery(sequenceNumber: nil, part: nil, skip: "no").position == nil)
        #expect(query.rendition == .source)
        let low = try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil, rendition: "low")
        #expect(low.rendition == .low)
        let original = try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil, rendition: "original")
        #expect(original.rendition == .original)
        for bad in ["", "Low", "media"] {
            #expect(throws: PlaylistQuery.Failure.unknownRendition) {
                try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil, rendition: bad)
            }
        }
        for bad in ["", "-1", "+1", "1.0", "x", "1234567890123"] {
            #expect(throws: PlaylistQuery.Failure.malformed) {
                try PlaylistQuery(sequenceNumber: bad, part: nil, skip: nil)
            }
            #expect(throws: PlaylistQuery.Failure.malformed) {
                try PlaylistQuery(sequenceNumber: "1", part: bad, skip: nil)
            }
        }
    }

    @Test func `takes no part without its segment`() {
        #expect(throws: PlaylistQuery.Failure.partAlone) {
            try PlaylistQuery(sequenceNumber: nil, part: "1", skip: nil)
        }
    }
}
