import Codecs
import Foundation
import TestSupport
import Testing
import Wire

@Suite struct `A picture` {
    private func sample() throws -> Picture {
        try #require(try VideoDecoder(.vp8).decode(SampleVideo.frames(.vp8)[0]))
    }

    @Test func `keeps its proportions and its colours when it gets smaller`() throws {
        let small = try sample().scaled(toWidth: 360)
        #expect((small.width, small.height) == (360, 203))
        expectQuarters(small)
    }

    @Test func `is not made larger`() throws {
        #expect(try sample().scaled(toWidth: 2_000).width == 640)
    }

    @Test(arguments: [
        (Picture.Turn.right, 360, 640, 2), (.half, 640, 360, 3), (.left, 360, 640, 1), (.none, 640, 360, 0),
    ])
    func `turns`(_ turn: Picture.Turn, width: Int, height: Int, topLeft: Int) throws {
        let turned = try sample().turned(turn)
        #expect((turned.width, turned.height) == (width, height))
        let found = try #require(turned.sample(x: 20, y: 20))
        let expected = SampleVideo.quarters[topLeft]
        #expect(abs(Int(found.luma) - Int(expected.luma)) < 8)
        #expect(abs(Int(found.u) - Int(expected.u)) < 8)
    }

    @Test func `says the same colours in another colour space`() throws {
        let red = try Picture(
            width: 64, height: 64, luma: 54, u: 99, v: 255, color: .init(matrix: .bt709, isFullRange: true))
        let found = try #require(try red.asVideo().sample(x: 32, y: 32))
        #expect(abs(Int(found.luma) - 81) < 4)
        #expect(abs(Int(found.u) - 90) < 4)
        #expect(abs(Int(found.v) - 240) < 4)
    }

    @Test(arguments: [(0, 10), (10, 0), (5_000, 10), (-1, 4)])
    func `is refused without a size`(_ width: Int, _ height: Int) {
        #expect(throws: CodecError.size(width: width, height: height)) {
            try Picture(width: width, height: height)
        }
    }

    @Test(arguments: [true, false]) func `is a file that others read`(_ isWebP: Bool) throws {
        let picture = try sample().scaled(toWidth: 360)
        let file = try isWebP ? WebPEncoder.encode(picture) : JPEGEncoder.encode(picture)
        #expect(file.count < 20_000)
        let decoded = try SampleVideo.ffmpeg(
            ["-f", isWebP ? "webp_pipe" : "mjpeg", "-i", "-", "-f", "rawvideo", "-pix_fmt", "bgra", "-"],
            input: file)
        try #require(decoded.count == 360 * 203 * 4)
        // White, and red without blue.
        let white = (152 * 360 + 270) * 4
        #expect(decoded[white..<(white + 3)].allSatisfy { $0 > 240 })
        let red = (50 * 360 + 90) * 4
        #expect(decoded[red] < 20 && decoded[red + 1] < 20 && decoded[red + 2] > 235)
    }

    @Test func `of one pixel has files too`() throws {
        let picture = try Picture(width: 1, height: 1, luma: 128)
        #expect(try !WebPEncoder.encode(picture).isEmpty)
        #expect(try !JPEGEncoder.encode(picture).isEmpty)
        #expect(try BlurHash.encode(picture).count == 28)
    }
}

@Suite struct `A BlurHash` {
    @Test func `of one colour has next to no contrast`() throws {
        let hash = try BlurHash.encode(Picture(width: 100, height: 60, luma: 126))
        #expect(hash.count == 28)
        // 4×3 terms, the second lowest contrast of 83, and #808080.
        #expect(hash.hasPrefix("L1Eyb["))
    }

    @Test func `tells where the colours are`() throws {
        let picture = try #require(try VideoDecoder(.vp8).decode(SampleVideo.frames(.vp8)[0]))
        let hash = Array(try BlurHash.encode(picture))
        #expect(hash.count == 28)
        #expect(hash[0] == "L")
        let decoded = try decode(hash, x: 0.25, y: 0.25)
        #expect(decoded.red > decoded.green + 0.3 && decoded.red > decoded.blue + 0.3)
        let white = try decode(hash, x: 0.75, y: 0.75)
        #expect(white.red > 0.5 && white.green > 0.5 && white.blue > 0.5)
        let blue = try decode(hash, x: 0.25, y: 0.75)
        #expect(blue.blue > blue.red + 0.3)
    }

    /// The light at a place between 0 and 1, decoded as the algorithm's description says.
    private func decode(
        _ hash: [Character], x: Double, y: Double
    ) throws -> (red: Double, green: Double, blue: Double) {
        let digits = Array(
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~")
        func number(_ range: Range<Int>) throws -> Int {
            try range.reduce(0) { try $0 * 83 + #require(digits.firstIndex(of: hash[$1])) }
        }
        func linear(_ byte: Int) -> Double { pow(Double(byte) / 255, 2.2) }
        let maximum = Double(try number(1..<2) + 1) / 166
        let mean = try number(2..<6)
        var light = (
            red: linear(mean >> 16), green: linear(mean >> 8 & 255), blue: linear(mean & 255)
        )
        for index in 1..<12 {
            let value = try number((4 + index * 2)..<(6 + index * 2))
            let basis = cos(.pi * Double(index % 4) * x) * cos(.pi * Double(index / 4) * y)
            func part(_ step: Int) -> Double {
                let root = (Double(step) - 9) / 9
                return (root < 0 ? -root * root : root * root) * maximum * basis
            }
            light.red += part(value / 361)
            light.green += part(value / 19 % 19)
            light.blue += part(value % 19)
        }
        return light
    }
}
