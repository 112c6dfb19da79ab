import COpenSSL
import MallocCounter
import TestSupport
import Testing

@testable import Crypto

/// Our own counter mode, and tags made side by side, must write what OpenSSL and libsrtp2 write, and nothing else.
@Suite(
    .enabled(if: rostrum_gcm_sealer_is_usable() != 0, "the processor has no VAES: OpenSSL seals everything"))
struct `Our own counter mode` {
    private static let profile = SRTPProfile.aes128CMHMACSHA1_80

    @Test func `agrees with OpenSSL for every length`() throws {
        var random = SeededGenerator(seed: 8)
        var pair = try TransformPair.make(Self.profile, using: &random)
        for length in 0...1_500 {
            let packet = randomPacket(length, prefix: Int.random(in: 0...8, using: &random), using: &random)
            let (ours, theirs) = (packet.sealed(by: &pair.own), packet.sealed(by: &pair.openSSL))
            #expect(ours == theirs, "\(length) bytes")
        }
    }

    @Test func `agrees with OpenSSL wherever the body begins, and however long the header is`() throws {
        var random = SeededGenerator(seed: 9)
        var pair = try TransformPair.make(Self.profile, using: &random)
        for prefix in Array(0..<140) + [255, 256, 257, 320, 1_200] {
            for length in [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257] {
                var packet = randomPacket(length, prefix: prefix, using: &random)
                packet.header = 12 + 4 * Int.random(in: 0...70, using: &random)
                let (ours, theirs) = (packet.sealed(by: &pair.own), packet.sealed(by: &pair.openSSL))
                #expect(ours == theirs, "\(prefix) + \(length) bytes")
            }
        }
    }

    @Test func `opens what OpenSSL sealed, and the other way round`() throws {
        var random = SeededGenerator(seed: 10)
        var pair = try TransformPair.make(Self.profile, using: &random)
        for length in 0...1_500 {
            let packet = randomPacket(length, prefix: 0, using: &random)
            var (ours, theirs) = (packet.sealed(by: &pair.openSSL), packet.sealed(by: &pair.own))
            let areOpen = (
                open(packet, in: &ours, by: &pair.own), open(packet, in: &theirs, by: &pair.openSSL)
            )
            #expect(areOpen == (true, true))
            #expect(ours == theirs)
            #expect(Array(ours[packet.header..<packet.length]) == packet.body)
            ours[Int.random(in: 0..<(packet.length + 10), using: &random)] ^= 1
            let isOpen = open(packet, in: &ours, by: &pair.own)
            #expect(!isOpen)
        }
    }

    @Test func `makes the tags of any number of packets of any length`() throws {
        var random = SeededGenerator(seed: 11)
        let senders = try (0..<16).map { _ in try Sender(profile: Self.profile, using: &random) }
        for round in 0..<1_600 {
            // Alike as the packets of a frame are, or as different as can be; one of each length among them.
            let isFrame = round % 2 == 0
            var memory: [UInt8] = []
            var expected: [UInt8] = []
            var group = TagGroup()
            for number in 0...(round % 16) {
                let isChosen = number == 0 || isFrame
                let length = isChosen ? round % 1_501 : Int.random(in: 0...1_500, using: &random)
                let packet = randomPacket(length, prefix: 0, using: &random)
                var bytes = packet.buffer(for: Self.profile)
                let encrypted = packet.encrypt(in: &bytes, by: &senders[number].pair.own)
                group.append(try #require(encrypted?.pendingTag), at: memory.count)
                memory += bytes
                expected += packet.sealed(by: &senders[number].pair.openSSL)
            }
            let (isEmpty, isFull) = (group.isEmpty, group.isFull)
            #expect(!isEmpty && isFull == (round % 16 == 15))
            var span = memory.mutableSpan
            let before = malloc_counter_allocations()
            group.complete(in: &span)
            let allocations = malloc_counter_allocations() - before
            let isDone = group.isEmpty
            #expect(malloc_counter_is_on() == 0 || allocations == 0)
            #expect(isDone && memory == expected, "round \(round)")
        }
    }

    private final class Sender {
        var pair: TransformPair

        init(profile: SRTPProfile, using random: inout SeededGenerator) throws {
            pair = try .make(profile, using: &random)
        }
    }

    @Test func `agrees with libsrtp2 for every length`() throws {
        let keys = try testKeys(Self.profile)
        var ours = try SRTPOutbound(.openSSL, keys)
        var theirs = try SRTPOutbound(.libsrtp2, keys)
        var random = SeededGenerator(seed: 12)
        for length in 0...1_500 {
            let index = UInt64(length) * 300
            let packet = rtpPacket(
                sequenceNumber: UInt16(truncatingIfNeeded: index),
                payload: randomBytes(length, using: &random), sources: length % 4,
                extensionWords: length % 3 == 0 ? nil : length % 5)
            let left = try ours.seal(packet, index: index, prefix: Int.random(in: 0...80, using: &random))
            let right = try theirs.seal(packet, index: index)
            #expect(left == right, "\(length) bytes")
        }
    }

    @Test func `leaves nothing pending where OpenSSL does all`() throws {
        var random = SeededGenerator(seed: 13)
        var pair = try TransformPair.make(Self.profile, using: &random)
        let packet = randomPacket(100, prefix: 0, using: &random)
        var bytes = packet.buffer(for: Self.profile)
        let encrypted = try #require(packet.encrypt(in: &bytes, by: &pair.openSSL))
        #expect(encrypted.pendingTag == nil)
        #expect(encrypted.length == packet.length + Self.profile.tagLength)
        let sealed = packet.sealed(by: &pair.own)
        #expect(bytes == sealed)
    }

    private func randomPacket(_ length: Int, prefix: Int, using random: inout SeededGenerator) -> MediaPacket
    {
        MediaPacket(
            header: [12, 16, 20, 24, 28, 36, 72].randomElement(using: &random) ?? 12, inPlace: prefix,
            body: randomBytes(length, using: &random), index: .random(in: 0..<(1 << 48), using: &random),
            ssrc: .random(in: 0...UInt32.max, using: &random))
    }

    private func open(_ packet: MediaPacket, in bytes: inout [UInt8], by transform: inout SRTPTransform)
        -> Bool
    {
        bytes.withUnsafeMutableBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return false }
            return transform.openMedia(
                start, header: packet.header, length: packet.length, ssrc: packet.ssrc, index: packet.index)
        }
    }
}
