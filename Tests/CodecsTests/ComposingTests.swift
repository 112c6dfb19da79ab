import Foundation
import Testing
import Wire

@testable import Codecs

@Suite struct EncodingVP8 {
    private func encoder(width: Int = 320, height: Int = 180) throws -> VP8Encoder {
        try VP8Encoder(.init(width: width, height: height, framesPerSecond: 30, bitrate: 500_000))
    }

    @Test func `gives pictures that decode to the same colours`() throws {
        let encoder = try encoder()
        let decoder = try VideoDecoder(.vp8)
        var picture = try Picture(width: 320, height: 180, luma: 60, u: 90, v: 200)
        picture.fill(x: 160, y: 0, width: 160, height: 180, with: DrawingColor(luma: 180, u: 150, v: 80))
        for index in 0..<5 {
            let frame = try #require(
                try encoder.encode(picture, timestamp: Int64(index) * 3_000, isKeyFrame: index == 0))
            #expect(frame.isKeyFrame == (index == 0))
            let decoded = try #require(try decoder.decode(frame.bytes))
            let left = try #require(decoded.sample(x: 60, y: 90))
            let right = try #require(decoded.sample(x: 260, y: 90))
            #expect(abs(Int(left.luma) - 60) < 8 && abs(Int(left.v) - 200) < 8)
            #expect(abs(Int(right.luma) - 180) < 8 && abs(Int(right.u) - 150) < 8)
        }
    }

    @Test func `makes a key frame whenever it is asked for, and only then`() throws {
        let encoder = try encoder()
        let picture = try Picture(width: 320, height: 180)
        for index in 0..<100 {
            let frame = try encoder.encode(
                picture, timestamp: Int64(index) * 3_000, isKeyFrame: index.isMultiple(of: 40))
            #expect(frame?.isKeyFrame == index.isMultiple(of: 40))
        }
    }

    @Test func `refuses sizes that are not its own`() throws {
        let encoder = try encoder()
        let picture = try Picture(width: 640, height: 360)
        #expect(throws: CodecError.self) {
            try encoder.encode(picture, timestamp: 0, isKeyFrame: true)
        }
        #expect(throws: CodecError.self) {
            try VP8Encoder(.init(width: 0, height: 9_000, framesPerSecond: 30, bitrate: 1))
        }
    }
}

@Suite struct OpusCoding {
    static func tone(_ frequency: Double, from start: Int, frames: Int = 960) -> [Float] {
        (0..<frames).flatMap { index -> [Float] in
            let value = Float(0.4 * sin(2 * .pi * frequency * Double(start + index) / 48_000))
            return [value, value]
        }
    }

    /// Loudness of a tone among others, 0 to 1.
    static func strength(_ frequency: Double, in samples: [Float]) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        let count = samples.count / 2
        for index in 0..<count {
            let angle = 2 * .pi * frequency * Double(index) / 48_000
            real += Double(samples[index * 2]) * cos(angle)
            imaginary += Double(samples[index * 2]) * sin(angle)
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(count, 1))
    }

    @Test func `keeps a tone`() throws {
        let encoder = try OpusEncoder(bitrate: 96_000)
        let decoder = try OpusDecoder()
        var sound: [Float] = []
        for block in 0..<20 {
            sound += try decoder.decode(encoder.encode(Self.tone(1_000, from: block * 960)))
        }
        #expect(sound.count == 20 * 960 * 2)
        let steady = Array(sound[(10 * 960 * 2)...])
        #expect(Self.strength(1_000, in: steady) > 0.3)
        #expect(Self.strength(1_730, in: steady) < 0.02)
    }

    @Test func `goes on through a lost packet`() throws {
        let encoder = try OpusEncoder(bitrate: 96_000)
        let decoder = try OpusDecoder()
        let packets = try (0..<20).map { try encoder.encode(Self.tone(440, from: $0 * 960)) }
        for packet in packets[..<10] { _ = try decoder.decode(packet) }
        let recovered = try decoder.recover(from: packets[11], frames: 960)
        #expect(recovered.count == 960 * 2)
        #expect(Self.strength(440, in: recovered) > 0.1)
        #expect(try decoder.conceal(frames: 480).count == 480 * 2)
    }

    @Test func `refuses what makes no sense`() throws {
        let decoder = try OpusDecoder()
        #expect(throws: CodecError.self) { try decoder.decode([]) }
        #expect(throws: CodecError.self) { try decoder.decode([0xFF]) }
        #expect(throws: CodecError.self) { try decoder.conceal(frames: 0) }
        #expect(throws: CodecError.self) { try OpusEncoder(bitrate: 96_000).encode([0, 1]) }
    }
}

@Suite struct Drawing {
    @Test func `covers a rectangle with the middle of another picture`() throws {
        var canvas = try Picture(width: 200, height: 100)
        var camera = try Picture(width: 160, height: 160, luma: 50)
        camera.fill(x: 0, y: 60, width: 160, height: 40, with: DrawingColor(luma: 200, u: 128, v: 128))
        try canvas.cover(x: 100, y: 0, width: 100, height: 24, with: camera)
        #expect(canvas.luma(x: 150, y: 12) == 200)
        #expect(canvas.luma(x: 50, y: 12) == 16)
        #expect(canvas.luma(x: 150, y: 50) == 16)
    }

    @Test func `fits a picture whole`() throws {
        var canvas = try Picture(width: 200, height: 100)
        try canvas.fit(x: 0, y: 0, width: 200, height: 100, with: Picture(width: 50, height: 100, luma: 99))
        #expect(canvas.luma(x: 100, y: 50) == 99)
        #expect(canvas.luma(x: 100, y: 2) == 99)
        #expect(canvas.luma(x: 60, y: 50) == 16)
    }

    @Test func `leaves out what lies outside`() throws {
        var canvas = try Picture(width: 64, height: 64)
        canvas.fill(x: -20, y: 50, width: 400, height: 400, with: .white)
        canvas.shade(x: 60, y: -60, width: 100, height: 100)
        let mask = try TextMask("Ann", size: 40, maximumWidth: 400)
        for place in [-30, -1, 0, 40, 63, 64, 500] {
            canvas.draw(mask, x: place, y: place)
            canvas.draw(mask, x: -place, y: place)
        }
        #expect(canvas.luma(x: 2, y: 56) == 235)
    }

    @Test func `of text is as wide as there is room`() throws {
        let short = try TextMask("Ann", size: 24, maximumWidth: 400)
        let long = try TextMask(String(repeating: "Wanda ", count: 100), size: 24, maximumWidth: 200)
        #expect(short.width < 100)
        #expect(long.width <= 200)
        #expect(short.coverage.contains { $0 > 200 })
        #expect(short.coverage.count == short.width * short.height)
        // A name in another script is drawn, or at least does no harm.
        _ = try? TextMask("日本語 \u{202E}abc \n\t", size: 24, maximumWidth: 200)
        #expect(throws: CodecError.self) { try TextMask("", size: 24, maximumWidth: 200) }
    }

    @Test func `makes colours that libyuv would make`() throws {
        let red = DrawingColor(rgb: 0xFF_00_00)
        let picture = try Picture(bgra: [0, 0, 255, 255], width: 1, height: 1)
        let sample = try #require(picture.sample(x: 0, y: 0))
        #expect(abs(Int(sample.luma) - Int(red.luma)) < 3 && abs(Int(sample.v) - Int(red.v)) < 3)
    }
}
