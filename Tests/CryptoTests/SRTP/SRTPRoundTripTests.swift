import Crypto
import TestSupport
import Testing

/// What one end protects, the other takes; nothing else is taken.
@Suite struct SRTPRoundTrip {
    @Test(arguments: SRTPProfile.allCases, SRTPEngine.allCases)
    func `restores a packet and adds the profile's tag`(_ profile: SRTPProfile, _ engine: SRTPEngine) throws {
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(engine, keys)
        var inbound = try SRTPInbound(engine, keys)
        let packet = rtpPacket(sequenceNumber: 7, payload: Array(0..<100))
        let sealed = try outbound.seal(packet, index: 7, prefix: 5)
        #expect(sealed.count == packet.count + profile.tagLength)
        #expect(sealed.prefix(12) == packet.prefix(12))
        #expect(try inbound.open(sealed) == packet)
    }
}
