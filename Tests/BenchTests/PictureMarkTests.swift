import Base
import Codecs
import Restream
import TestSupport
import Testing
import Wire

@testable import sfu_bench

@Suite struct `A mark in a picture` {
    private static let times: [Int64] = [0, 1_795_232_407_375_000_000, 1_800_000_000_000_100_000, .max / 2]

    private func picture(_ time: Int64) throws -> Picture {
        var picture = try Picture(width: MarkedFilm.width, height: MarkedFilm.height, luma: 120)
        PictureMark(nanoseconds: time).draw(on: &picture)
        return picture
    }

    @Test(arguments: times) func `is read as it was drawn`(time: Int64) throws {
        let mark = try #require(PictureMark(in: try picture(time)))
        #expect(mark == PictureMark(nanoseconds: time))
        #expect((0..<100_000).contains(mark.age(at: time) + time % 100_000))
    }

    @Test(arguments: [(1_280, 720), (320, 180), (426, 240), (960, 540)])
    func `outlives scaling`(width: Int, height: Int) throws {
        let time = Self.times[1]
        let scaled = try picture(time).scaled(width: width, height: height)
        #expect(PictureMark(in: scaled) == PictureMark(nanoseconds: time))
    }

    @Test func `outlives an encoder`() throws {
        var media = MediaOptions()
        media.bitrate = 300_000
        let film = try MarkedFilm(media, keyFrameInterval: 2, from: .zero)
        let decoder = try VideoDecoder(.h264)
        var (read, sounds) = (0, 0)
        while read < 60 {
            let time = film.due.nanoseconds
            guard let sample = try film.next({ $0.nanoseconds }) else { continue }
            guard sample.kind != .sound else {
                sounds += 1
                continue
            }
            let bytes = sample.kind == .keyFrame ? film.format.pictureHeader + sample.bytes : sample.bytes
            let picture = try #require(try decoder.decode(bytes))
            #expect(PictureMark(in: picture) == PictureMark(nanoseconds: time), "picture \(read)")
            read += 1
        }
        #expect(film.keyFrames == 1 && film.frames == 60)
        // Two seconds are 93 frames of sound, of which the encoder keeps one.
        #expect((90...94).contains(sounds))
    }

    @Test func `is not seen where there is none`() throws {
        #expect(PictureMark(in: try Picture(width: 640, height: 360, luma: 16)) == nil)
        #expect(PictureMark(in: try Picture(width: 2, height: 2)) == nil)
        #expect(PictureMark(in: try DemoScene.city.picture(at: 0.3)) == nil)
    }

    @Test func `knows how old it is, also across the day on which its numbers begin again`() {
        let day = Int64(1) << 40 * 100_000
        let mark = PictureMark(nanoseconds: 3 * day - 500_000_000)
        #expect(mark.age(at: 3 * day + 500_000_000) == 1_000_000_000)
        #expect(mark.age(at: 3 * day - 600_000_000) == -100_000_000)
    }
}

@Suite struct `A reader of fragments` {
    private static func box(_ type: String, _ parts: [UInt8]...) -> [UInt8] {
        let body = parts.flatMap(\.self)
        return number(body.count + 8) + Array(type.utf8) + body
    }

    private static func number(_ value: Int, bytes: Int = 4) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    private static let parameters: [UInt8] = [0x67, 0x42, 0xC0, 0x1E, 0x99]
    private static let pictureParameters: [UInt8] = [0x68, 0xCE]

    private static let initialization: [UInt8] = {
        var record: [UInt8] = [1, 0x42, 0xC0, 0x1E, 0xFF, 0xE1]
        record += number(parameters.count, bytes: 2) + parameters + [1]
        record += number(pictureParameters.count, bytes: 2) + pictureParameters
        let entry = box("avc1", zeros(78), box("avcC", record))
        let table = box("stbl", box("stsd", zeros(4), number(1), entry))
        let media = box("mdia", box("mdhd", zeros(12), number(1_000), zeros(8)), box("minf", table))
        let track = box("trak", box("tkhd", zeros(12), number(2), zeros(8)), media)
        return box("ftyp", zeros(8)) + box("moov", track)
    }()

    /// Two pictures of track 2, half a second after each other, the first one a key frame.
    private static let media: [UInt8] = {
        let pictures: [[UInt8]] = [number(3) + [0x65, 1, 2], number(2) + [0x41, 3]]
        func fragment(offset: Int) -> [UInt8] {
            var samples = [UInt8]()
            for (index, picture) in pictures.enumerated() {
                samples += number(500) + number(picture.count) + number(index == 0 ? 0 : 0x1_0000)
            }
            let run = box("trun", [0, 0, 0x07, 0x01], number(2), number(offset), samples)
            let header = box("tfhd", [0, 2, 0, 0], number(2))
            return box("moof", box("traf", header, box("tfdt", zeros(4), number(9_000)), run))
        }
        return fragment(offset: fragment(offset: 0).count + 8) + box("mdat", pictures.flatMap(\.self))
    }()

    @Test func `finds the pictures, and when they are shown`() throws {
        let reader = try FragmentReader(initialization: Self.initialization)
        let frames = try reader.frames(of: Self.media)
        let start: [UInt8] = [0, 0, 0, 1]
        #expect(
            frames == [
                FragmentReader.Frame(
                    bytes: start + Self.parameters + start + Self.pictureParameters + start + [0x65, 1, 2],
                    time: 0),
                FragmentReader.Frame(bytes: start + [0x41, 3], time: 500_000_000),
            ])
    }

    @Test func `refuses what has no pictures of H.264`() {
        #expect(throws: FragmentReader.Failure.malformed) { try FragmentReader(initialization: []) }
        #expect(throws: FragmentReader.Failure.noPictures) {
            try FragmentReader(initialization: Self.box("moov", Self.box("trak", Self.zeros(8))))
        }
    }

    @Test func `reads no further than there is`() throws {
        let reader = try FragmentReader(initialization: Self.initialization)
        for length in Self.media.indices {
            // A part of a box is none; where the pictures go on behind the end, it says so.
            let count = (try? reader.frames(of: Array(Self.media[..<length])))?.count ?? 0
            #expect(count <= 1)
        }
        for length in Self.initialization.indices {
            _ = try? FragmentReader(initialization: Array(Self.initialization[..<length]))
        }
    }

    @Test(arguments: UInt64(0)..<20) func `survives what is broken`(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        for _ in 0..<100 {
            var (first, second) = (Self.initialization, Self.media)
            for _ in 0..<3 {
                first[Int.random(in: first.indices, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
                second[Int.random(in: second.indices, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
            }
            let reader = try? FragmentReader(initialization: first)
            _ = try? reader?.frames(of: second)
            _ = try? FragmentReader(initialization: Self.initialization).frames(of: second)
        }
    }
}
