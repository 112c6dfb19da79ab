import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

@Suite struct `What browsers send` {
    struct Capture: Sendable, CustomTestStringConvertible {
        let name: String
        let codec: InputCodec

        var testDescription: String { name }
    }

    static let captures = [
        Capture(name: "chromium-vp8-l1t3", codec: .vp8), Capture(name: "chromium-vp9-l1t1", codec: .vp9),
        Capture(name: "chromium-vp9-l2t2", codec: .vp9), Capture(name: "chromium-h264", codec: .h264),
        Capture(name: "chromium-av1-l1t1", codec: .av1), Capture(name: "firefox-av1-l1t1", codec: .av1),
        Capture(name: "gstreamer-h264", codec: .h264), Capture(name: "gstreamer-vp8", codec: .vp8),
        Capture(name: "ffmpeg-h264", codec: .h264),
    ]

    /// The packets of the stream that has most of them, which is the picture.
    private func packets(_ capture: Capture) throws -> [InputPacket] {
        var streams: [UInt32: [(RTPHeader, [UInt8])]] = [:]
        for bytes in try PacketCapture("RTP/\(capture.name).rtp.hex").packets {
            guard let header = try? RTPHeader(parsing: bytes.span) else { continue }
            let payload = Array(bytes[header.payloadRange])
            let key = header.ssrc << 8 | UInt32(header.payloadType)
            if !payload.isEmpty { streams[key, default: []].append((header, payload)) }
        }
        let video = try #require(
            streams.values.max { $0.reduce(0) { $0 + $1.1.count } < $1.reduce(0) { $0 + $1.1.count } })
        let first = try #require(video.first?.0.sequenceNumber)
        return video.map { header, payload in
            let info = capture.codec.video.flatMap {
                try? VideoPayload.describe($0, payload: payload.span, marker: header.marker)
            }
            return InputPacket(
                sequenceNumber: Int64(Int16(truncatingIfNeeded: header.sequenceNumber &- first)),
                timestamp: header.timestamp, marker: header.marker, codec: capture.codec,
                isEntryPoint: info?.startsKeyFrame ?? false, arrival: .zero, payload: payload)
        }
    }

    @Test(arguments: captures) func `is put together and decoded`(_ capture: Capture) throws {
        var assembler = FrameAssembler()
        let codec = try #require(capture.codec.video)
        let decoder = try VideoDecoder(codec)
        var pictures = 0
        var frames = 0
        for packet in try packets(capture) {
            for frame in assembler.insert(packet, at: .zero) {
                frames += 1
                if try decoder.decode(frame.bytes) != nil { pictures += 1 }
            }
        }
        #expect(frames > 3)
        #expect(pictures == frames)
    }

    @Test(arguments: captures) func `is made smaller`(_ capture: Capture) throws {
        let maker = RenditionMaker(`Renditions of a track`.settings, seed: 1, at: .zero) {
            try? VideoDecoder($0)
        }
        var assembler = FrameAssembler()
        let decoder = try VideoDecoder(.vp8)
        var pictures: [Picture] = []
        var sequence: Int64 = 0
        for (number, packet) in try packets(capture).enumerated() {
            let now = MonotonicTime(nanoseconds: Int64(number) * 40_000_000)
            var packet = packet
            packet.arrival = now
            maker.receive(packet, at: now)
            for made in maker.advance(to: now) where made.kind == .low {
                let header = try RTPHeader(parsing: made.bytes.span)
                let payload = Array(made.bytes[header.payloadRange])
                let info = try VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
                sequence += 1
                let input = InputPacket(
                    sequenceNumber: sequence, timestamp: header.timestamp, marker: header.marker, codec: .vp8,
                    isEntryPoint: info.startsKeyFrame, arrival: now, payload: payload)
                for frame in assembler.insert(input, at: now) {
                    if let picture = try decoder.decode(frame.bytes) { pictures.append(picture) }
                }
            }
        }
        #expect(pictures.count > 2)
        #expect(pictures.allSatisfy { max($0.width, $0.height) <= 640 && min($0.width, $0.height) <= 360 })
    }
}
