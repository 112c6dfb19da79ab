import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import sfu_bench

/// Builds fragmented MP4 of one track.
private enum Fragments {
    struct Sample {
        /// NAL units with lengths of four bytes.
        var bytes: [UInt8]
        var duration: Int
        var isKey = false
        /// From decoding to presentation.
        var offset = 0
    }

    static let track = 2

    static func box(_ type: String, _ parts: [UInt8]...) -> [UInt8] {
        let body = parts.flatMap(\.self)
        return number(body.count + 8) + Array(type.utf8) + body
    }

    static func number(_ value: Int, bytes: Int = 4) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    static func initialization(_ record: [UInt8], timescale: Int = 1_000, defaults: [UInt8] = []) -> [UInt8] {
        let entry = box("avc1", zeros(78), box("avcC", record))
        let table = box("stbl", box("stsd", zeros(4), number(1), entry))
        let media = box("mdia", box("mdhd", zeros(12), number(timescale), zeros(8)), box("minf", table))
        let header = box("tkhd", zeros(12), number(track), zeros(8))
        return box("moov", box("trak", header, media), box("mvex", defaults))
    }

    /// - Parameter time: the contents of a `tfdt`.
    static func fragment(_ samples: [Sample], time: [UInt8], of track: Int = Fragments.track) -> [UInt8] {
        func moof(_ offset: Int) -> [UInt8] {
            var fields: [UInt8] = []
            for sample in samples {
                fields += number(sample.duration) + number(sample.bytes.count)
                fields += number(sample.isKey ? 0 : 0x1_0000) + number(sample.offset)
            }
            let run = box("trun", [1, 0, 0x0F, 0x01], number(samples.count), number(offset), fields)
            let header = box("tfhd", [0, 2, 0, 0], number(track))
            return box("moof", box("traf", header, box("tfdt", time), run))
        }
        return moof(moof(0).count + 8) + box("mdat", samples.flatMap(\.bytes))
    }

    /// A `tfdt` of 32 bits.
    static func short(_ ticks: Int) -> [UInt8] { zeros(4) + number(ticks) }
    /// A `tfdt` of 64 bits.
    static func long(_ ticks: Int) -> [UInt8] { [1, 0, 0, 0] + number(ticks, bytes: 8) }

    /// A configuration whose parameter sets nobody reads.
    static let record: [UInt8] = [1, 0x42, 0xC0, 0x1E, 0xFF, 0xE1, 0, 2, 0x67, 0x42, 1, 0, 1, 0x68]
}

@Suite struct `Fragments of a film` {
    private static let picture = Fragments.number(2) + [0x41, 7]

    private func reader(timescale: Int = 1_000, defaults: [UInt8] = []) throws -> FragmentReader {
        try FragmentReader(
            initialization: Fragments.initialization(
                Fragments.record, timescale: timescale, defaults: defaults))
    }

    private func sample(_ duration: Int, offset: Int = 0) -> Fragments.Sample {
        .init(bytes: Self.picture, duration: duration, offset: offset)
    }

    private func times(_ fragments: [[UInt8]], timescale: Int = 1_000) throws -> [Int64] {
        try reader(timescale: timescale).frames(of: fragments.flatMap(\.self)).map(\.time)
    }

    @Test func `are shown from the first of them on`() throws {
        let two = [
            Fragments.fragment([sample(500), sample(250)], time: Fragments.short(9_000)),
            Fragments.fragment([sample(500)], time: Fragments.short(9_750)),
        ]
        #expect(try times(two) == [0, 500_000_000, 750_000_000])
        let gap = [
            Fragments.fragment([sample(500)], time: Fragments.long(1 << 40)),
            Fragments.fragment([sample(500)], time: Fragments.long(1 << 40 + 3_000)),
        ]
        #expect(try times(gap) == [0, 3_000_000_000])
    }

    @Test func `may lie before the first of them`() throws {
        let reversed = [
            Fragments.fragment([sample(500)], time: Fragments.short(9_000)),
            Fragments.fragment([sample(500)], time: Fragments.short(8_000)),
        ]
        #expect(try times(reversed) == [0, -1_000_000_000])
    }

    @Test(arguments: [86_401_000, 1 << 32, 1 << 62, .max, -1] as [Int])
    func `are refused where they are days apart`(ticks: Int) {
        // The last of them lies before the first fragment.
        let far = [
            Fragments.fragment([sample(500)], time: Fragments.long(ticks == -1 ? 1 << 62 : 0)),
            Fragments.fragment([sample(500, offset: 0x7FFF_FFFF)], time: Fragments.long(ticks)),
        ]
        #expect(throws: FragmentReader.Failure.malformed) { try times(far) }
    }

    @Test func `are shown in another order than they are decoded`() throws {
        let pictures = [sample(40, offset: 40), sample(40, offset: 80), sample(40, offset: -40)]
        let one = [Fragments.fragment(pictures, time: Fragments.short(0))]
        #expect(try times(one) == [40_000_000, 120_000_000, 40_000_000])
    }

    @Test(
        arguments: [
            // 29.97 pictures a second.
            (90_000, 3_003, [0, 33_366_667, 66_733_333]),
            (30_000, 1_001, [0, 33_366_667, 66_733_333]),
            (12_800, 512, [0, 40_000_000, 80_000_000]),
            (1_000_000_000, 1, [0, 1, 2]),
        ] as [(Int, Int, [Int64])])
    func `have times to the nearest nanosecond`(timescale: Int, duration: Int, expected: [Int64]) throws {
        let one = [Fragments.fragment([sample(duration), sample(duration), sample(duration)], time: [])]
        #expect(try times(one, timescale: timescale) == expected)
    }

    @Test func `of other tracks are left out`() throws {
        let mixed = [
            Fragments.fragment([sample(500)], time: Fragments.short(1_000), of: 1),
            Fragments.fragment([sample(500)], time: Fragments.short(9_000)),
            Fragments.fragment([sample(500)], time: Fragments.short(9_000), of: 3),
        ]
        #expect(try times(mixed) == [0])
        #expect(try times([]) == [])
    }

    @Test func `have the durations and sizes of the track where they name none`() throws {
        let defaults = Fragments.box(
            "trex", Fragments.zeros(4), Fragments.number(Fragments.track), Fragments.number(1),
            Fragments.number(200), Fragments.number(Self.picture.count), Fragments.number(0x1_0000))
        let other = Fragments.box(
            "trex", Fragments.zeros(4), Fragments.number(9), Fragments.number(1), Fragments.number(7),
            Fragments.number(1), Fragments.number(0))
        func moof(_ offset: Int) -> [UInt8] {
            let run = Fragments.box(
                "trun", [0, 0, 0, 0x01], Fragments.number(3), Fragments.number(offset))
            let header = Fragments.box("tfhd", [0, 2, 0, 0], Fragments.number(Fragments.track))
            return Fragments.box("moof", Fragments.box("traf", header, run))
        }
        let pictures = Self.picture + Self.picture + Self.picture
        let media = moof(moof(0).count + 8) + Fragments.box("mdat", pictures)
        let frames = try reader(defaults: other + defaults).frames(of: media)
        #expect(frames.map(\.time) == [0, 200_000_000, 400_000_000])
        #expect(frames.allSatisfy { $0.bytes == [0, 0, 0, 1, 0x41, 7] })
        // Without them, samples are empty and all of one time.
        let bare = try reader().frames(of: media)
        #expect(bare == [FragmentReader.Frame](repeating: .init(bytes: Self.sets, time: 0), count: 3))
    }

    /// The parameter sets of `Fragments.record`, which go before a picture at which decoders can begin.
    private static let sets: [UInt8] = [0, 0, 0, 1, 0x67, 0x42, 0, 0, 0, 1, 0x68]

    @Test(arguments: [3, 1, 255] as [UInt8])
    func `are refused where a picture's lengths do not add up`(length: UInt8) {
        let wrong = Fragments.Sample(bytes: [0, 0, 0, length, 0x41, 7], duration: 1)
        let media = [Fragments.fragment([sample(1), wrong], time: Fragments.short(0))]
        #expect(throws: FragmentReader.Failure.malformed) { try times(media) }
    }
}

@Suite struct `A watcher of marks` {
    /// When the film was made, in nanoseconds since 1970.
    private static let made: Int64 = 1_795_232_407_375_000_000
    private static let millisecond: Int64 = 1_000_000

    /// A film of pictures 40 ms apart.
    /// - Parameter marks: when each was made, in milliseconds from `made`; nil for one without a mark.
    private func film(_ marks: [Int64?]) throws -> (initialization: [UInt8], media: [UInt8]) {
        let (width, height) = (MarkedFilm.width, MarkedFilm.height)
        let encoder = try H264Encoder(width: width, height: height, framesPerSecond: 25, bitrate: 500_000)
        let header = encoder.header
        let configuration = AnnexBPicture(parsing: header.span).configurationRecord
        let record = try #require(configuration)
        var samples: [Fragments.Sample] = []
        for (index, mark) in marks.enumerated() {
            var picture = try Picture(width: width, height: height, luma: 120)
            if let mark {
                PictureMark(nanoseconds: Self.made + mark * Self.millisecond).draw(on: &picture)
            }
            let encoded = try encoder.encode(picture, isKeyFrame: index == 0)?.bytes
            let bytes = try #require(encoded)
            samples.append(
                .init(bytes: AnnexBPicture(parsing: bytes.span).units, duration: 40, isKey: index == 0))
        }
        return (
            Fragments.initialization(record),
            Fragments.fragment(samples, time: Fragments.short(5_000))
        )
    }

    /// A buffer that has shown this many milliseconds.
    private func shown(_ milliseconds: Int64) -> PlaybackBuffer {
        var buffer = PlaybackBuffer()
        buffer.append(60_000 * Self.millisecond, at: .zero)
        buffer.advance(to: MonotonicTime(nanoseconds: milliseconds * Self.millisecond))
        return buffer
    }

    private func wall(_ milliseconds: Int64) -> Int64 { Self.made + milliseconds * Self.millisecond }

    private func ages(_ milliseconds: Int64...) -> MarkTally {
        var tally = MarkTally()
        for value in milliseconds { tally.latency.add(value * Self.millisecond) }
        return tally
    }

    @Test func `measures pictures when they are due, not when it looks`() throws {
        let given = try film([0, 40, 80])
        let watcher = MarkWatcher()
        watcher.begin(given.initialization)
        watcher.take(given.media, at: 1_000 * Self.millisecond)
        watcher.show(shown(999), at: wall(500))
        #expect(watcher.tally == MarkTally())
        // The first was due 40 ms ago, and the second is now.
        watcher.show(shown(1_040), at: wall(540))
        #expect(watcher.tally == ages(500, 500))
        watcher.show(shown(1_040), at: wall(700))
        #expect(watcher.tally == ages(500, 500))
        let taken = watcher.takeTally()
        #expect(taken == ages(500, 500) && watcher.tally == MarkTally())
        // The third is late, as playback stood still.
        watcher.show(shown(1_090), at: wall(700))
        #expect(watcher.tally == ages(610))
    }

    @Test func `counts a picture once that is shown again, and one without a mark apart`() throws {
        let given = try film([0, 0, nil, 120])
        let watcher = MarkWatcher()
        watcher.begin(given.initialization)
        watcher.take(given.media, at: 0)
        watcher.show(shown(10_000), at: wall(10_300))
        var expected = ages(300, 300)
        expected.unmarked = 1
        #expect(watcher.tally == expected)
    }

    @Test(arguments: [(-1, 0), (0, 1), (600_000, 1), (600_001, 0)] as [(Int64, UInt64)])
    func `leaves out what another clock has marked`(age: Int64, count: UInt64) throws {
        let given = try film([0])
        let watcher = MarkWatcher()
        watcher.begin(given.initialization)
        watcher.take(given.media, at: 0)
        watcher.show(shown(0), at: wall(age))
        #expect(watcher.tally.latency.count == count && watcher.tally.foreign == 1 - Int(count))
    }

    @Test func `goes on behind what cannot be read`() throws {
        let given = try film([0])
        let watcher = MarkWatcher()
        // Without a beginning there is nothing to do.
        watcher.take(given.media, at: 0)
        #expect(watcher.tally == MarkTally())
        watcher.begin(given.initialization)
        watcher.take(Array(given.media.dropLast()), at: 0)
        #expect(watcher.tally.unreadable == 1)
        watcher.begin([1, 2, 3])
        #expect(watcher.tally.unreadable == 2)
        // The reader of before is not used for what another initialization segment describes.
        watcher.take(given.media, at: 0)
        watcher.begin(given.initialization)
        watcher.take(given.media, at: 40 * Self.millisecond)
        watcher.show(shown(40), at: wall(100))
        var expected = ages(100)
        expected.unreadable = 2
        #expect(watcher.tally == expected)
    }
}
