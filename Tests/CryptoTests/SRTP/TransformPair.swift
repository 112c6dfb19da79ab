import TestSupport
import Testing

@testable import Crypto

/// The same session keys twice: for our own code, and for OpenSSL alone.
struct TransformPair: ~Copyable {
    var own: SRTPTransform
    var openSSL: SRTPTransform

    static func make(
        _ profile: SRTPProfile, using random: inout SeededGenerator
    ) throws -> TransformPair {
        let keys = try #require(
            SRTPKeys(
                profile: profile, masterKey: randomBytes(profile.keyLength, using: &random),
                masterSalt: randomBytes(profile.saltLength, using: &random)))
        var own = SRTPTransform(profile)
        var openSSL = SRTPTransform(profile, mayUseVectors: false)
        try own.key(with: keys, for: .media, isSealing: true)
        try openSSL.key(with: keys, for: .media, isSealing: true)
        let (isOwn, isOther) = (own.usesVectors, openSSL.usesVectors)
        #expect(isOwn && !isOther)
        return TransformPair(own: own, openSSL: openSSL)
    }
}

/// Any stretch of many random bytes: cheaper than to draw each.
func randomBytes(_ count: Int, using random: inout SeededGenerator) -> [UInt8] {
    let start = Int.random(in: 0...(manyBytes.count - count), using: &random)
    return Array(manyBytes[start..<(start + count)])
}

private let manyBytes: [UInt8] = {
    var random = SeededGenerator(seed: 5)
    return (0..<65_536).map { _ in .random(in: 0...255, using: &random) }
}()

/// A packet before it is sealed.
struct MediaPacket {
    var header: Int
    var inPlace: Int
    var body: [UInt8]
    var index: UInt64
    var ssrc: UInt32

    /// What lies behind a packet, and nobody may touch.
    static let margin = 96

    var length: Int { header + inPlace + body.count }

    private static let filling = (0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    /// Room for the packet, with its tag and a margin.
    func buffer(for profile: SRTPProfile) -> [UInt8] {
        Array(Self.filling.prefix(length + profile.tagLength + Self.margin))
    }

    /// Encrypts the packet, whose header and beginning stand in `buffer`.
    func encrypt(in buffer: inout [UInt8], by transform: inout SRTPTransform) -> EncryptedPacket? {
        buffer.withUnsafeMutableBufferPointer { buffer in
            body.withUnsafeBufferPointer { body in
                buffer.baseAddress.flatMap {
                    transform.sealMedia(
                        $0, header: header, inPlace: inPlace, body: body, ssrc: ssrc, index: index)
                }
            }
        }
    }

    /// - Returns: the packet and the margin.
    func sealed(by transform: inout SRTPTransform) -> [UInt8] {
        var bytes = buffer(for: transform.profile)
        let untouched = bytes.suffix(Self.margin)
        let packet = encrypt(in: &bytes, by: &transform)
        var span = bytes.mutableSpan
        let sealedLength = packet?.complete(&span)
        #expect(sealedLength == bytes.count - Self.margin)
        #expect(bytes.suffix(Self.margin) == untouched)
        return bytes
    }
}
