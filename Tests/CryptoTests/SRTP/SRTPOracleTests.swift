import Crypto
import TestSupport
import Testing
import Wire

/// Both engines must agree on every packet: on each byte they send, and on what they take.
@Suite struct SRTPOracle {
    /// A packet on its way, with what the sender meant.
    private struct Flying {
        var bytes: [UInt8]
        var plain: [UInt8]
    }

    private static let sources: [UInt32] = [0xCAFE_BABE, 1, 0xFFFF_FFFF]

    @Test(arguments: SRTPProfile.allCases, [5, 65_400, 32_700] as [UInt16])
    func `is satisfied with what is sent, over the wraps of the sequence number`(
        _ profile: SRTPProfile, _ first: UInt16
    ) throws {
        let keys = try testKeys(profile)
        var ours = try SRTPOutbound(.openSSL, keys)
        var theirs = try SRTPOutbound(.libsrtp2, keys)
        var random = SeededGenerator(seed: UInt64(first))
        // libsrtp2 must see the wrap to count it: steps stay below half the circle.
        var index = UInt64(first) - 1
        for number in 0..<400 {
            index += UInt64(number % 7 == 6 ? Int.random(in: 1...9_000, using: &random) : 1)
            let packet = randomPacket(ssrc: Self.sources[0], index: index, using: &random)
            let prefix = Int.random(in: 0...40, using: &random)
            let (left, right) = (
                try ours.seal(packet, index: index, prefix: prefix),
                try theirs.seal(packet, index: index, prefix: prefix / 2)
            )
            #expect(left == right)
            // A repetition is the same packet.
            if number % 10 == 0 {
                #expect(try ours.seal(packet, index: index) == left)
                #expect(try theirs.seal(packet, index: index) == left)
            }
        }
        #expect(index >> 16 > 2)
    }

    @Test(arguments: SRTPProfile.allCases, 0..<12)
    func `is satisfied with what is taken, in spite of loss, reordering, repetition and damage`(
        _ profile: SRTPProfile, _ seed: Int
    ) throws {
        let keys = try testKeys(profile)
        var random = SeededGenerator(seed: UInt64(seed) &* 77)
        var sender = try SRTPOutbound(seed % 2 == 0 ? .openSSL : .libsrtp2, keys)
        var ours = try SRTPInbound(.openSSL, keys)
        var theirs = try SRTPInbound(.libsrtp2, keys)
        var indices: [UInt64] = [UInt64.random(in: 0..<32_768, using: &random), 32_000, 0]
        var flying: [Flying] = []
        var taken = 0
        for step in 0..<3_000 {
            let source = step % 3
            indices[source] += UInt64.random(in: 0..<100, using: &random) == 0 ? 700 : 1
            // From time to time a jump that makes the counter wrap soon.
            if step % 500 == 499 { indices[source] += 21_000 }
            let plain = randomPacket(ssrc: Self.sources[source], index: indices[source], using: &random)
            flying.append(Flying(bytes: try sender.seal(plain, index: indices[source]), plain: plain))
            while flying.count > 30 || (step == 2_999 && !flying.isEmpty) {
                let next = flying.remove(at: Int.random(in: 0..<flying.count, using: &random))
                let fate = Int.random(in: 0..<20, using: &random)
                if fate == 0 { continue }
                if fate == 1 { flying.append(next) }
                var bytes = next.bytes
                if fate == 2 { damage(&bytes, using: &random) }
                let (left, right) = (attempt(&ours, bytes), attempt(&theirs, bytes))
                #expect(left == right)
                if case .success(let opened) = left {
                    #expect(opened == next.plain)
                    taken += 1
                }
            }
        }
        #expect(taken > 2_000)
        #expect(ours.counters == theirs.counters)
        #expect(ours.counters.replayed > 0)
        #expect(ours.counters.unauthentic > 0)
    }

    @Test(arguments: SRTPProfile.allCases)
    func `is satisfied with RTCP, both ways`(_ profile: SRTPProfile) throws {
        let keys = try testKeys(profile)
        var ourOut = try SRTPOutbound(.openSSL, keys)
        var ourIn = try SRTPInbound(.openSSL, keys)
        var theirOut = try SRTPOutbound(.libsrtp2, keys)
        var theirIn = try SRTPInbound(.libsrtp2, keys)
        var random = SeededGenerator(seed: 3)
        for number in 0..<300 {
            let length = 4 * Int.random(in: 0...30, using: &random)
            let report =
                hex("80c90001cafebabe") + (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let (left, right) = (try ourOut.sealControl(report), try theirOut.sealControl(report))
            #expect(left == right)
            #expect(left.count == report.count + profile.controlOverhead)
            var damaged = left
            damaged[Int.random(in: 0..<left.count, using: &random)] ^= 1 << UInt8(number % 8)
            #expect(throws: SRTPError.self) { try ourIn.openControl(damaged) }
            #expect(throws: SRTPError.self) { try theirIn.openControl(damaged) }
            #expect(try ourIn.openControl(left) == report)
            #expect(try theirIn.openControl(left) == report)
            #expect(throws: SRTPError.replayed) { try ourIn.openControl(left) }
            #expect(throws: SRTPError.replayed) { try theirIn.openControl(left) }
        }
    }

    private func randomPacket(
        ssrc: UInt32, index: UInt64, using random: inout SeededGenerator
    ) -> [UInt8] {
        let length = [0, 1, 15, 16, 17, 100, 1_180].randomElement(using: &random) ?? 0
        return rtpPacket(
            ssrc: ssrc, sequenceNumber: UInt16(truncatingIfNeeded: index),
            payload: (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) },
            sources: Int.random(in: 0...3, using: &random),
            extensionWords: Bool.random(using: &random) ? Int.random(in: 0...5, using: &random) : nil)
    }

    private func damage(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
        // Not the first byte: it says how long the header is, and where it lies libsrtp2 has other words for it.
        bytes[Int.random(in: 1..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }

    private func attempt(_ inbound: inout SRTPInbound, _ bytes: [UInt8]) -> Result<[UInt8], SRTPError> {
        do {
            return .success(try inbound.open(bytes))
        } catch let error as SRTPError {
            return .failure(error)
        } catch {
            return .failure(.truncated)
        }
    }
}
