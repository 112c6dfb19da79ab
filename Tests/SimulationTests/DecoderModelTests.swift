import Base
import ClientPeer
import TestSupport
import Testing
import Wire

@Suite struct `A decoder model` {
    private struct Packet {
        let header: RTPHeader
        let payload: [UInt8]
        let number: Int64
    }

    private func stream(_ frames: Int, using random: inout SeededGenerator) throws -> [Packet] {
        var settings = SyntheticVideo.Settings()
        (settings.bitrate, settings.keyFrameRatio) = (900_000, 2)
        var video = SyntheticVideo(settings, using: &random)
        var packets: [Packet] = []
        for _ in 0..<frames {
            for packet in video.nextFrame() {
                let number = Int64(100 + packets.count)
                var bytes: [UInt8] = [0x80, (packet.marker ? 0x80 : 0) | 96]
                bytes.append(bigEndian: UInt16(truncatingIfNeeded: number))
                bytes.append(bigEndian: packet.timestamp)
                bytes.append(bigEndian: UInt32(7))
                bytes += packet.payload
                packets.append(
                    Packet(
                        header: try RTPHeader(parsing: bytes.span), payload: packet.payload, number: number))
            }
        }
        return packets
    }

    /// The end of a frame that comes before the key frame is not to be taken for a frame of its own.
    @Test(arguments: UInt64(0)..<50) func `shows every frame, in whatever order packets come`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        let packets = try stream(12, using: &random)
        let order = packets.indices
            .map { (index: $0, at: $0 + Int.random(in: 0...12, using: &random)) }
            .sorted { ($0.at, $0.index) < ($1.at, $1.index) }.map(\.index)
        var decoder = DecoderModel()
        decoder.firstSent = packets.first?.number
        for index in order {
            let packet = packets[index]
            decoder.receive(packet.header, payload: packet.payload, sequenceNumber: packet.number)
        }
        #expect(decoder.framesDecoded == 12)
        #expect(decoder.complaints == [])
    }

    @Test func `complains of a stream that begins without a key frame, and shows none of it`() throws {
        var random = SeededGenerator(seed: 1)
        let packets = try stream(12, using: &random).dropFirst(9)
        var decoder = DecoderModel()
        decoder.firstSent = packets.first?.number
        for packet in packets {
            decoder.receive(packet.header, payload: packet.payload, sequenceNumber: packet.number)
        }
        #expect(decoder.framesDecoded == 0)
        #expect(decoder.complaints == [.startsWithoutKeyFrame])
    }
}
