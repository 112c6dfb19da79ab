import Codecs
import TestSupport
import Testing

@Suite struct `A picture of any size` {
    /// Of random samples.
    private func noise(_ width: Int, _ height: Int) throws -> Picture {
        var random = SeededGenerator(seed: UInt64(width * 5_000 + height))
        let pixels = (0..<(width * height * 4)).map { _ in UInt8.random(in: 0...255, using: &random) }
        return try Picture(bgra: pixels, width: width, height: height)
    }

    private func samples(_ picture: Picture) -> [[UInt8]] {
        (0..<picture.height).flatMap { y in
            (0..<picture.width).map { x in
                picture.sample(x: x, y: y).map { [$0.luma, $0.u, $0.v] } ?? []
            }
        }
    }

    @Test(arguments: [(1, 1), (5, 3), (1, 7), (64, 2), (33, 35)])
    func `is the same when it is turned all the way`(width: Int, height: Int) throws {
        let picture = try noise(width, height)
        let ways: [[Picture.Turn]] = [
            [.right, .right, .right, .right], [.left, .right], [.half, .half], [.half, .right, .right],
            [.none, .left, .half, .left],
        ]
        for turns in ways {
            var turned = picture
            for turn in turns { turned = try turned.turned(turn) }
            let isSame = samples(turned) == samples(picture)
            #expect(isSame && turned.width == width && turned.height == height, "\(turns)")
        }
    }

    @Test(arguments: [(1, 1), (5, 3), (64, 64)])
    func `has the same colour in any other size`(width: Int, height: Int) throws {
        let picture = try Picture(width: width, height: height, luma: 77, u: 99, v: 200)
        for (wide, high) in [(1, 1), (2, 1), (7, 5), (33, 31), (4_096, 1), (1, 4_096)] {
            let scaled = try picture.scaled(width: wide, height: high)
            #expect(scaled.width == wide && scaled.height == high)
            // The library may round down.
            let isSame = samples(scaled).allSatisfy { sample in
                zip(sample, [77, 99, 200]).allSatisfy { ($1 - 1...$1).contains(Int($0)) }
            }
            #expect(isSame, "\(wide)x\(high)")
        }
        for (wide, high) in [(0, 1), (1, 0), (4_097, 1), (1, -1)] {
            #expect(throws: CodecError.size(width: wide, height: high)) {
                try picture.scaled(width: wide, height: high)
            }
        }
        #expect(throws: CodecError.failed) { try Picture(bgra: [1, 2, 3], width: 1, height: 1) }
    }

    /// The library that draws is given pointers, and checks nothing.
    @Test(arguments: ChosenSeed.or(1...12))
    func `is drawn on where it is, and nowhere else`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let (width, height) = (Int.random(in: 1...40, using: &random), Int.random(in: 1...30, using: &random))
        for round in 0..<40 {
            var canvas = try Picture(width: width, height: height)
            let (x, y) = (Int.random(in: -50...50, using: &random), Int.random(in: -50...50, using: &random))
            let wide = Int.random(in: -5...90, using: &random)
            let high = Int.random(in: -5...90, using: &random)
            let other = try Picture(
                width: Int.random(in: 1...50, using: &random), height: Int.random(in: 1...50, using: &random),
                luma: 99)
            let color = DrawingColor(luma: 99, u: 1, v: 2)
            switch round % 3 {
            case 0: canvas.fill(x: x, y: y, width: wide, height: high, with: color)
            case 1: try canvas.cover(x: x, y: y, width: wide, height: high, with: other)
            default: try canvas.fit(x: x, y: y, width: wide, height: high, with: other)
            }
            // One sample of colour belongs to two by two pixels, so edges are even.
            let columns = (max(x, 0) / 2)..<max(min(x + wide, width) / 2, max(x, 0) / 2)
            let rows = (max(y, 0) / 2)..<max(min(y + high, height) / 2, max(y, 0) / 2)
            var (inside, drawn, outside) = (0, 0, 0)
            for row in 0..<height {
                for column in 0..<width {
                    let isDrawn = canvas.luma(x: column, y: row) != 16
                    if columns.contains(column / 2), rows.contains(row / 2) {
                        inside += 1
                        drawn += isDrawn ? 1 : 0
                    } else {
                        outside += isDrawn ? 1 : 0
                    }
                }
            }
            let isRight = outside == 0 && (round % 3 == 2 ? (drawn > 0) == (inside > 0) : drawn == inside)
            #expect(isRight, "round \(round): \(drawn) of \(inside), and \(outside) outside")
        }
    }
}

@Suite struct `A file of a still` {
    @Test(arguments: [true, false])
    func `is refused, or is as large as it says, wherever it is cut off`(isWebP: Bool) throws {
        var picture = try Picture(width: 48, height: 32, luma: 60)
        picture.fill(x: 8, y: 8, width: 20, height: 12, with: DrawingColor(rgb: 0xFF_80_00))
        let file = try isWebP ? WebPEncoder.encode(picture) : JPEGEncoder.encode(picture)
        let whole = try Picture(stillFile: file)
        #expect(whole.width == 48 && whole.height == 32)
        for count in stride(from: 0, to: file.count, by: 7) {
            if let part = try? Picture(stillFile: Array(file.prefix(count))) {
                #expect(part.width == 48 && part.height == 32, "\(count) bytes")
            }
        }
        for count in [0, 1, 3, 11] {
            #expect(throws: CodecError.failed) { try Picture(stillFile: Array(file.prefix(count))) }
        }
    }

    @Test(arguments: [true, false])
    func `is refused beyond its longest side`(isWebP: Bool) throws {
        for (side, isTaken) in [(Picture.maximumStillSide, true), (Picture.maximumStillSide + 1, false)] {
            for (width, height) in [(side, 2), (2, side)] {
                let picture = try Picture(width: width, height: height, luma: 60)
                let file = try isWebP ? WebPEncoder.encode(picture) : JPEGEncoder.encode(picture)
                let read = try? Picture(stillFile: file)
                #expect((read?.width == width && read?.height == height) == isTaken, "\(width)x\(height)")
            }
        }
    }

    @Test func `is none of another format`() {
        let files: [[UInt8]] = [
            Array("GIF89a".utf8) + [UInt8](repeating: 0, count: 40), Array("<svg/>".utf8),
            [0xFF, 0xD8, 0xFF], Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("WEBP".utf8),
            [0x89] + Array("PNG\r\n\u{1A}\n".utf8) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("IHDR".utf8),
        ]
        for file in files {
            #expect(throws: CodecError.failed) { try Picture(stillFile: file) }
        }
    }
}

@Suite struct `Limits of sound and placeholders` {
    @Test func `are those of the format`() throws {
        let decoder = try OpusDecoder()
        for frames in [120, 960, OpusDecoder.maximumFrames] {
            #expect(try decoder.conceal(frames: frames).count == frames * 2)
        }
        for frames in [-120, 0, 119, 121, 961, OpusDecoder.maximumFrames + 120] {
            #expect(throws: CodecError.failed) { try decoder.conceal(frames: frames) }
        }
        let picture = try Picture(width: 9, height: 3, luma: 200)
        #expect(try BlurHash.encode(picture, columns: 1, rows: 1).count == 6)
        #expect(try BlurHash.encode(picture, columns: 9, rows: 9).count == 6 + 80 * 2)
        for (columns, rows) in [(0, 3), (4, 0), (10, 3), (4, 10)] {
            #expect(throws: CodecError.failed) {
                try BlurHash.encode(picture, columns: columns, rows: rows)
            }
        }
    }
}
