import Base
import SCTP
import TestSupport
import TestTraits
import Testing
import Wire

/// Somebody who has a DTLS connection may send any packet, with a right checksum.
@Suite(.sctpTurn) struct HostilePeers {
    /// CRC32c over the packet with a checksum of zero, in the byte order of SCTP (RFC 9260 appendix A).
    private func sealed(_ packet: [UInt8]) -> [UInt8] {
        guard packet.count >= 12 else { return packet }
        var packet = packet
        packet.replaceSubrange(8..<12, with: [0, 0, 0, 0])
        var crc = UInt32.max
        for byte in packet {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
        }
        crc = ~crc
        for index in 0..<4 { packet[8 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
        return packet
    }

    private func garbled(_ packet: [UInt8], using random: inout SeededGenerator) -> [UInt8] {
        var bytes = packet
        // The header stays: with another tag nobody would listen.
        guard bytes.count > 13 else { return bytes }
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            bytes[Int.random(in: 12..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes.removeLast(Int.random(in: 0...(bytes.count - 13), using: &random))
        case 1: bytes += bytes[12...]
        case 2: bytes += (0..<Int.random(in: 1...64, using: &random)).map { UInt8(truncatingIfNeeded: $0) }
        default: break
        }
        return sealed(bytes)
    }

    @Test func `have checksums that the other tests' packets have, too`() throws {
        let association = try SCTPAssociation(timeline: SCTPTimeline(), at: .zero)
        let initial = try #require(association.takeOutput().first)
        #expect(sealed(initial) == initial)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `harm nobody but themselves`(seed: UInt64) throws {
        let witness = try AssociationPair(seed: seed)
        #expect(witness.establish())
        var random = SeededGenerator(seed: seed)
        let timeline = SCTPTimeline()
        var now = MonotonicTime.zero
        let server = try SCTPAssociation(timeline: timeline, at: now)
        let client = try SCTPAssociation(timeline: timeline, at: now)
        for round in 0..<150 {
            now = now + .milliseconds(20)
            if round % 3 == 0 {
                let size = Int.random(in: 1...3_000, using: &random)
                let message = SCTPMessage(
                    stream: .random(in: 0..<300, using: &random), payload: 51,
                    bytes: [UInt8](repeating: 7, count: size))
                try? client.send(message, at: now)
                try? server.send(message, at: now)
            }
            if round % 10 == 9 { client.reset(.random(in: 0..<256, using: &random), at: now) }
            for packet in client.takeOutput() {
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let bad = garbled(packet, using: &random)
                    server.receive(bad.span, at: now)
                }
                server.receive(packet.span, at: now)
            }
            for packet in server.takeOutput() { client.receive(packet.span, at: now) }
            server.advance(to: now)
            client.advance(to: now)
            _ = (server.takeEvents(), client.takeEvents())
        }
        let message = SCTPMessage(stream: 0, payload: 51, bytes: [1])
        try witness.left.send(message, at: witness.now)
        #expect(witness.run { witness.rightMessages == [message] })
    }
}
