import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `A WebM file` {
    private static let vp8: [[UInt8]] = [[0x10, 1, 2, 3], [0x11, 4], [0x11, 5, 6]]
    private static let opus: [[UInt8]] = [[0xF8, 1], [0xF8, 2, 3]]

    /// An element; sizes of eight bytes, or unknown ones.
    private static func element(_ id: [UInt8], _ body: [UInt8], hasSize: Bool = true) -> [UInt8] {
        var size: [UInt8] = [0x01]
        for shift in stride(from: 48, through: 0, by: -8) {
            size.append(hasSize ? UInt8(truncatingIfNeeded: body.count >> shift) : 0xFF)
        }
        return id + size + body
    }

    private static func track(_ number: UInt8, _ codec: String, _ more: [UInt8] = []) -> [UInt8] {
        element([0xAE], element([0xD7], [number]) + element([0x86], Array(codec.utf8)) + more)
    }

    private static func block(_ track: UInt8, at time: UInt8, _ bytes: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        [0x80 | track, 0, time, flags] + bytes
    }

    /// - Parameter isLive: segments and clusters do not say how long they are.
    private static func file(isLive: Bool = false, tracks more: [UInt8] = [], block extra: [UInt8] = [])
        -> [UInt8]
    {
        let tracks = element(
            [0x16, 0x54, 0xAE, 0x6B],
            track(1, "V_VP8", more) + track(2, "A_OPUS"))
        let cluster = element(
            [0x1F, 0x43, 0xB6, 0x75],
            element([0xE7], [0x03, 0xE8])
                + element([0xA3], block(1, at: 0, vp8[0])) + element([0xA3], block(2, at: 0, opus[0]))
                + element([0xA0], element([0xA1], block(1, at: 40, vp8[1])))
                + element([0xA3], block(2, at: 20, opus[1])) + element([0xA3], block(1, at: 80, vp8[2]))
                + extra, hasSize: !isLive)
        return element([0x1A, 0x45, 0xDF, 0xA3], [])
            + element(
                [0x18, 0x53, 0x80, 0x67], element([0xEC], [0, 0]) + tracks + cluster, hasSize: !isLive)
    }

    @Test(arguments: [false, true]) func `gives its frames of VP8 and Opus`(isLive: Bool) throws {
        let file = try WebMFile(parsing: Self.file(isLive: isLive))
        #expect(file.video.map(\.bytes) == Self.vp8)
        #expect(file.audio.map(\.bytes) == Self.opus)
        #expect(file.video.map(\.time) == [1_000_000_000, 1_040_000_000, 1_080_000_000])
        let video = try RecordedVideo(parsing: Self.file(isLive: isLive))
        #expect(video.frameInterval == 40_000_000)
        #expect(video.frames.map(\.isKeyFrame) == [true, false, false])
        #expect(try RecordedAudio(parsing: Self.file()).packets == Self.opus)
    }

    @Test func `may say how long a frame lasts`() throws {
        let interval = Self.element([0x23, 0xE3, 0x83], [0x01, 0xFC, 0xA0, 0x55])
        #expect(try RecordedVideo(parsing: Self.file(tracks: interval)).frameInterval == 33_333_333)
    }

    @Test func `is refused if it cannot be played`() {
        let laced = Self.element([0xA3], Self.block(1, at: 90, [0], flags: 2))
        #expect(throws: RecordedVideo.Problem.webM(.laced)) {
            try RecordedVideo(parsing: Self.file(block: laced))
        }
        let encoded = Self.element([0x6D, 0x80], [])
        #expect(throws: RecordedAudio.Problem.webM(.encoded)) {
            try RecordedAudio(parsing: Self.file(tracks: encoded))
        }
        #expect(throws: RecordedVideo.Problem.notVP8) {
            try RecordedVideo(parsing: Self.element([0x1A, 0x45, 0xDF, 0xA3], []))
        }
    }

    @Test func `does no harm when broken`() {
        let file = Self.file()
        for length in 0..<file.count { _ = try? WebMFile(parsing: Array(file.prefix(length))) }
        var random = SeededGenerator(seed: 77)
        for _ in 0..<3_000 {
            var spoilt = file
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                spoilt[Int.random(in: 4..<spoilt.count, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            _ = try? RecordedVideo(parsing: spoilt)
            _ = try? RecordedAudio(parsing: spoilt)
        }
    }
}
