import COpenSSL
import TestSupport
import Testing

@testable import Crypto

/// Our own AES-GCM must write what OpenSSL writes, byte for byte, and nothing else.
@Suite(
    .enabled(if: rostrum_gcm_sealer_is_usable() != 0, "the processor has no VAES: OpenSSL seals everything"))
struct `Our own AES-GCM` {
    @Test(arguments: [SRTPProfile.aeadAES128GCM, .aeadAES256GCM])
    func `agrees with OpenSSL for every length`(_ profile: SRTPProfile) throws {
        var random = SeededGenerator(seed: 8)
        var pair = try TransformPair.make(profile, using: &random)
        for length in 0..<1_460 {
            let packet = MediaPacket(
                header: [12, 16, 20, 24, 28, 36, 72].randomElement(using: &random) ?? 12,
                inPlace: Int.random(in: 0...8, using: &random),
                body: randomBytes(length, using: &random),
                index: UInt64(length) << 13, ssrc: .random(in: 0...UInt32.max, using: &random))
            let (ours, theirs) = (packet.sealed(by: &pair.own), packet.sealed(by: &pair.openSSL))
            #expect(ours == theirs, "\(length) bytes")
        }
    }

    @Test(arguments: [SRTPProfile.aeadAES128GCM, .aeadAES256GCM])
    func `agrees with OpenSSL wherever the body begins, and however long the header is`(
        _ profile: SRTPProfile
    ) throws {
        var random = SeededGenerator(seed: 9)
        var pair = try TransformPair.make(profile, using: &random)
        for inPlace in 0..<140 {
            for length in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257] {
                let packet = MediaPacket(
                    header: 12 + 4 * Int.random(in: 0...70, using: &random), inPlace: inPlace,
                    body: randomBytes(length, using: &random),
                    index: .random(in: 0..<(1 << 48), using: &random),
                    ssrc: .random(in: 0...UInt32.max, using: &random))
                let (ours, theirs) = (packet.sealed(by: &pair.own), packet.sealed(by: &pair.openSSL))
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
