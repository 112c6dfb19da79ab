import COpenSSL
import TestSupport
import Testing

@testable import Crypto

/// Our own AES-GCM must write what OpenSSL writes, byte for byte, and nothing else.
@Suite(
    .enabled(if: rostrum_gcm_sealer_is_usable() != 0, "the processor has no VAES: OpenSSL seals everything"))
struct `Our own AES-GCM` {
    private struct Packet {
        var header: Int
        var inPlace: Int
        var body: [UInt8]
        var index: UInt64
        var ssrc: UInt32
    }

    private static let margin = 96

    private struct Pair: ~Copyable {
        var own: SRTPTransform
        var openSSL: SRTPTransform
    }

    private func transforms(_ profile: SRTPProfile, using random: inout SeededGenerator) throws -> Pair {
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: 0...255, using: &random) } }
        let keys = try #require(
            SRTPKeys(
                profile: profile, masterKey: bytes(profile.keyLength), masterSalt: bytes(profile.saltLength)))
        var own = SRTPTransform(profile)
        var openSSL = SRTPTransform(profile, mayUseSealer: false)
        try own.key(with: keys, for: .media, isSealing: true)
        try openSSL.key(with: keys, for: .media, isSealing: true)
        let (isOwn, isOther) = (own.usesSealer, openSSL.usesSealer)
        #expect(isOwn && !isOther)
        return Pair(own: own, openSSL: openSSL)
    }

    /// - Returns: the packet, and what lies behind it, which nobody may touch.
    private func seal(_ packet: Packet, with transform: inout SRTPTransform) -> [UInt8] {
        let length = packet.header + packet.inPlace + packet.body.count + 16
        var bytes = (0..<(length + Self.margin)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let isSealed = bytes.withUnsafeMutableBufferPointer { bytes in
            packet.body.withUnsafeBufferPointer { body in
                guard let start = bytes.baseAddress else { return false }
                return transform.sealMedia(
                    start, header: packet.header, inPlace: packet.inPlace, body: body, ssrc: packet.ssrc,
                    index: packet.index)
            }
        }
        #expect(isSealed)
        #expect((length..<bytes.count).allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0 &* 31) })
        return bytes
    }

    @Test(arguments: [SRTPProfile.aeadAES128GCM, .aeadAES256GCM])
    func `agrees with OpenSSL for every length`(_ profile: SRTPProfile) throws {
        var random = SeededGenerator(seed: 8)
        var pair = try transforms(profile, using: &random)
        for length in 0..<1_460 {
            let packet = Packet(
                header: [12, 16, 20, 24, 28, 36, 72].randomElement(using: &random) ?? 12,
                inPlace: Int.random(in: 0...8, using: &random),
                body: (0..<length).map { _ in .random(in: 0...255, using: &random) },
                index: UInt64(length) << 13, ssrc: .random(in: 0...UInt32.max, using: &random))
            let (ours, theirs) = (seal(packet, with: &pair.own), seal(packet, with: &pair.openSSL))
            #expect(ours == theirs, "\(length) bytes")
        }
    }

    @Test(arguments: [SRTPProfile.aeadAES128GCM, .aeadAES256GCM])
    func `agrees with OpenSSL wherever the body begins, and however long the header is`(
        _ profile: SRTPProfile
    ) throws {
        var random = SeededGenerator(seed: 9)
        var pair = try transforms(profile, using: &random)
        for inPlace in 0..<140 {
            for length in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257] {
                let packet = Packet(
                    header: 12 + 4 * Int.random(in: 0...70, using: &random), inPlace: inPlace,
                    body: (0..<length).map { _ in .random(in: 0...255, using: &random) },
                    index: .random(in: 0..<(1 << 48), using: &random),
                    ssrc: .random(in: 0...UInt32.max, using: &random))
                let (ours, theirs) = (seal(packet, with: &pair.own), seal(packet, with: &pair.openSSL))
                #expect(ours == theirs, "\(inPlace) + \(length) bytes")
            }
        }
    }

    @Test func `is opened by OpenSSL under the same key`() throws {
        let keys = try testKeys(.aeadAES128GCM)
        var sender = try SRTPOutbound(.openSSL, keys)
        var receiver = try SRTPInbound(.openSSL, keys)
        for number in 1..<200 as Range<UInt16> {
            let packet = rtpPacket(
                sequenceNumber: number,
                payload: Array(repeating: UInt8(number & 0xFF), count: Int(number) * 7),
                extensionWords: 2)
            let sealed = try sender.seal(packet, index: UInt64(number), prefix: 4)
            #expect(try receiver.open(sealed) == packet)
        }
    }
}
