import Base
import TestSupport
import Testing
import Wire

@testable import Transcoder

@Suite struct `Attempts at passing pictures on` {
    private var attempts = PassAttempts()
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)

    /// Whether an attempt fails now, and the next one may be made so many seconds later and no earlier.
    private mutating func fails(_ seconds: Int, because reason: PassedTimeline.Ending? = nil) -> Bool {
        attempts.fail(at: now, because: reason)
        let mayTryEarly = attempts.mayTry(at: now + .seconds(seconds) - .milliseconds(1))
        now = now + .seconds(seconds)
        return !mayTryEarly && attempts.mayTry(at: now)
    }

    private mutating func send(_ count: Int) {
        let packet = InputPacket(
            sequenceNumber: 0, timestamp: 0, marker: true, codec: .h264, isEntryPoint: false, arrival: now,
            payload: [UInt8](repeating: 0, count: count))
        attempts.note(packet, at: now)
    }

    @Test mutating func `are made at once, and then after pauses that grow up to half an hour`() {
        #expect(attempts.mayTry(at: now))
        for seconds in [30, 120, 480, 1_800, 1_800] {
            let isRight = fails(seconds)
            #expect(isRight, "\(seconds)")
        }
    }

    /// Encoders hardly ever change their settings.
    @Test mutating func `wait for ten minutes at least where key frames did not come`() {
        let first = fails(600, because: .segment)
        let second = fails(1_800, because: .segment)
        #expect(first && second)
    }

    @Test(arguments: [(299, 120), (300, 30)])
    mutating func `are forgiven failures from before five minutes that went well`(lasted: Int, wait: Int) {
        let first = fails(30)
        attempts.begin(at: now)
        now = now + .seconds(lasted)
        let second = fails(wait)
        // What went well counts once.
        now = now + .seconds(1_000)
        let third = fails(wait * 4)
        #expect(first && second && third)
    }

    @Test(arguments: [0, 1])
    mutating func `are not made where pictures have more bits than viewers`(surplus: Int) {
        send(1_000_000)
        now = now + .seconds(2)
        // Nobody knows yet.
        #expect(attempts.mayTry(at: now) && attempts.bitrate == nil)
        send(1_000_000 + surplus)
        #expect(attempts.bitrate == 8_000_000 + 4 * surplus)
        #expect(attempts.mayTry(at: now) == (surplus == 0))
        now = now + .seconds(2)
        send(1)
        #expect(attempts.bitrate == 4 && attempts.mayTry(at: now))
    }
}

@Suite struct `The size of a rendition` {
    @Test(arguments: PackagedRendition.allCases)
    func `keeps proportions, is even, and is no larger than it may be`(rendition: PackagedRendition) {
        let (long, short) = rendition == .low ? (640, 360) : (1_280, 720)
        var random = SeededGenerator(seed: 9)
        for _ in 0..<2_000 {
            let picture = VideoResolution(
                width: .random(in: 1...4_096, using: &random), height: .random(in: 1...4_096, using: &random))
            let size = rendition.size(of: picture)
            let sides = [size.width, size.height]
            let isRight = sides.allSatisfy { $0 >= 16 && $0 % 2 == 0 }
            #expect(isRight, "\(picture): \(size)")
            #expect(max(size.width, size.height) <= long, "\(picture)")
            #expect(min(size.width, size.height) <= short, "\(picture)")
            #expect(size.width <= max(picture.width, 16) && size.height <= max(picture.height, 16))
            #expect(rendition.size(of: size) == size, "\(picture)")
            guard sides.allSatisfy({ $0 > 16 }) else { continue }
            let difference = size.width * picture.height - size.height * picture.width
            #expect(abs(difference) <= 2 * (picture.width + picture.height), "\(picture): \(size)")
        }
    }
}

@Suite struct `The name of a codec` {
    private func name(_ codec: VideoCodec, _ header: [UInt8]) -> String {
        CodecName.text(
            of: Muxer.Video(
                codec: codec, resolution: VideoResolution(width: 640, height: 360), header: header))
    }

    @Test(
        arguments: [
            (.h264, [0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x0D, 1], "avc1.42C00D"), (.h264, [], "avc1.42E01F"),
            (.h264, [0, 0, 0, 1, 0x67, 0x42, 0xC0], "avc1.42E01F"), (.hevc, [], "hvc1.1.6.L93.B0"),
            (.hevc, [0, 0, 0, 1, 0x42, 1], "hvc1.1.6.L93.B0"), (.av1, [], "av01.0.08M.08"),
            (.av1, [0x0A, 0], "av01.0.08M.08"), (.vp9, [], "vp09.00.30.08"),
            // A picture parameter set first, in which there is what looks like the head of a sequence's.
            (
                .h264, [0, 0, 0, 1, 0x68, 0xCE, 1, 0x67, 0xAA, 0xBB, 0xCC, 0, 0, 0, 1, 0x67, 0x64, 0, 0x1F],
                "avc1.64001F"
            ),
        ] as [(VideoCodec, [UInt8], String)])
    func `is a usual one where the header tells none`(codec: VideoCodec, header: [UInt8], text: String) {
        #expect(name(codec, header) == text)
    }

    /// What a publisher sends must not get into a playlist.
    @Test(arguments: [VideoCodec.h264, .hevc, .vp9, .av1])
    func `is one that playlists can have, whatever the header says`(codec: VideoCodec) throws {
        var random = SeededGenerator(seed: 12)
        for _ in 0..<500 {
            var header: [UInt8] =
                switch codec {
                case .h264: [0, 0, 0, 1, 0x67]
                case .hevc: [0, 0, 0, 1, 0x42, 1]
                default: [0x0A, 20]
                }
            for _ in 0..<Int.random(in: 0...30, using: &random) {
                header.append(UInt8.random(in: 0...255, using: &random))
            }
            let report = PackagingReport.began(
                PackagingReport.Beginning(
                    initialization: [], codecs: name(codec, header),
                    resolution: VideoResolution(width: 640, height: 360), framesPerSecond: nil))
            #expect(try PackagingReport(report.bytes) == report)
        }
    }
}
