import TestSupport
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

/// Big-endian numbers of 32 bits; the first one of a full box is its version and flags.
private func numbers(_ values: Int...) -> [UInt8] {
    values.flatMap { value in
        [24, 16, 8, 0].map { shift in UInt8(truncatingIfNeeded: value >> shift) }
    }
}

private func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    numbers(body.count + 8) + Array(type.utf8) + body
}

/// A frame as a test put it into a file, or as tables tell of it.
private struct Frame: Equatable {
    var place: Int64
    var size: UInt64
    var time: UInt64
    var shift: Int32
    var isSync: Bool
}

/// A file with pictures and sound as our muxer begins it, and with fragments that a test chooses.
private struct Movie {
    struct Sample {
        var size = 10
        var duration = 1_000
        var shift = 0
        var isSync = true
    }

    /// What a fragment has of one track.
    struct Part {
        var track: UInt64
        var time: UInt64
        var runs: [[Sample]]
    }

    private(set) var bytes: [UInt8]
    /// Two IDs, ascending.
    let tracks: [UInt64]
    /// All frames in order.
    private(set) var frames: [UInt64: [Frame]] = [:]

    init() throws {
        var studio = Studio()
        studio.codec = .h264
        studio.play(20)
        studio.stop()
        let fragments = MP4Fragments(ByteSource(studio.file))
        let moov = try #require(fragments.moov).box
        bytes = Array(studio.file.prefix(Int(moov.end)))
        tracks = fragments.tracks.keys.sorted()
        try #require(tracks.count == 2)
    }

    /// Adds a fragment.
    /// - Parameters:
    ///   - displacement: how far its frames lie behind the place that it tells.
    ///   - isLong: whether the size of the box with the frames has 64 bits.
    mutating func append(_ parts: [Part], displacement: Int = 0, isLong: Bool = false) {
        let size = parts.flatMap(\.runs).joined().reduce(0) { $0 + $1.size }
        let head = isLong ? numbers(1) + Array("mdat".utf8) + numbers(0, size + 16) : box("mdat", [])
        let length = Self.moof(parts, data: 0).count
        var place = Int64(bytes.count + length + head.count)
        for part in parts {
            var time = part.time
            for sample in part.runs.joined() {
                frames[part.track, default: []].append(
                    Frame(
                        place: place, size: UInt64(sample.size), time: time, shift: Int32(sample.shift),
                        isSync: sample.isSync))
                place += Int64(sample.size)
                time &+= UInt64(sample.duration)
            }
        }
        bytes += Self.moof(parts, data: length + head.count - displacement)
        bytes += isLong ? head : numbers(size + 8) + Array("mdat".utf8)
        bytes += [UInt8](repeating: 0x55, count: size)
    }

    /// - Parameter start: place of the first frame, from the beginning of the box.
    private static func moof(_ parts: [Part], data start: Int) -> [UInt8] {
        var place = start
        var body = box("mfhd", numbers(0, 1))
        for part in parts {
            var runs: [UInt8] = []
            for (index, run) in part.runs.enumerated() {
                // Those behind the first one follow it without a place of their own.
                var trun = numbers(index == 0 ? 0x0100_0F01 : 0x0100_0F00, run.count)
                if index == 0 { trun += numbers(place) }
                for sample in run {
                    let flags = sample.isSync ? 0x0200_0000 : 0x0101_0000
                    trun += numbers(sample.duration, sample.size, flags, sample.shift)
                    place += sample.size
                }
                runs += box("trun", trun)
            }
            let time = numbers(0x0100_0000, Int(part.time >> 32), Int(part.time & 0xFFFF_FFFF))
            body += box("traf", box("tfhd", numbers(0x2_0000, Int(part.track))) + box("tfdt", time) + runs)
        }
        return box("moof", body)
    }
}

/// The values of a run-length encoded table, one for each frame.
private func expanded(_ table: MP4BoxBody) -> [UInt64] {
    (0..<Int(table.number(at: 4, count: 4))).flatMap { index in
        [UInt64](
            repeating: table.number(at: 12 + 8 * index, count: 4),
            count: Int(table.number(at: 8 + 8 * index, count: 4)))
    }
}

/// The frames that a track's tables tell of; the first one is at time 0.
private func frames(of stbl: MP4BoxBody) throws -> [Frame] {
    let steps = expanded(try #require(stbl["stts"]))
    let stsz = try #require(stbl["stsz"])
    let sizes = (0..<Int(stsz.number(at: 8, count: 4))).map { stsz.number(at: 12 + 4 * $0, count: 4) }
    let shifts = stbl["ctts"].map { expanded($0) } ?? [UInt64](repeating: 0, count: sizes.count)
    let syncs = stbl["stss"].map { stss in
        Set((0..<Int(stss.number(at: 4, count: 4))).map { stss.number(at: 8 + 4 * $0, count: 4) })
    }
    let (stsc, co64) = (try #require(stbl["stsc"]), try #require(stbl["co64"]))
    let entries = Int(stsc.number(at: 4, count: 4))
    var found: [Frame] = []
    var (entry, time) = (0, UInt64(0))
    for chunk in 0..<Int(co64.number(at: 4, count: 4)) {
        // The chunks of an entry are those up to the first one of the next entry.
        while entry + 1 < entries, Int(stsc.number(at: 20 + 12 * entry, count: 4)) <= chunk + 1 { entry += 1 }
        var place = Int64(co64.number(at: 8 + 8 * chunk, count: 8))
        for _ in 0..<Int(stsc.number(at: 12 + 12 * entry, count: 4)) {
            let index = found.count
            try #require(index < min(sizes.count, steps.count, shifts.count))
            found.append(
                Frame(
                    place: place, size: sizes[index], time: time,
                    shift: Int32(truncatingIfNeeded: shifts[index]),
                    isSync: syncs?.contains(UInt64(index + 1)) ?? true))
            place += Int64(sizes[index])
            time += steps[index]
        }
    }
    try #require(found.count == sizes.count && found.count == steps.count)
    return found
}

@Suite struct `The fragments of an MP4 file` {
    private var movie: Movie
    private let first: UInt64
    private let second: UInt64

    init() throws {
        movie = try Movie()
        first = movie.tracks[0]
        second = movie.tracks[1]
    }

    /// Three frames of a thousand ticks.
    private func part(_ track: UInt64, at time: UInt64) -> Movie.Part {
        Movie.Part(track: track, time: time, runs: [[Movie.Sample](repeating: Movie.Sample(), count: 3)])
    }

    private func tables(_ movie: Movie) -> [UInt8]? {
        MP4Completion.tables(MP4Fragments(ByteSource(movie.bytes)))
    }

    /// With gaps, frames that last no time or have no bytes, runs of none, and tracks that a fragment lacks.
    @Test(arguments: ChosenSeed.or(1...20))
    mutating func `get tables that tell where each frame is, and when it is shown`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var times: [UInt64: UInt64] = [:]
        for track in movie.tracks { times[track] = UInt64.random(in: 0...90_000, using: &random) }
        for _ in 0..<Int.random(in: 1...30, using: &random) {
            var parts: [Movie.Part] = []
            for track in movie.tracks where Int.random(in: 0..<4, using: &random) > 0 {
                var part = Movie.Part(track: track, time: times[track, default: 0], runs: [])
                if Int.random(in: 0..<5, using: &random) == 0 {
                    part.time += UInt64.random(in: 1...200_000, using: &random)
                }
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    part.runs.append([])
                    for _ in 0..<Int.random(in: 0...6, using: &random) {
                        part.runs[part.runs.count - 1].append(
                            Movie.Sample(
                                size: .random(in: 0...40, using: &random),
                                duration: .random(in: 0...5_000, using: &random),
                                shift: .random(in: -3_000...9_000, using: &random),
                                isSync: Int.random(in: 0..<4, using: &random) == 0))
                    }
                }
                times[track] = part.time + UInt64(part.runs.joined().reduce(0) { $0 + $1.duration })
                parts.append(part)
            }
            movie.append(parts, isLong: Bool.random(using: &random))
        }
        let fragments = MP4Fragments(ByteSource(movie.bytes))
        #expect(fragments.end == Int64(movie.bytes.count))
        let all = movie.frames
        let shown = movie.tracks.filter { all[$0]?.isEmpty == false }
        let moov = MP4BoxBody(Array((MP4Completion.tables(fragments) ?? []).dropFirst(8)))
        let traks = moov.children("trak")
        try #require(traks.count == shown.count)
        for (trak, track) in zip(traks, shown) {
            var expected = all[track, default: []]
            let begin = try #require(expected.first).time
            for index in expected.indices { expected[index].time -= begin }
            let found = try frames(of: try #require(trak["mdia"]?["minf"]?["stbl"]))
            #expect(found == expected, "track \(track)")
        }
    }

    /// Or players would be sent to frames that nobody vouches for.
    @Test mutating func `end before the first one that cannot be, of which nothing is taken over`() throws {
        movie.append([part(first, at: 0), part(second, at: 0)])
        let good = movie
        let expected = try #require(tables(good))
        var movies = [Movie](repeating: good, count: 5)
        // A track that does not exist; frames in front of their box and behind it; times that make no sense.
        movies[0].append([part(first, at: 3_000), part(99, at: 3_000)])
        movies[1].append([part(first, at: 3_000), part(second, at: 3_000)], displacement: 1)
        movies[2].append([part(first, at: 3_000), part(second, at: 3_000)], displacement: -1)
        movies[3].append([part(first, at: 3_000), part(second, at: 1 << 48)])
        movies[4].append([part(first, at: 3_000), part(second, at: .max)])
        for (index, broken) in movies.enumerated() {
            var movie = broken
            movie.append([part(first, at: 6_000), part(second, at: 6_000)])
            let fragments = MP4Fragments(ByteSource(movie.bytes))
            #expect(fragments.end == Int64(good.bytes.count), "movie \(index)")
            #expect(fragments.tracks.values.map(\.sizes.count) == [3, 3], "movie \(index)")
            let isSame = MP4Completion.tables(fragments) == expected
            #expect(isSame, "movie \(index)")
        }
    }

    @Test mutating func `may be of times that 32 bits cannot hold`() throws {
        let begin: UInt64 = 1 << 33
        movie.append([part(first, at: begin)])
        movie.append([part(first, at: begin + 1 << 31)])
        movie.append([part(first, at: begin + 1 << 32 + 1 << 31)])
        let end: UInt64 = begin + 1 << 32 + 1 << 31 + 3_000
        let fragments = MP4Fragments(ByteSource(movie.bytes))
        let moov = MP4BoxBody(Array(try #require(MP4Completion.tables(fragments)).dropFirst(8)))
        let scale = try #require(fragments.tracks[first]).scale
        let movieScale = try #require(moov["mvhd"]).number(at: 12, count: 4)
        let trak = try #require(moov["trak"])
        #expect(fragments.outline.milliseconds == Int64(end * 1_000 / scale))
        #expect(try #require(trak["mdia"]?["mdhd"]).versionedNumber(at: 24) == end - begin)
        // A gap up to the first frame, then the frames.
        let elst = try #require(trak["edts"]?["elst"])
        let gap = begin * movieScale / scale
        #expect(elst.number(at: 8, count: 8) == gap)
        #expect(elst.number(at: 16, count: 8) == .max)
        #expect(elst.number(at: 28, count: 8) == end * movieScale / scale - gap)
        #expect(elst.number(at: 36, count: 8) == 0)
    }

    @Test mutating func `of one track alone get tables of this one`() throws {
        movie.append([part(second, at: 0)])
        let moov = MP4BoxBody(Array(try #require(tables(movie)).dropFirst(8)))
        let ids = moov.children("trak").map { $0["tkhd"]?.number(at: 12, count: 4) }
        #expect(ids == [second])
        // All of the frames are key frames: then no table has to name them.
        #expect(moov["trak"]?["mdia"]?["minf"]?["stbl"]?.children("stss").isEmpty == true)
        #expect(moov["trak"]?["mdia"]?["minf"]?["stbl"]?.children("ctts").isEmpty == true)
    }

    /// A file of a few bytes could otherwise cost the server minutes.
    @Test(arguments: [0, 1])
    mutating func `are not played where one has more frames than makes sense`(surplus: Int) throws {
        movie.append([part(first, at: 0), part(second, at: 0)])
        // All frames last a tick and take no bytes.
        let header = box("tfhd", numbers(0x38, Int(first), 1, 0, 0))
        let runs = box("trun", numbers(0, 50_000)) + box("trun", numbers(0, 50_000 + surplus))
        let traf = box("traf", header + box("tfdt", numbers(0, 3_000)) + runs)
        let crowded = box("moof", box("mfhd", numbers(0, 2)) + traf) + box("mdat", [])
        let index = try #require(FragmentIndex(ByteSource(movie.bytes + crowded)))
        #expect(index.size == Int64(movie.bytes.count + (surplus > 0 ? 0 : crowded.count)))
    }
}
