import Synchronization
import Testing

@testable import Crypto

func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    try #require(SecretBytes(copying: bytes))
}

@Suite struct `Bytes of a key` {
    @Test func `are wiped before their memory is given back`() throws {
        let rests = Rests()
        do {
            let key = try #require(
                SecretBytes(count: 32, released: { rest in rests.bytes.withLock { $0 = rest } }) { memory in
                    memory.update(repeating: 0xA5)
                    return true
                })
            #expect(key.exposed == Array(repeating: 0xA5, count: 32))
            #expect("\(key)" == "<secret>" && String(reflecting: key) == "<secret>")
            #expect(rests.bytes.withLock { $0 } == nil)
        }
        #expect(rests.bytes.withLock { $0 } == Array(repeating: 0, count: SecretBytes.capacity))
    }

    @Test func `have room for what is asked of them, and no more`() throws {
        #expect(SecretBytes(copying: [UInt8](repeating: 1, count: SecretBytes.capacity + 1)) == nil)
        let all = try secret(Array(0..<96))
        #expect(try #require(all.part(90..<96)).exposed == Array(90..<96))
        #expect(all.part(90..<97) == nil)
        for profile in SRTPProfile.allCases {
            #expect(SRTPKeyingMaterial.exportLength(profile) <= SecretBytes.capacity)
        }
    }

    /// A class, so that it can be shared with what outlives the test's own scope.
    private final class Rests: Sendable {
        let bytes = Mutex<[UInt8]?>(nil)
    }
}

@Suite struct `Master keys of SRTP` {
    @Test(arguments: SRTPProfile.allCases, [SRTPEngine.openSSL, .libsrtp2])
    func `are gone once both kinds of packets have their session keys`(
        _ profile: SRTPProfile, _ engine: SRTPEngine
    ) throws {
        weak var key: SecretBytes?
        weak var salt: SecretBytes?
        var outbound: SRTPOutbound
        var inbound: SRTPInbound
        do {
            let keys = try testKeys(profile)
            (key, salt) = (keys.masterKey, keys.masterSalt)
            outbound = try SRTPOutbound(engine, keys)
            inbound = try SRTPInbound(engine, keys)
        }
        let packet = rtpPacket(sequenceNumber: 1, payload: [1, 2, 3])
        let report: [UInt8] = [0x81, 0xC8, 0, 1, 0xCA, 0xFE, 0xBA, 0xBE]
        let sealed = try outbound.seal(packet, index: 1)
        let isKept = key != nil
        #expect(isKept == (engine == .openSSL), "until the other kind of packet comes, too")
        let sealedReport = try outbound.sealControl(report)
        let opened = try inbound.open(sealed)
        let openedReport = try inbound.openControl(sealedReport)
        #expect(opened == packet && openedReport == report)
        let isGone = key == nil && salt == nil
        #expect(isGone)
        // What is sealed later needs them no more.
        let later = try outbound.seal(rtpPacket(sequenceNumber: 2, payload: [4]), index: 2)
        _ = try inbound.open(later)
    }
}
