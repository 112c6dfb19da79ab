import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Counts what it decodes.
private final class CountingDecoder: PictureDecoder {
    private let decoder: VideoDecoder
    private(set) var count = 0

    init() throws { decoder = try VideoDecoder(.vp8) }

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        count += 1
        return try decoder.decode(frame)
    }
}

@Suite struct VideoInputs {
    private let now = MonotonicTime(nanoseconds: 5_000_000_000)
    private let decoder: CountingDecoder
    private let input: VideoInput
    private var speaker: SyntheticSpeaker

    init() throws {
        let decoder = try CountingDecoder()
        self.decoder = decoder
        input = VideoInput { _ in decoder }
        speaker = try SyntheticSpeaker(1, color: 0xC81E1E, frequency: 440)
    }

    private mutating func send(_ frames: Int) throws {
        for _ in 0..<frames {
            for packet in try speaker.frame(at: now) { _ = input.receive(packet, at: now) }
        }
    }

    @Test mutating func `decode what comes in a heap bit by bit, and show only where it ends`() throws {
        try send(60)
        #expect(decoder.count <= 4)
        for _ in 0..<7 {
            let before = decoder.count
            #expect(!input.hasPicture)
            #expect(input.takePicture(capturedBy: now + .seconds(1)) == nil)
            input.allow(8)
            #expect(decoder.count - before == min(8, 60 - before))
        }
        #expect(decoder.count == 60)
        #expect(input.hasPicture)
        #expect(input.takePicture(capturedBy: now + .seconds(1)) != nil)
        #expect(!input.takeKeyFrameWish())
    }

    @Test mutating func `leave out what a key frame makes needless`() throws {
        try send(40)
        speaker.requestKeyFrame()
        try send(3)
        input.allow(8)
        #expect(decoder.count <= 4 + 3)
        #expect(input.hasPicture)
    }

    @Test mutating func `ask for a key frame when far too much waits`() throws {
        try send(700)
        input.allow(8)
        #expect(!input.hasPicture)
        try send(1)
        #expect(input.takeKeyFrameWish())
        speaker.requestKeyFrame()
        try send(1)
        input.allow(8)
        #expect(input.hasPicture)
    }
}
