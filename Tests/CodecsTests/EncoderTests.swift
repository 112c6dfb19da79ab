import Codecs
import TestSupport
import Testing
import Wire

/// The types of the units behind start codes (ITU-T H.264 table 7-1).
private func unitTypes(_ bytes: [UInt8]) -> [UInt8] {
    bytes.indices.dropFirst(3).filter { bytes[($0 - 3)..<$0].elementsEqual([0, 0, 1]) }
        .map { bytes[$0] & 0x1F }
}

@Suite struct `Encoding H.264` {
    private let encoder: H264Encoder

    init() throws {
        encoder = try H264Encoder(width: 320, height: 180, framesPerSecond: 30, bitrate: 600_000)
    }

    private func picture(_ luma: UInt8) throws -> Picture {
        var picture = try Picture(width: 320, height: 180, luma: luma, u: 90, v: 200)
        picture.fill(x: 160, y: 0, width: 160, height: 180, with: DrawingColor(luma: 180, u: 150, v: 80))
        return picture
    }

    /// Segments of HLS begin where the caller wants it, and nowhere else.
    @Test func `makes key frames where they are asked for, whatever is shown`() throws {
        for index in 0..<90 {
            // It changes all at once in between.
            let frame = try #require(
                try encoder.encode(picture(index < 55 ? 60 : 200), isKeyFrame: index.isMultiple(of: 40)))
            let types = unitTypes(frame.bytes)
            #expect(frame.isKeyFrame == index.isMultiple(of: 40), "picture \(index)")
            #expect(types.contains(frame.isKeyFrame ? 5 : 1) && !types.contains(frame.isKeyFrame ? 1 : 5))
        }
    }

    @Test func `has its parameter sets in front of the frames alone`() throws {
        let sets = unitTypes(encoder.header).filter { $0 == 7 || $0 == 8 }
        #expect(sets == [7, 8])
        for index in 0..<3 {
            let frame = try #require(try encoder.encode(picture(60), isKeyFrame: index != 1))
            let types = unitTypes(frame.bytes)
            #expect(!types.isEmpty && !types.contains(7) && !types.contains(8))
        }
    }

    @Test func `gives pictures that decode to the same colours, each at once`() throws {
        let decoder = try VideoDecoder(.h264)
        for index in 0..<5 {
            let frame = try #require(try encoder.encode(picture(60), isKeyFrame: index == 0))
            let bytes = index == 0 ? encoder.header + frame.bytes : frame.bytes
            let decoded = try #require(try decoder.decode(bytes))
            let left = try #require(decoded.sample(x: 60, y: 90))
            let right = try #require(decoded.sample(x: 260, y: 90))
            #expect(abs(Int(left.luma) - 60) < 8 && abs(Int(left.v) - 200) < 8)
            #expect(abs(Int(right.luma) - 180) < 8 && abs(Int(right.u) - 150) < 8)
            #expect(decoded.color == .video)
        }
    }

    @Test(arguments: [(0, 0), (14, 16), (16, 14), (17, 16), (16, 17), (4_098, 16), (16, 4_098), (-16, 16)])
    func `is refused in a size that it cannot have`(width: Int, height: Int) {
        #expect(throws: CodecError.size(width: width, height: height)) {
            try H264Encoder(width: width, height: height, framesPerSecond: 30, bitrate: 600_000)
        }
    }

    @Test(arguments: [(320, 182), (322, 180), (180, 320)])
    func `refuses a picture of another size, and goes on`(width: Int, height: Int) throws {
        let other = try Picture(width: width, height: height)
        #expect(throws: CodecError.size(width: width, height: height)) {
            try encoder.encode(other, isKeyFrame: true)
        }
        let frame = try encoder.encode(picture(60), isKeyFrame: true)
        #expect(frame?.isKeyFrame == true)
    }

    @Test(arguments: [(0, 0), (-5, -5), (1, 1)])
    func `takes rates that make no sense for the least that do`(framesPerSecond: Int, bitrate: Int) throws {
        let encoder = try H264Encoder(
            width: 16, height: 16, framesPerSecond: framesPerSecond, bitrate: bitrate)
        let frame = try encoder.encode(Picture(width: 16, height: 16), isKeyFrame: true)
        #expect(frame?.isKeyFrame == true)
    }
}

@Suite struct `Encoding AAC` {
    @Test(arguments: [0, 2, 2_046, 2_050]) func `takes blocks of its length alone`(count: Int) throws {
        let encoder = try AACEncoder(bitrate: 128_000)
        #expect(throws: CodecError.failed) { try encoder.encode([Float](repeating: 0, count: count)) }
    }

    @Test func `keeps a tone, and says how it is to be decoded`() throws {
        let encoder = try AACEncoder(bitrate: 128_000)
        // AAC-LC at 48 kHz in stereo (ISO/IEC 14496-3 §1.6.2.1).
        #expect(encoder.configuration.starts(with: [0x11, 0x90]))
        let decoder = try AACDecoder(configuration: encoder.configuration)
        var sound: [Float] = []
        for block in 0..<50 {
            let samples = OpusCoding.tone(1_000, from: block * 1_024, frames: 1_024)
            if let frame = try encoder.encode(samples) { sound += try decoder.decode(frame) }
        }
        // At most two frames are on their way.
        #expect((48 * 2_048...50 * 2_048).contains(sound.count))
        let steady = Array(sound[(10 * 2_048)...])
        #expect(OpusCoding.strength(1_000, in: steady) > 0.3)
        #expect(OpusCoding.strength(1_730, in: steady) < 0.02)
    }

    @Test func `keeps left and right apart`() throws {
        let encoder = try AACEncoder(bitrate: 128_000)
        let decoder = try AACDecoder(configuration: encoder.configuration)
        var sound: [Float] = []
        for block in 0..<20 {
            let samples = OpusCoding.tone(1_000, from: block * 1_024, frames: 1_024).enumerated()
                .map { $0.offset.isMultiple(of: 2) ? $0.element : 0 }
            if let frame = try encoder.encode(samples) { sound += try decoder.decode(frame) }
        }
        let steady = sound.dropFirst(5 * 2_048).enumerated()
        let left = steady.filter { $0.offset.isMultiple(of: 2) }.map { abs($0.element) }.max() ?? 0
        let right = steady.filter { !$0.offset.isMultiple(of: 2) }.map { abs($0.element) }.max() ?? 1
        #expect(left > 0.3 && right < 0.1)
    }
}

@Suite struct `A frame for a decoder` {
    @Test(arguments: [VideoCodec.vp8, .vp9, .h264, .av1, .hevc])
    func `comes back with the time stamp that it was given`(codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        var stamps: [Int64] = []
        let given: [Int64] = [-7, 0, 1 << 40]
        for (frame, timestamp) in zip(try SampleVideo.frames(codec, count: 3), given) {
            if let shown = try decoder.decode(frame, timestamp: timestamp) { stamps.append(shown.timestamp) }
        }
        #expect(stamps == given)
    }

    @Test(arguments: [VideoCodec.vp8, .vp9, .h264, .av1, .hevc])
    func `is refused where it is longer than any is`(codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        let frame = try #require(try SampleVideo.frames(codec).first)
        let rest = [UInt8](repeating: 0, count: VideoDecoder.maximumFrameSize + 1 - frame.count)
        #expect(throws: CodecError.failed) { try decoder.decode(frame + rest) }
    }
}
