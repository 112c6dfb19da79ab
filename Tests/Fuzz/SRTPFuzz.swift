// Fuzz entry of SRTP: nothing a stranger sends is taken, and what is protected comes out as it went in.
// Seeds: RTP/*.rtp.hex

import Crypto
import Wire

private let keySets = SRTPProfile.allCases.compactMap { profile in
    SRTPKeys(
        profile: profile, masterKey: Array(repeating: 1, count: profile.keyLength),
        masterSalt: Array(repeating: 2, count: profile.saltLength))
}

func fuzzSRTP(_ packet: Span<UInt8>) {
    for keys in keySets {
        guard var inbound = try? SRTPInbound(.openSSL, keys), var outbound = try? SRTPOutbound(.openSSL, keys)
        else { fatalError("no SRTP") }
        var plain: [UInt8] = []
        for index in packet.indices { plain.append(packet[index]) }

        var forged = plain
        var span = forged.mutableSpan
        for headerLength in [12, 16, packet.count] {
            guard (try? inbound.unprotect(&span, length: plain.count, headerLength: headerLength)) == nil
            else {
                fatalError("a forged packet is believed")
            }
        }
        var forgedControl = plain
        span = forgedControl.mutableSpan
        guard (try? inbound.unprotectControl(&span, length: plain.count)) == nil, inbound.sourceCount == 0
        else {
            fatalError("a forged RTCP packet is believed")
        }
        roundTrip(plain, &inbound, &outbound)
    }
}

private func roundTrip(_ plain: [UInt8], _ inbound: inout SRTPInbound, _ outbound: inout SRTPOutbound) {
    let room = [UInt8](repeating: 0, count: 20)
    if let header = try? RTPHeader.length(of: plain.span), let number = try? plain.span.uint16(at: 2) {
        let middle = (header + plain.count) / 2
        var buffer = Array(plain[..<middle]) + Array(repeating: 0, count: plain.count - middle) + room
        var span = buffer.mutableSpan
        guard
            let length = try? outbound.protect(
                &span, headerLength: header, prefixLength: middle - header,
                body: plain.span.extracting(middle..<plain.count), index: UInt64(number)),
            let opened = try? inbound.unprotect(&span, length: length, headerLength: header),
            Array(buffer.prefix(opened)) == plain
        else { fatalError("a packet does not survive") }
    }
    guard plain.count >= 8 else { return }
    var buffer = plain + room
    var span = buffer.mutableSpan
    guard let length = try? outbound.protectControl(&span, length: plain.count),
        let opened = try? inbound.unprotectControl(&span, length: length),
        Array(buffer.prefix(opened)) == plain
    else { fatalError("an RTCP packet does not survive") }
}
