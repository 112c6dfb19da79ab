import Base
import Codecs
import Foundation
import TestSupport
import Testing
import Transcoder
import Wire

@Suite(.serialized, .timeLimit(.minutes(10))) struct `A pause picture` {
    private func file(_ format: String, width: Int = 640, height: Int = 360) throws -> [UInt8] {
        let picture = try #require(
            try VideoDecoder(.vp8).decode(SampleVideo.frames(.vp8, width: width, height: height)[0]))
        switch format {
        case "jpeg": return try JPEGEncoder.encode(picture)
        case "webp": return try WebPEncoder.encode(picture)
        default:
            return try SampleVideo.ffmpeg(
                [
                    "-f", "mjpeg", "-i", "-", "-f", "image2", "-c:v", "png", "-frames:v", "1", "-update", "1",
                    "pipe:1",
                ],
                input: JPEGEncoder.encode(picture))
        }
    }

    @Test(arguments: ["jpeg", "webp", "png"]) func `is read from a file`(_ format: String) throws {
        let picture = try Picture(stillFile: file(format))
        #expect((picture.width, picture.height) == (640, 360))
        let red = try #require(picture.sample(x: 100, y: 100))
        #expect(abs(Int(red.luma) - 81) < 8 && abs(Int(red.v) - 240) < 8)
    }

    @Test(arguments: ["jpeg", "webp", "png"]) func `is refused when it is broken or too large`(
        _ format: String
    ) throws {
        let good = try file(format)
        #expect(throws: CodecError.self) { try Picture(stillFile: []) }
        #expect(throws: CodecError.self) { try Picture(stillFile: Array(good.prefix(20))) }
        var random = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            var broken = good
            for _ in 0...4 {
                broken[Int.random(in: 8..<min(broken.count, 400), using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            let picture = try? Picture(stillFile: broken)
            #expect((picture?.width ?? 1) <= Picture.maximumSide)
        }
    }

    @Test func `loses its edges when it is blurred`() throws {
        let sharp = try Picture(stillFile: file("jpeg"))
        let soft = try sharp.blurred()
        func step(_ picture: Picture) throws -> Int {
            let left = try #require(picture.luma(x: 312, y: 300))
            let right = try #require(picture.luma(x: 328, y: 300))
            return abs(Int(left) - Int(right))
        }
        #expect(try step(sharp) > 150)
        #expect(try step(soft) < 130)
        #expect((soft.width, soft.height) == (640, 360))
    }

    @Test func `is not larger than two thousand pixels`() throws {
        #expect(throws: CodecError.self) { try Picture(stillFile: file("png", width: 2_050, height: 16)) }
        #expect(try Picture(stillFile: file("png", width: 2_048, height: 16)).width == 2_048)
    }

    /// A progressive JPEG of 16 by 16 grey pixels: one scan, and for each of so many coefficients 14, each of which is
    /// as ITU-T T.81 §G.1.1 wants it.
    private func progressive(coefficients: Int) -> [UInt8] {
        func segment(_ marker: UInt8, _ body: [UInt8]) -> [UInt8] {
            [0xFF, marker, 0, UInt8(body.count + 2)] + body
        }
        // One code of one bit, for "nothing follows".
        let codes: [UInt8] = [1] + [UInt8](repeating: 0, count: 15) + [0]
        var file: [UInt8] = [0xFF, 0xD8]
        file += segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
        file += segment(0xC2, [8, 0, 16, 0, 16, 1, 1, 0x11, 0])
        file += segment(0xC4, [0x00] + codes) + segment(0xC4, [0x10] + codes)
        func scan(_ coefficient: UInt8, _ high: UInt8, _ low: UInt8) -> [UInt8] {
            segment(0xDA, [1, 1, 0, coefficient, coefficient, high << 4 | low]) + [0x0F]
        }
        file += scan(0, 0, 0)
        for coefficient in 1...UInt8(coefficients) {
            file += scan(coefficient, 0, 13)
            for low in (0..<UInt8(13)).reversed() { file += scan(coefficient, low + 1, low) }
        }
        return file + [0xFF, 0xD9]
    }

    @Test func `has no thousand scans, each of which costs as much as a picture`() throws {
        #expect(try Picture(stillFile: progressive(coefficients: 35)).width == 16)
        #expect(throws: CodecError.self) { try Picture(stillFile: progressive(coefficients: 63)) }
    }

    @Test func `is a key frame, then next to nothing, and a key frame when asked for`() async throws {
        var settings = TranscoderSettings()
        settings.executable = BuiltProducts.path("rostrum")
        let supervisor = TranscoderSupervisor(settings, log: .silent)
        defer { supervisor.stop() }
        let (packets, continuation) = AsyncStream.makeStream(of: OutputPacket.self)
        let request = PausePictureRequest(
            source: SourceKey(number: 1), file: try file("jpeg", width: 1_280, height: 720), isBlurred: false,
            seed: 3)
        let job = try #require(
            supervisor.begin(.pausePicture, request.bytes) { event in
                if case .packet(let packet) = event { continuation.yield(packet) }
            })
        var assembler = FrameAssembler()
        let decoder = try VideoDecoder(.vp8)
        var frames: [AssembledFrame] = []
        for await packet in packets {
            let header = try RTPHeader(parsing: packet.bytes.span)
            let payload = Array(packet.bytes[header.payloadRange])
            let info = try VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
            let input = InputPacket(
                sequenceNumber: Int64(header.sequenceNumber), timestamp: header.timestamp,
                marker: header.marker, codec: .vp8, isEntryPoint: info.startsKeyFrame, arrival: .zero,
                payload: payload)
            for frame in assembler.insert(input, at: .zero) {
                frames.append(frame)
                let picture = try #require(try decoder.decode(frame.bytes))
                #expect((picture.width, picture.height) == (640, 360))
                let blue = try #require(picture.sample(x: 160, y: 270))
                #expect(abs(Int(blue.luma) - 41) < 12 && abs(Int(blue.u) - 240) < 12)
                if frames.count == 2 { supervisor.command(job, []) }
            }
            // On a busy machine another frame may be on its way before the job has heard.
            if frames.count > 2, frames.last?.isKeyFrame == true || frames.count == 10 { break }
        }
        let isKeyFrame = frames.map(\.isKeyFrame)
        try #require(isKeyFrame == [true] + Array(repeating: false, count: frames.count - 2) + [true])
        // In two seconds: at most a few kbit/s.
        #expect(frames[1].bytes.count < 1_500)
    }
}
