import Crypto
import TestSupport
import Testing
import Wire

/// Bytes written as hexadecimal digits; white space is skipped.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
}

func testKeys(_ profile: SRTPProfile, seed: UInt64 = 1) throws -> SRTPKeys {
    var random = SeededGenerator(seed: seed)
    let key = (0..<profile.keyLength).map { _ in UInt8.random(in: 0...255, using: &random) }
    let salt = (0..<profile.saltLength).map { _ in UInt8.random(in: 0...255, using: &random) }
    return try #require(SRTPKeys(profile: profile, masterKey: key, masterSalt: salt))
}

/// An RTP packet with `sources` contributing sources and `extensionWords` words of header extension.
func rtpPacket(
    ssrc: UInt32 = 0xCAFE_BABE, sequenceNumber: UInt16, payload: [UInt8], sources: Int = 0,
    extensionWords: Int? = nil
) -> [UInt8] {
    var packet: [UInt8] = [0x80 | (extensionWords == nil ? 0 : 0x10) | UInt8(sources & 15), 96]
    packet.append(bigEndian: sequenceNumber)
    packet.append(bigEndian: UInt32(sequenceNumber) &* 3_000)
    packet.append(bigEndian: ssrc)
    for source in 0..<sources { packet.append(bigEndian: UInt32(source)) }
    if let extensionWords {
        packet.append(bigEndian: UInt16(0xBEDE))
        packet.append(bigEndian: UInt16(extensionWords))
        packet += Array(repeating: 0, count: extensionWords * 4)
    }
    return packet + payload
}

extension SRTPOutbound {
    /// Protects a whole packet: header and first `prefix` bytes in the destination, the rest as the body.
    mutating func seal(_ packet: [UInt8], index: UInt64, prefix: Int = 0) throws -> [UInt8] {
        let header = try RTPHeader.length(of: packet.span)
        let bodyStart = header + min(prefix, packet.count - header)
        var buffer = Array(packet[..<bodyStart]) + Array(repeating: 0, count: packet.count - bodyStart + 20)
        var destination = buffer.mutableSpan
        let length = try protect(
            &destination, headerLength: header, prefixLength: bodyStart - header,
            body: packet.span.extracting(bodyStart..<packet.count), index: index)
        return Array(buffer.prefix(length))
    }

    mutating func sealControl(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet + Array(repeating: 0, count: 20)
        var span = buffer.mutableSpan
        let length = try protectControl(&span, length: packet.count)
        return Array(buffer.prefix(length))
    }
}

extension SRTPInbound {
    mutating func open(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet
        let header = try RTPHeader.length(of: packet.span)
        var span = buffer.mutableSpan
        let length = try unprotect(&span, length: packet.count, headerLength: header)
        return Array(buffer.prefix(length))
    }

    mutating func openControl(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet
        var span = buffer.mutableSpan
        let length = try unprotectControl(&span, length: packet.count)
        return Array(buffer.prefix(length))
    }
}
