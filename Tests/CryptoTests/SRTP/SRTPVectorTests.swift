import Testing

@testable import Crypto

/// The published examples of SRTP.
@Suite struct SRTPVectors {
    static let masterKey = hex("E1F97A0D3E018BE0D64FA32C06DE4139")
    static let masterSalt = hex("0EC675AD498AFEEBB6960B3AABE6")

    @Test func `session keys are those of RFC 3711 B3`() throws {
        func derive(_ length: Int, _ label: UInt8) throws -> [UInt8] {
            try SRTPKeyDerivation.derive(
                length, label: label, key: secret(Self.masterKey), salt: secret(Self.masterSalt)
            ).exposed
        }
        #expect(try derive(16, 0) == hex("C61E7A93744F39EE10734AFE3FF7A087"))
        #expect(try derive(14, 2) == hex("30CBBC08863D8C85D49DB34A9AE1"))
        #expect(
            try derive(94, 1)
                == hex(
                    """
                    CEBE321F6FF7716B6FD4AB49AF256A15 6D38BAA48F0A0ACF3C34E2359E6CDBCE
                    E049646C43D9327AD175578EF7227098 6371C10C9A369AC2F94A8C5FBCDDDC25
                    6D6E919A48B610EF17C2041E47403576 6B68642C59BBFC2F34DB60DBDFB2
                    """))
    }

    @Test func `session keys are those of RFC 6188 7 2`() throws {
        let key = hex("f0f04914b513f2763a1b1fa130f10e29 98f6f6e43e4309d1e622a0e332b9f1b6")
        let salt = hex("3b04803de51ee7c96423ab5b78d2")
        func derive(_ length: Int, _ label: UInt8) throws -> [UInt8] {
            try SRTPKeyDerivation.derive(length, label: label, key: secret(key), salt: secret(salt)).exposed
        }
        #expect(try derive(32, 0) == hex("5ba1064e30ec51613cad926c5a28ef73 1ec7fb397f70a960653caf06554cd8c4"))
        #expect(try derive(14, 2) == hex("fa31791685ca444a9e07c6c64e93"))
        #expect(try derive(20, 1) == hex("fd9c32d39ed5fbb5a9dc96b30818454d1313dc05"))
    }

    @Test(arguments: [true, false])
    func `the key stream of AES-CM is that of RFC 3711 B2`(_ mayUseVectors: Bool) throws {
        var transform = SRTPTransform(.aes128CMHMACSHA1_80, mayUseVectors: mayUseVectors)
        try transform.install(
            encryption: secret(hex("2B7E151628AED2A6ABF7158809CF4F3C")),
            authentication: secret(Array(repeating: 0, count: 20)),
            salt: secret(hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD")), isSealing: true)
        let header = hex("80000000 00000000 00000000")
        let sealed = try transform.seal(header, Array(repeating: 0, count: 48), ssrc: 0, index: 0, tag: 10)
        #expect(
            Array(sealed[12..<60])
                == hex(
                    """
                    E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB
                    41E95B3BB0A2E8DD477901E4FCA894C0
                    """))
    }

    /// The reference implementation's own test (libsrtp, `srtp_driver.c`).
    @Test func `AES-CM with HMAC-SHA1 is as libsrtp has it`() throws {
        let keys = try #require(
            SRTPKeys(
                profile: .aes128CMHMACSHA1_80, masterKey: Self.masterKey, masterSalt: Self.masterSalt))
        let plain = hex("800f1234decafbadcafebabe") + Array(repeating: 0xAB, count: 16)
        let sealed = hex("800f1234decafbadcafebabe 4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb")
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(.openSSL, keys)
        #expect(try outbound.seal(plain, index: 0x1234) == sealed)
        #expect(try inbound.open(sealed) == plain)

        let report = hex("81c8000bcafebabe") + Array(repeating: 0xAB, count: 16)
        let sealedReport = hex(
            "81c8000bcafebabe 7128035be487b9bdbef89041f977a5a8 80000001 993e08cd54d6c1230798")
        #expect(try outbound.sealControl(report) == sealedReport)
        #expect(try inbound.openControl(sealedReport) == report)
    }

    @Test(arguments: [
        (
            SRTPProfile.aeadAES128GCM,
            """
            f24de3a3fb34de6cacba861c9d7e4bca be633bd50d294e6f42a5f47a51c7d19b 36de3adf8833
            899d7f27beb16a9152cf765ee4390cce
            """
        ),
        (
            .aeadAES256GCM,
            """
            32b1de78a822fe12ef9f78fa332e33aa b18012389a58e2f3b50b2a0276ffae0f 1ba63799b87b
            7aa3db36dfffd6b0f9bb7878d7a76c13
            """
        ),
    ])
    func `AES-GCM is as in RFC 7714 16`(_ profile: SRTPProfile, _ expected: String) throws {
        var transform = SRTPTransform(profile)
        try transform.install(
            encryption: secret(Array(0..<UInt8(profile.keyLength))), authentication: secret([]),
            salt: secret(hex("51756964 2070726f 2071756f")), isSealing: true)
        let payload = hex(
            """
            47616c6c696120657374206f6d6e6973 20646976697361 20696e207061727465 73207472 6573
            """)
        let header = hex("8040f17b8041f8d35501a0b2")
        let sealed = try transform.seal(header, payload, ssrc: 0x5501_A0B2, index: 0xF17B, tag: 16)
        #expect(sealed == header + hex(expected))
    }

    @Test(arguments: [
        (
            SRTPProfile.aeadAES128GCM,
            """
            63e94885dcdab67ca727d7662f6b7e99 7ff5c0f76c06f32dc676a5f1730d6fda 4ce09b4686303ded0bb9275b
            c84aa45896cf4d2fc5abf87245d9eade 800005d4
            """
        ),
        (
            .aeadAES256GCM,
            """
            d50ae4d1f5ce5d304ba297e47d470c28 2c3ece5dbffe0a50a2eaa5c1110555be 8415f658c61de0476f1b6fad
            1d1eb30c4446839f57ff6f6cb26ac3be 800005d4
            """
        ),
    ])
    func `AES-GCM of RTCP is as in RFC 7714 17`(_ profile: SRTPProfile, _ expected: String) throws {
        var transform = SRTPTransform(profile)
        try transform.install(
            encryption: secret(Array(0..<UInt8(profile.keyLength))), authentication: secret([]),
            salt: secret(hex("51756964 2070726f 2071756f")), isSealing: true)
        let report = hex(
            """
            81c8000d4d617273 4e5450314e545032 525450200000042a 0000e9304c756e61
            deadbeefdeadbeef deadbeefdeadbeef deadbeef
            """)
        var packet = report + Array(repeating: 0, count: 20)
        let length = report.count
        let isSealed = packet.withUnsafeMutableBufferPointer { packet in
            guard let packet = packet.baseAddress else { return false }
            return transform.sealControl(packet, length: length, ssrc: 0x4D61_7273, index: 0x5D4)
        }
        #expect(isSealed)
        #expect(packet == report.prefix(8) + hex(expected))
    }
}

extension SRTPTransform {
    fileprivate mutating func seal(
        _ header: [UInt8], _ payload: [UInt8], ssrc: UInt32, index: UInt64, tag: Int
    ) throws -> [UInt8] {
        var packet = header + Array(repeating: 0, count: payload.count + tag)
        let encrypted = packet.withUnsafeMutableBufferPointer { packet in
            payload.withUnsafeBufferPointer { payload in
                packet.baseAddress.flatMap {
                    sealMedia($0, header: header.count, inPlace: 0, body: payload, ssrc: ssrc, index: index)
                }
            }
        }
        var span = packet.mutableSpan
        let length = try #require(encrypted).complete(&span)
        #expect(length == packet.count)
        return packet
    }
}
