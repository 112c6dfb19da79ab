import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// The decoders that were asked for, and what each of them got.
private final class Decoded {
    var codecs: [VideoCodec] = []
    var frames: [[UInt8]] = []
}

/// Shows a picture for every frame, and notes the frame's last byte as one of its own.
private final class NotingDecoder: ReorderingDecoder {
    private let decoded: Decoded
    private let index: Int

    init(_ decoded: Decoded) {
        self.decoded = decoded
        index = decoded.frames.count
        decoded.frames.append([])
    }

    func decode(
        _ frame: [UInt8], timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)? {
        decoded.frames[index].append(frame.last ?? 0)
        return (try Picture(width: 64, height: 64), timestamp)
    }
}

@Suite struct `A picture converter whose publisher changes the codec` {
    private let decoded: Decoded
    private let converter: PictureConverter
    private var count: UInt8 = 0

    init() {
        let decoded = Decoded()
        self.decoded = decoded
        converter = PictureConverter(seed: 3) { codec in
            decoded.codecs.append(codec)
            guard codec != .av1 else { return nil }
            return NotingDecoder(decoded)
        }
    }

    /// Brings a picture in one packet, whose last byte counts from 1.
    /// - Returns: whether a picture was made of it.
    private mutating func bring(_ codec: InputCodec, isKeyFrame: Bool = false) -> Bool {
        count += 1
        let now = MonotonicTime(nanoseconds: 9_000_000_000) + .milliseconds(33 * Int(count))
        let payload: [UInt8] =
            switch codec {
            case .av1: [0x10, 0x30, count]
            case .h264: [isKeyFrame ? 0x65 : 0x41, count]
            default: [0x10, count]
            }
        let packet = InputPacket(
            sequenceNumber: Int64(count), timestamp: UInt32(count) * 3_000, marker: true, codec: codec,
            isEntryPoint: isKeyFrame, arrival: now, captured: now, payload: payload)
        return !converter.receive(packet, at: now).isEmpty
    }

    @Test mutating func `has a decoder of the new one from its first key frame on`() {
        let made = [
            bring(.vp8, isKeyFrame: true), bring(.vp8), bring(.h264), bring(.h264, isKeyFrame: true),
            bring(.h264), bring(.h264, isKeyFrame: true), bring(.vp8, isKeyFrame: true),
        ]
        #expect(made == [true, true, false, true, true, true, true])
        #expect(decoded.codecs == [.vp8, .h264, .vp8])
        #expect(decoded.frames == [[1, 2], [4, 5, 6], [7]])
    }

    @Test mutating func `gives up where nobody can decode the new one`() {
        _ = bring(.vp8, isKeyFrame: true)
        #expect(!converter.isHopeless)
        let made = bring(.av1, isKeyFrame: true)
        #expect(!made && converter.isHopeless)
        #expect(decoded.frames == [[1]])
    }
}
