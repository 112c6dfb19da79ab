import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Makes pictures whose width tells the frame; one frame cannot be decoded, and another one shows nothing.
private final class NumberedPictures: PictureDecoder {
    static let broken: UInt8 = 255
    static let hidden: UInt8 = 254
    private(set) var frames: [UInt8] = []

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        let number = frame.last ?? Self.broken
        frames.append(number)
        guard number != Self.broken else { throw .failed }
        guard number != Self.hidden else { return nil }
        return try Picture(width: 16 + 2 * Int(number), height: 16)
    }
}

/// The codecs for which decoders were asked for.
private final class AskedCodecs {
    var all: [VideoCodec] = []
}

@Suite struct `The pictures of a speaker` {
    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    /// How long packets are on their way.
    private static let delay = Duration.milliseconds(30)
    private let pictures: NumberedPictures
    private let asked: AskedCodecs
    private let input: VideoInput
    private var sequence: Int64 = 0

    init() {
        let (pictures, asked) = (NumberedPictures(), AskedCodecs())
        self.pictures = pictures
        self.asked = asked
        input = VideoInput { codec in
            asked.all.append(codec)
            guard codec != .av1 else { return nil }
            return pictures
        }
        input.allow(1_000)
    }

    private func at(_ milliseconds: Int) -> MonotonicTime { Self.start + .milliseconds(milliseconds) }

    /// Brings a picture in one packet, that was captured so many milliseconds after the start.
    /// - Returns: the delays of what was decoded.
    @discardableResult
    private mutating func bring(
        _ number: UInt8, at milliseconds: Int, isKeyFrame: Bool = false, codec: InputCodec = .vp8,
        epoch: UInt32 = 0, shift: UInt32 = 0, isCaptureKnown: Bool = true, orientation: UInt8? = nil
    ) -> [Int64] {
        defer { sequence += 1 }
        let now = at(milliseconds) + Self.delay
        let payload: [UInt8] =
            switch codec {
            case .av1: [0x10, 0x30, number]
            case .h264: [0x65, number]
            default: [0x10, number]
            }
        let packet = InputPacket(
            sequenceNumber: sequence, timestamp: UInt32(milliseconds * 90) &+ shift, marker: true,
            codec: codec, isEntryPoint: isKeyFrame, epoch: epoch, arrival: now,
            captured: isCaptureKnown ? at(milliseconds) : nil, orientation: orientation, payload: payload)
        return input.receive(packet, at: now)
    }

    /// The number of the picture that is to be shown.
    private func shown(at milliseconds: Int) -> Int? {
        let taken = input.takePicture(capturedBy: at(milliseconds))
        return taken.map { ($0.picture.width - 16) / 2 }
    }

    @Test mutating func `are the newest that were captured by then, each of them once`() {
        let delays = [bring(0, at: 0, isKeyFrame: true), bring(1, at: 33), bring(2, at: 66)]
        #expect(delays == [[30_000_000], [30_000_000], [30_000_000]])
        let found = [-1, 40, 40, 65, 66, 1_000].map { shown(at: $0) }
        #expect(found == [nil, 1, nil, nil, 2, nil])
    }

    @Test mutating func `tell when they were captured and when they came`() throws {
        bring(0, at: 0, isKeyFrame: true)
        bring(7, at: 33)
        let taken = try #require(input.takePicture(capturedBy: .distantFuture))
        #expect(taken.captured == at(33) && taken.arrival == at(63))
    }

    /// Whoever is not shown for a while must not fill the memory with pictures.
    @Test mutating func `are twelve at most, the newest ones`() {
        for number in 0..<20 as Range<UInt8> {
            bring(number, at: Int(number) * 33, isKeyFrame: number == 0)
        }
        let found = [7, 8, 19].map { shown(at: $0 * 33) }
        #expect(found == [nil, 8, 19])
        #expect(input.decodedFrames == 20)
    }

    @Test mutating func `stand still behind a frame that cannot be decoded, until a key frame comes`() {
        bring(0, at: 0, isKeyFrame: true)
        bring(1, at: 33)
        #expect(shown(at: 33) == 1)
        let broken = bring(NumberedPictures.broken, at: 66)
        let behind = bring(2, at: 99)
        // What is not decoded says nothing about delays.
        #expect(broken == [30_000_000] && behind.isEmpty)
        #expect(shown(at: 99) == nil)
        bring(4, at: 132, isKeyFrame: true)
        #expect(shown(at: 132) == 4)
        #expect(pictures.frames == [0, 1, NumberedPictures.broken, 4])
        #expect(input.failures == 1 && input.decodedFrames == 3)
        // The decoder's state after a failure is unknown.
        #expect(asked.all == [.vp8, .vp8])
    }

    @Test mutating func `are asked for twice a second where they cannot go on`() {
        bring(0, at: 0, isKeyFrame: true)
        #expect(!input.takeKeyFrameWish())
        bring(NumberedPictures.broken, at: 33)
        let first = [input.takeKeyFrameWish(), input.takeKeyFrameWish()]
        #expect(first == [true, false])
        bring(2, at: 532)
        #expect(!input.takeKeyFrameWish())
        bring(3, at: 533)
        #expect(input.takeKeyFrameWish())
        bring(4, at: 2_000, isKeyFrame: true)
        bring(5, at: 2_033)
        #expect(!input.takeKeyFrameWish())
    }

    @Test mutating func `are asked for once something comes, and not before`() {
        input.advance(to: at(5_000))
        #expect(!input.takeKeyFrameWish())
        bring(1, at: 5_000)
        #expect(input.takeKeyFrameWish())
        #expect(pictures.frames.isEmpty && asked.all.isEmpty)
    }

    @Test mutating func `are asked for where a packet has been missing for a quarter of a second`() {
        bring(0, at: 0, isKeyFrame: true)
        sequence += 1
        bring(2, at: 66)
        let wishes = [345, 346].map { milliseconds in
            input.advance(to: at(milliseconds))
            return input.takeKeyFrameWish()
        }
        #expect(wishes == [false, true])
        #expect(pictures.frames == [0])
    }

    @Test mutating func `of another codec come from another decoder`() {
        bring(0, at: 0, isKeyFrame: true)
        bring(1, at: 33)
        bring(2, at: 66, isKeyFrame: true, codec: .h264)
        bring(3, at: 99, isKeyFrame: true)
        #expect(asked.all == [.vp8, .h264, .vp8])
        #expect(pictures.frames == [0, 1, 2, 3])
    }

    /// To ask a publisher for key frames would change nothing.
    @Test mutating func `of a codec that nobody decodes are not there, and are not asked for`() {
        let delays = bring(0, at: 0, isKeyFrame: true, codec: .av1)
        #expect(delays.isEmpty && !input.hasPicture)
        #expect(!input.takeKeyFrameWish() && input.failures == 0)
        bring(1, at: 33, isKeyFrame: true)
        #expect(shown(at: 33) == 1)
    }

    @Test mutating func `stay turned until another turn is told, be it by a frame that shows nothing`() {
        var sizes: [[Int]] = []
        for (index, orientation) in ([nil, 1, nil, 0, nil] as [UInt8?]).enumerated() {
            let isHidden = index == 1
            bring(
                isHidden ? NumberedPictures.hidden : 4, at: index * 33, isKeyFrame: index == 0,
                orientation: orientation)
            guard let taken = input.takePicture(capturedBy: .distantFuture) else { continue }
            sizes.append([taken.picture.width, taken.picture.height])
        }
        #expect(sizes == [[24, 16], [16, 24], [24, 16], [24, 16]])
    }

    @Test mutating func `of another source have times of their own`() {
        bring(0, at: 0, isKeyFrame: true)
        bring(1, at: 1_000, isKeyFrame: true, epoch: 1, shift: 3_000_000_000, isCaptureKnown: false)
        // Until its sender tells when it captured them, they are of when they came.
        let found = [1_029, 1_030].map { shown(at: $0) }
        #expect(found == [0, 1])
    }

    @Test mutating func `are forgotten with a camera that was switched off, and go on with it`() {
        bring(0, at: 0, isKeyFrame: true)
        bring(1, at: 33)
        input.forgetPictures()
        #expect(!input.hasPicture && shown(at: 100) == nil)
        bring(2, at: 66)
        #expect(shown(at: 100) == 2)
    }

    @Test mutating func `are forgotten although they still wait to be decoded, and others need them`() {
        input.allow(0)
        bring(0, at: 0, isKeyFrame: true)
        bring(1, at: 33)
        input.forgetPictures()
        input.allow(10)
        #expect(pictures.frames == [0, 1] && shown(at: 100) == nil)
        bring(2, at: 66)
        #expect(shown(at: 100) == 2)
    }
}
