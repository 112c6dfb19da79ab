import Base
import Codecs
import Restream
import Testing

@testable import sfu_bench

@Suite struct `A marked film` {
    private static let start = MonotonicTime(nanoseconds: 7_000_000_000)

    private func film(
        _ framesPerSecond: Int, keyFrameInterval: Double, audioBitrate: Int = 0
    ) throws -> MarkedFilm {
        var media = MediaOptions()
        media.framesPerSecond = framesPerSecond
        media.audioBitrate = audioBitrate
        media.bitrate = 300_000
        return try MarkedFilm(media, keyFrameInterval: keyFrameInterval, from: Self.start)
    }

    /// Makes this many pictures of a film without sound.
    private func make(_ count: Int, of film: MarkedFilm) throws {
        for _ in 0..<count { _ = try film.next { $0.nanoseconds } }
    }

    @Test func `has its pictures at equal distances, which do not add up to a drift`() throws {
        let silent = try film(30, keyFrameInterval: 2)
        var dues: [Int64] = []
        for _ in 0...30 {
            dues.append(silent.due.nanoseconds(since: Self.start))
            try make(1, of: silent)
        }
        let expected = (0...30).map { Int64($0) * 1_000_000_000 / 30 }
        #expect(dues == expected)
        #expect(dues.last == 1_000_000_000)
    }

    /// 0.58 s of 50 pictures a second are 28.99 pictures in floating point.
    @Test func `has its key frames as often as was said`() throws {
        let often = try film(50, keyFrameInterval: 0.58)
        try make(29, of: often)
        #expect(often.keyFrames == 1)
        try make(1, of: often)
        #expect(often.keyFrames == 2)
        let all = try film(50, keyFrameInterval: 0.001)
        try make(3, of: all)
        #expect(all.keyFrames == 3 && all.frames == 3)
    }

    @Test func `has pictures and sound in the order of their times`() throws {
        let whole = try film(25, keyFrameInterval: 2, audioBitrate: 48_000)
        var (pictures, sounds): ([Int64], [Int64]) = ([], [])
        var number: UInt64 = 0
        var last = whole.due
        for _ in 0..<100 {
            #expect(whole.due >= last)
            last = whole.due
            guard let sample = try whole.next({ $0.nanoseconds }) else { continue }
            number += 1
            #expect(sample.number == number)
            let time = sample.time.nanoseconds(since: Self.start)
            if sample.kind == .sound { sounds.append(time) } else { pictures.append(time) }
            // Nothing is made before it has happened.
            #expect(sample.time <= last)
        }
        // A frame of sound is 1,024 samples of 48 kHz.
        let expected = (
            pictures: pictures.indices.map { Int64($0) * 40_000_000 },
            sounds: sounds.indices.map { Int64($0) * 1_024 * 1_000_000_000 / 48_000 }
        )
        #expect(pictures == expected.pictures && sounds == expected.sounds)
        #expect(pictures.count > 30 && sounds.count > 60)
    }
}

@Suite struct `The light and sound of a demo` {
    @Test func `is clipped where it is too bright or dark`() {
        #expect(DemoLight(1.5, -1, 0.5).rgb == 0xFF007F)
        #expect(DemoLight(0, 1, 1).rgb == 0x00FFFF)
        let half = DemoLight(0, 0.5, 1).mixed(with: DemoLight(1, 0.5, 0), 0.25)
        #expect(half == DemoLight(0.25, 0.5, 0.75))
    }

    @Test func `is silence without notes`() {
        let silence = DemoSound(chord: [], melody: []).samples(seconds: 1)
        #expect(silence.count == 96_000 && silence.allSatisfy { $0 == 0 })
    }

    /// Seven notes do not divide the loop: the rest of a sample is silent.
    @Test(arguments: [1, 3, 4, 7])
    func `is a melody whose notes begin softly, one after the other`(notes: Int) {
        let melody = (0..<notes).map { 220 + Double($0) * 55 }
        let samples = DemoSound(chord: [], melody: melody).samples(seconds: 1)
        let distance = DemoSound.rate / notes
        for note in 0..<notes {
            #expect(samples[2 * note * distance] == 0, "\(note)")
            let loudest = samples[(2 * note * distance)..<(2 * note * distance + 9_600)].map(abs).max() ?? 0
            #expect(loudest > 0.03 && loudest <= 0.07)
        }
        // Both sides are alike.
        #expect(stride(from: 0, to: samples.count, by: 2).allSatisfy { samples[$0] == samples[$0 + 1] })
    }

    @Test func `moves a chord from side to side, and comes round`() {
        let samples = DemoSound(chord: [110], melody: []).samples(seconds: 2)
        func energy(_ side: Int, _ frames: Range<Int>) -> Float {
            frames.reduce(0) { $0 + samples[2 * $1 + side] * samples[2 * $1 + side] }
        }
        // The balance swings once in the loop: first to the left, then to the right.
        #expect(energy(0, 20_000..<28_000) > energy(1, 20_000..<28_000))
        #expect(energy(0, 68_000..<76_000) < energy(1, 68_000..<76_000))
    }
}
