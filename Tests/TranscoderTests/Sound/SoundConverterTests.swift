import Base
import Codecs
import Foundation
import Testing
import Wire

@testable import Transcoder

@Suite struct SoundConverting {
    /// Frames of 1,024 samples of a tone, as AAC has them.
    private final class Tone: FrameDecoder {
        private var position = 0

        func decode(_ frame: [UInt8]) throws(CodecError) -> [Float] {
            guard !frame.isEmpty else { throw .failed }
            defer { position += 1_024 }
            return (0..<1_024).flatMap { index -> [Float] in
                let value = Float(0.3 * sin(2 * .pi * 440 * Double(position + index) / 48_000))
                return [value, value]
            }
        }
    }

    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func converter() throws -> SoundConverter {
        let converter = try SoundConverter(seed: 3) { $0.isEmpty ? nil : Tone() }
        converter.configure([0x11, 0x90])
        return converter
    }

    /// - Parameter milliseconds: as RTMP has it.
    private func frame(_ milliseconds: Int, _ payload: [UInt8] = [1]) -> InputPacket {
        let captured = start + .milliseconds(milliseconds)
        return InputPacket(
            sequenceNumber: 0, timestamp: UInt32(truncatingIfNeeded: milliseconds * 48), marker: true,
            codec: .aac, isEntryPoint: true, arrival: captured + .milliseconds(5), captured: captured,
            payload: payload)
    }

    @Test func `gives packets of 20 ms on the time line of the frames`() throws {
        let converter = try converter()
        var made: [OutputPacket] = []
        // Rounded to milliseconds, as 1,024 samples are 21.33.
        for index in 0..<150 { made += converter.receive(frame(index * 1_024 / 48)) }
        #expect(made.count == 150 * 1_024 / 960)
        let decoder = try OpusDecoder()
        for (index, packet) in made.enumerated() {
            let header = try RTPHeader(parsing: packet.bytes.span)
            #expect(header.timestamp == UInt32(index * 960) && header.payloadType == 111)
            #expect(header.marker == (index == 0))
            let wanted = start + .milliseconds(index * 20)
            let captured = try #require(packet.captured)
            #expect(abs(captured.nanoseconds(since: wanted)) < 1_100_000)
            #expect(try decoder.decode(packet.bytes[header.payloadRange].map(\.self)).count == 1_920)
        }
    }

    /// As music (RFC 6716 §3.1, configurations 16 to 31): those that carry a copy of the packet before are for speech.
    @Test func `encodes all of the sound`() throws {
        func configurations(_ packets: [[UInt8]]) -> Set<UInt8> {
            Set(packets.compactMap(\.first).map { $0 >> 3 })
        }
        let converter = try converter()
        let made = try (0..<50).flatMap { converter.receive(frame($0 * 1_024 / 48)) }.map { packet in
            let header = try RTPHeader(parsing: packet.bytes.span)
            return Array(packet.bytes[header.payloadRange])
        }
        #expect(configurations(made).allSatisfy { (16...31).contains($0) }, "\(configurations(made))")
        let (speech, tone) = (try OpusEncoder(bitrate: SoundConverter.bitrate), Tone())
        let spoken = try (0..<50).map { _ in try speech.encode(Array(tone.decode([1]).prefix(1_920))) }
        #expect(configurations(spoken).allSatisfy { $0 < 16 }, "\(configurations(spoken))")
    }

    @Test func `begins anew behind a gap, and follows a clock that drifts`() throws {
        let converter = try converter()
        for index in 0..<20 { _ = converter.receive(frame(index * 1_024 / 48)) }
        let later = converter.receive(frame(5_000))
        let first = try #require(later.first)
        let header = try RTPHeader(parsing: first.bytes.span)
        #expect(header.timestamp == 5_000 * 48 && header.marker)
        // One in a thousand slower than it says.
        var last: OutputPacket?
        for index in 1..<2_000 { last = converter.receive(frame(5_000 + index * 1_025 / 48)).last ?? last }
        let newest = try #require(last)
        let timestamp = try RTPHeader(parsing: newest.bytes.span).timestamp
        let wanted = Int64(5_000 * 48 + 1_999 * 1_025)
        #expect(abs(Int64(timestamp) - wanted) < 3_000)
    }

    @Test func `goes on behind a frame that cannot be decoded`() throws {
        let converter = try converter()
        #expect(converter.receive(frame(0, [])).isEmpty)
        #expect(converter.failures == 1)
        #expect(converter.receive(frame(21)).count == 1)
        converter.configure([])
        #expect(converter.receive(frame(43)).isEmpty)
    }
}

@Suite struct DecodingAAC {
    @Test func `refuses a configuration or a frame that makes no sense`() throws {
        #expect(throws: CodecError.unavailable) { try AACDecoder(configuration: []) }
        #expect(throws: CodecError.unavailable) { try AACDecoder(configuration: [0xFF, 0xFF, 0xFF]) }
        let decoder = try AACDecoder(configuration: [0x11, 0x90])
        #expect(throws: CodecError.failed) { try decoder.decode([]) }
        #expect(throws: CodecError.failed) { try decoder.decode([0xFF, 0x00, 0x12]) }
    }

    /// Two channels of silence, as encoders write them.
    @Test func `brings any rate to 48 kHz`() throws {
        let silence: [UInt8] = [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]
        let plain = try AACDecoder(configuration: [0x11, 0x90])
        let counts = try (0..<10).map { _ in try plain.decode(silence).count / 2 }
        #expect(counts.allSatisfy { $0 == 1_024 })
        let other = try AACDecoder(configuration: [0x12, 0x10])
        let total = try (0..<100).reduce(0) { sum, _ in try sum + other.decode(silence).count / 2 }
        #expect(abs(total - 100 * 1_024 * 480 / 441) < 200)
    }
}
