import Base
import HLS
import TestSupport
import Testing

/// A packager whose parts are as uneven as those of a publisher's own pictures.
private struct UnevenMaking {
    private static let timing = LivePlaylist.Timing(part: 500, segment: 2_000, partsPerSegment: 4)

    var playlist = LivePlaylist(tag: "r100", timing: timing)
    /// How long the segment under way is, in milliseconds; nil between segments.
    private var length: Int?
    private var random: SeededGenerator
    private var renditions = 100
    private var count = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        begin()
    }

    mutating func begin() {
        playlist.begin(
            initialization: [9], codecs: "avc1.64001F,mp4a.40.2", width: 640, height: 360,
            framesPerSecond: nil, meant: LivePlaylist.Bitrates(peak: 900_000, average: nil))
        length = nil
    }

    /// Another rendition takes the place of this one, with its segments or its numbers alone.
    mutating func change() {
        renditions += 1
        let tag = "r\(renditions)"
        playlist =
            Bool.random(using: &random)
            ? LivePlaylist(tag: tag, continuing: playlist) : LivePlaylist(tag: tag, countingOnFrom: playlist)
        length = nil
    }

    /// True once in so many calls.
    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    /// Makes a part of up to half a second; a segment ends before it would be too long.
    mutating func part() {
        let milliseconds = Int.random(in: 33...500, using: &random)
        let total = (length ?? 0) + milliseconds
        let isLast = total > 1_500 || chance(40)
        count += 1
        playlist.append(
            LivePlaylist.Part(
                bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: 1 + count % 7),
                milliseconds: milliseconds, startsSegment: length == nil, endsSegment: isLast,
                date: WallTime(milliseconds: 1_700_000_000_000 + Int64(count))))
        length = isLast ? nil : total
    }
}

/// The names that a playlist refers to: segments, parts and initialization segments, but not what it hints at.
private func names(in text: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
        if line.hasPrefix("#EXT-X-PRELOAD-HINT") { return nil }
        if !line.hasPrefix("#") { return String(line) }
        guard let start = line.firstRange(of: "URI=\"")?.upperBound else { return nil }
        return String(line[start...].prefix { $0 != "\"" })
    }
}

private func hint(in text: String) -> String? {
    let start = text.firstRange(of: "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"")?.upperBound
    return start.map { String(text[$0...].prefix { $0 != "\"" }) }
}

@Suite struct `A live playlist of uneven parts` {
    @Test(arguments: ChosenSeed.or(1...5))
    func `has all that it names, and soon what it hints at`(seed: UInt64) {
        var making = UnevenMaking(seed: seed)
        var conformance = PlaylistConformance()
        var hinted: String?
        for step in 0..<300 {
            let isBroken = making.chance(40)
            if isBroken { making.begin() }
            making.part()
            let text = making.playlist.text()
            #expect(conformance.check(text) == [], "part \(step)")
            let missing = names(in: text).filter { name in
                let file = making.playlist.file(named: name)
                return file.standing != .there || file.bytes.isEmpty
            }
            #expect(missing == [], "part \(step)")
            if let hinted, !isBroken {
                #expect(making.playlist.file(named: hinted).standing == .there, "part \(step): \(hinted)")
            }
            hinted = hint(in: text)
            if let hinted { #expect(making.playlist.file(named: hinted).standing == .awaited) }
        }
    }

    /// What a player has that leaves out what it has, and puts the rest behind it.
    @Test(arguments: ChosenSeed.or(1...5))
    func `is the same for a player that has the beginning`(seed: UInt64) throws {
        var making = UnevenMaking(seed: seed)
        var (before, updates) = ([String](), 0)
        for step in 0..<300 {
            if making.chance(40) { making.begin() }
            making.part()
            let lines = making.playlist.text().split(separator: "\n").map(String.init)
            let update = making.playlist.text(skips: true).split(separator: "\n").map(String.init)
            let segments = lines.filter { !$0.hasPrefix("#") }
            if let place = update.firstIndex(where: { $0.hasPrefix("#EXT-X-SKIP:") }) {
                updates += 1
                let skipped = try #require(Int(update[place].split(separator: "=")[1]))
                #expect(before.contains(segments[skipped - 1]), "part \(step)")
                var rest = Array(update[(place + 1)...])
                let isSame = lines.suffix(rest.count) == rest[...]
                // A map that was said before the segments that are left out is said again.
                if !isSame, rest.first?.hasPrefix("#EXT-X-MAP:") == true { rest.removeFirst() }
                #expect(lines.suffix(rest.count) == rest[...], "part \(step)")
                let others = rest.filter { !$0.hasPrefix("#") }
                #expect(others == Array(segments.dropFirst(skipped)), "part \(step)")
            } else {
                #expect(update == lines)
            }
            before = segments
        }
        #expect(updates > 50)
    }

    /// A request that was answered once is never left to wait, and one that waits is not refused.
    @Test(arguments: ChosenSeed.or(1...5))
    func `goes forward alone`(seed: UInt64) {
        var making = UnevenMaking(seed: seed)
        var standings: [Int: LivePlaylist.Standing] = [:]
        for step in 0..<120 {
            if making.chance(20) { making.begin() }
            making.part()
            var faults: [PlaylistQuery.Position] = []
            for number in 0..<30 {
                for part in [nil, 0, 1, 2, 5, 8, 9] as [Int?] {
                    let position = PlaylistQuery.Position(sequenceNumber: number, part: part)
                    let now = making.playlist.standing(of: position)
                    let key = 16 * number + (part ?? 15)
                    let isBack =
                        switch standings[key] {
                        case .there?: now != .there
                        case .awaited?: now == .tooFar
                        default: false
                        }
                    if isBack { faults.append(position) }
                    standings[key] = now
                }
            }
            #expect(faults == [], "part \(step)")
        }
    }

    /// As for a viewer whose rendition is made by another encoder from now on, or passed on.
    @Test(arguments: ChosenSeed.or(1...8))
    func `conforms where others take its place`(seed: UInt64) {
        var making = UnevenMaking(seed: seed)
        var conformance = PlaylistConformance()
        for step in 0..<300 {
            if making.chance(30) {
                making.change()
                making.begin()
            } else if making.chance(40) {
                making.begin()
            }
            making.part()
            let text = making.playlist.text()
            #expect(conformance.check(text) == [], "part \(step)")
            let missing = names(in: text).filter { making.playlist.file(named: $0).standing != .there }
            #expect(missing == [], "part \(step)")
        }
    }

    // MARK: Limits

    @Test func `keeps a segment under way, however large it is, and no other one then`() {
        var making = Making()
        making.parts(8)
        let part = LivePlaylist.Part(
            bytes: [UInt8](repeating: 0, count: 5 << 20), milliseconds: 200, startsSegment: false,
            endsSegment: false, date: WallTime(milliseconds: 0))
        for index in 0..<8 {
            var next = part
            next.startsSegment = index == 0
            making.playlist.append(next)
        }
        #expect(making.playlist.byteCount == 40 << 20)
        #expect(making.playlist.file(named: "abc-s1.m4s").standing == .nowhere)
        #expect(making.playlist.file(named: "abc-p2-7.m4s").bytes.count == 5 << 20)
        var small = part
        (small.bytes, small.startsSegment) = ([1], true)
        making.playlist.append(small)
        #expect(making.playlist.byteCount == 1)
        #expect(making.playlist.text().contains("#EXT-X-MEDIA-SEQUENCE:3\n"))
    }

    /// Caches would keep each name's bytes for themselves.
    @Test(arguments: [
        "abc-s00.m4s", "abc-s01.m4s", "abc-p0-00.m4s", "abc-p00-0.m4s", "abc-i00.mp4", "abc-p2-00.m4s",
    ])
    func `has one name for each file`(name: String) {
        var making = Making()
        making.parts(8)
        #expect(making.playlist.file(named: name).standing == .nowhere)
        #expect(!making.playlist.names(name))
    }

    @Test func `tells bit rates of segments alone that last as long as a part`() throws {
        var making = Making()
        making.playlist.append(
            LivePlaylist.Part(
                bytes: [UInt8](repeating: 0, count: 1 << 20), milliseconds: 1, startsSegment: true,
                endsSegment: true, date: WallTime(milliseconds: 0)))
        let variant = try #require(making.playlist.variant(uri: "x"))
        #expect(variant.bandwidth == 3_260_400)
    }
}

@Suite struct `The playlist of a recording of any length` {
    private func playlist(_ milliseconds: [Int64], from offset: Int64 = 0) -> RecordedPlaylist {
        let segments = milliseconds.map {
            RecordedPlaylist.Segment(bytes: offset..<(offset + 1_000), milliseconds: $0)
        }
        let part = RecordedPlaylist.Part(
            uri: "a.mp4", initialization: 0..<9, segments: segments,
            date: WallTime(milliseconds: 1_700_000_000_000))
        return RecordedPlaylist([part], isIndependent: true)
    }

    @Test(
        arguments: [
            (0, 1, "0.000"), (1, 1, "0.001"), (999, 1, "0.999"), (1_000, 1, "1.000"), (1_001, 2, "1.001"),
            (12_999, 13, "12.999"), (13_000, 13, "13.000"), (3_600_010, 3_601, "3600.010"),
        ] as [(Int64, Int, String)])
    func `has a target that no segment exceeds`(milliseconds: Int64, target: Int, text: String) {
        let recorded = playlist([milliseconds]).text
        #expect(recorded.contains("#EXT-X-TARGETDURATION:\(target)\n"))
        #expect(recorded.contains("#EXTINF:\(text),\n"))
        var conformance = PlaylistConformance()
        #expect(conformance.check(recorded) == [])
    }

    @Test func `names ranges behind four gigabytes`() {
        #expect(playlist([4_000], from: 5 << 30).text.contains("#EXT-X-BYTERANGE:1000@5368709120\n"))
    }

    @Test func `of nothing is a playlist, too`() {
        var conformance = PlaylistConformance()
        #expect(conformance.check(RecordedPlaylist([], isIndependent: true).text) == [])
    }
}
