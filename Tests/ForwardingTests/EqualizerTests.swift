import Base
import Peer
import Testing
import Wire

@testable import Forwarding

@Suite struct `Packets that leave together` {
    /// A packet of VP8 with this much payload, and padding of its own if wanted.
    private func packet(_ number: UInt16, payload: Int, padding: UInt8 = 0) throws -> ForwardedPacket {
        var bytes: [UInt8] = [padding > 0 ? 0xA0 : 0x80, 96]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: UInt32(1))
        bytes.append(bigEndian: UInt32(2))
        bytes += Array(repeating: 9, count: payload)
        if padding > 0 { bytes += Array(repeating: 0, count: Int(padding) - 1) + [padding] }
        let header = try RTPHeader(parsing: bytes.span)
        var media = MediaPacket(
            header: header, codec: .vp8,
            passedOn: PassedExtensions(of: header, in: bytes.span, ids: ExtensionIDs()))
        media.sequenceNumber = Int64(number)
        return ForwardedPacket(media, at: .zero)
    }

    /// - Returns: what each packet is padded by.
    private func padding(_ sizes: [Int]) throws -> [Int] {
        var packets = try sizes.enumerated().map { try packet(UInt16($0.offset), payload: $0.element) }
        Equalizer.equalize(&packets) { $1 }
        return packets.map(\.padding)
    }

    @Test func `packets a little shorter than the longest are padded to its length`() throws {
        #expect(try padding([1_000, 1_000, 1_001, 1_001]) == [1, 1, 0, 0])
        #expect(try padding([1_001, 1_000, 990]) == [0, 1, 11])
    }

    @Test func `packets of very different lengths are padded in separate groups`() throws {
        #expect(try padding([1_000, 1_001, 300, 301]) == [1, 0, 1, 0])
        #expect(try padding([1_000, 500]) == [0, 0])
        #expect(try padding([1_000]) == [0])
        #expect(try padding([]) == [])
        // Each is close to its neighbour, but not to all.
        #expect(try padding([1_000, 1_020, 1_040]) == [20, 0, 0])
    }

    @Test func `packets with padding or without payload are not padded`() throws {
        var packets = [
            try packet(1, payload: 1_000, padding: 5), try packet(2, payload: 1_003),
            try packet(3, payload: 1_000),
        ]
        Equalizer.equalize(&packets) { $1 }
        #expect(packets.map(\.padding) == [0, 0, 3])
        packets = [try packet(1, payload: 0), try packet(2, payload: 10)]
        Equalizer.equalize(&packets) { $1 }
        #expect(packets.map(\.padding) == [0, 0])
    }

    @Test func `keep what was decided before`() throws {
        var packets = [try packet(1, payload: 1_000), try packet(2, payload: 1_003)]
        Equalizer.equalize(&packets) { number, _ in number == 1 ? 0 : 2 }
        #expect(packets.map(\.padding) == [0, 2])
    }
}
