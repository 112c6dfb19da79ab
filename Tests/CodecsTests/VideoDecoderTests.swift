import Codecs
import TestSupport
import Testing
import Wire

@Suite struct `A video decoder` {
    static let codecs: [VideoCodec] = [.vp8, .vp9, .h264, .av1, .hevc]

    @Test(arguments: codecs) func `shows the colours that were sent`(_ codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        let frame = try #require(try SampleVideo.frames(codec).first)
        let picture = try #require(try decoder.decode(frame))
        #expect(picture.width == 640)
        #expect(picture.height == 360)
        expectQuarters(picture)
    }

    @Test(arguments: codecs) func `goes on with the frames that follow`(_ codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        let pictures = try SampleVideo.frames(codec, count: 5).compactMap { try decoder.decode($0) }
        #expect(pictures.count == 5)
        for picture in pictures { expectQuarters(picture) }
    }

    @Test(arguments: [VideoCodec.vp8, .vp9]) func `takes odd sizes`(_ codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        let frame = try #require(try SampleVideo.frames(codec, width: 322, height: 198, crop: 1).first)
        let picture = try #require(try decoder.decode(frame))
        #expect((picture.width, picture.height) == (321, 197))
        expectQuarters(picture)
    }

    /// The header alone names the size: nothing else of such a frame has to be there.
    @Test func `refuses a VP8 frame that is too large before making room`() throws {
        var frame = try #require(try SampleVideo.frames(.vp8).first)
        frame.replaceSubrange(6..<10, with: [0xFF, 0x3F, 0xFF, 0x3F])
        let decoder = try VideoDecoder(.vp8)
        #expect(throws: CodecError.tooLarge) { try decoder.decode(frame) }
    }

    @Test(arguments: codecs) func `refuses nothing and nonsense`(_ codec: VideoCodec) throws {
        let decoder = try VideoDecoder(codec)
        #expect(throws: CodecError.failed) { try decoder.decode([]) }
        var random = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            let size = Int.random(in: 1...2_000, using: &random)
            _ = try? decoder.decode((0..<size).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
    }

    /// The libraries must survive it here; in the field, the process around them may die.
    @Test(arguments: codecs) func `survives frames with broken bytes`(_ codec: VideoCodec) throws {
        let frames = try SampleVideo.frames(codec, width: 160, height: 96, count: 3)
        var random = SeededGenerator(seed: 2)
        for _ in 0..<150 {
            let decoder = try VideoDecoder(codec)
            for var frame in frames {
                for _ in 0..<Int.random(in: 0...6, using: &random) {
                    let place = Int.random(in: frame.indices, using: &random)
                    frame[place] = UInt8.random(in: 0...255, using: &random)
                }
                if Bool.random(using: &random) {
                    frame.removeLast(Int.random(in: 0..<frame.count, using: &random))
                }
                let picture = try? decoder.decode(frame)
                #expect((picture?.width ?? 1) <= VideoDecoder.maximumSide)
            }
        }
    }
}

/// Whether the middle of each quarter has its colour.
func expectQuarters(_ picture: Picture, sourceLocation: SourceLocation = #_sourceLocation) {
    let places = [(1, 1), (3, 1), (1, 3), (3, 3)]
    for ((x, y), expected) in zip(places, SampleVideo.quarters) {
        let found = picture.sample(x: picture.width * x / 4, y: picture.height * y / 4)
        guard let found else {
            Issue.record("no sample", sourceLocation: sourceLocation)
            continue
        }
        let difference = [
            Int(found.luma) - Int(expected.luma), Int(found.u) - Int(expected.u),
            Int(found.v) - Int(expected.v),
        ].map(abs).max()
        #expect((difference ?? 255) < 12, "\(found) is not \(expected)", sourceLocation: sourceLocation)
    }
}
