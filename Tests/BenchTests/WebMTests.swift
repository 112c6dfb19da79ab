import Foundation
import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `A WebM file` {
    fileprivate static let vp8: [[UInt8]] = [[0x10, 1, 2, 3], [0x11, 4], [0x11, 5, 6]]
    fileprivate static let opus: [[UInt8]] = [[0xF8, 1], [0xF8, 2, 3]]

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
    fileprivate static func file(
        isLive: Bool = false, tracks more: [UInt8] = [], block extra: [UInt8] = [],
        codecs: (video: String, audio: String) = ("V_VP8", "A_OPUS")
    ) -> [UInt8] {
        let tracks = element(
            [0x16, 0x54, 0xAE, 0x6B],
            track(1, codecs.video, more) + track(2, codecs.audio))
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

    /// RFC 8794 §7.4: null octets end a string before its element does.
    @Test func `may pad the names of its codecs with zeros`() throws {
        let file = try WebMFile(parsing: Self.file(codecs: ("V_VP8\0\0\0", "A_OPUS\0")))
        #expect(file.hasVP8 && file.video.map(\.bytes) == Self.vp8)
        #expect(file.hasOpus && file.audio.map(\.bytes) == Self.opus)
    }

    @Test func `has nothing of tracks with other codecs`() throws {
        let file = try WebMFile(parsing: Self.file(codecs: ("V_VP80", "A_VORBIS")))
        #expect(!file.hasVP8 && !file.hasOpus && file.video.isEmpty && file.audio.isEmpty)
    }

    /// Times are relative to the cluster, and may precede it.
    @Test func `may have blocks from before the time of their cluster`() throws {
        let early = Self.element([0xA3], [0x81, 0xFF, 0xF6, 0] + [0x11, 7])
        let file = try WebMFile(parsing: Self.file(block: early))
        #expect(file.video.map(\.time).last == 990_000_000)
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

@Suite struct `The files that publishers play` {
    /// Writes a file for the time of the test.
    private func withFile(_ bytes: [UInt8], _ body: (String) throws -> Void) throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("bench-\(UUID().uuidString)")
        try Data(bytes).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        try body(url.path)
    }

    /// An Ogg file with this packet of Opus.
    private func ogg(_ packet: [UInt8]) -> [UInt8] {
        [Array("OpusHead".utf8), Array("OpusTags".utf8), packet].flatMap { packet -> [UInt8] in
            Array("OggS".utf8) + [UInt8](repeating: 0, count: 22) + [1, UInt8(packet.count)] + packet
        }
    }

    @Test func `are none without options`() throws {
        let recordings = try Recordings(MediaOptions())
        #expect(recordings.video == nil && recordings.audio == nil && recordings.ofStream.isEmpty)
    }

    @Test func `have the sound of a film, unless the user chose another`() throws {
        try withFile(`A WebM file`.file()) { film in
            try withFile(ogg([0xF8, 9])) { sound in
                var media = MediaOptions()
                media.videoFile = film
                let own = try Recordings(media)
                #expect(own.video?.frames.map(\.bytes) == `A WebM file`.vp8)
                #expect(own.audio?.packets == `A WebM file`.opus)
                media.audioFile = sound
                let chosen = try Recordings(media)
                #expect(chosen.video?.frames.count == 3 && chosen.audio?.packets == [[0xF8, 9]])
            }
        }
    }

    @Test func `may be a film without sound that can be played`() throws {
        try withFile(`A WebM file`.file(codecs: ("V_VP8", "A_VORBIS"))) { film in
            var media = MediaOptions()
            media.videoFile = film
            let recordings = try Recordings(media)
            #expect(recordings.video != nil && recordings.audio == nil)
            // As the user's own choice it would be a mistake.
            media.audioFile = film
            #expect(throws: UsageError("\(film) contains no audio")) { _ = try Recordings(media) }
        }
    }

    @Test func `are refused by their names, with the reason`() throws {
        try withFile([UInt8](repeating: 0, count: 40)) { path in
            var media = MediaOptions()
            media.videoFile = path
            #expect(throws: UsageError("\(path) is neither an IVF nor a WebM file")) {
                _ = try Recordings(media)
            }
            (media.videoFile, media.audioFile) = (nil, path)
            #expect(throws: UsageError("\(path) is neither an Ogg nor a WebM file")) {
                _ = try Recordings(media)
            }
            (media.videoFile, media.audioFile) = (path + "-gone", nil)
            #expect(throws: UsageError("\(path)-gone: cannot be read")) { _ = try Recordings(media) }
            (media.videoFile, media.audioFile) = (nil, path + "-gone")
            #expect(throws: UsageError("\(path)-gone: cannot be read")) { _ = try Recordings(media) }
        }
    }
}
