import Wire

/// A first flight put together by hand.
enum ClientHello {
    /// The message of a client that offers DTLS 1.3 with a post-quantum key share, as Chromium does.
    ///
    /// Written after BoringSSL's list of extensions; the key shares are not real keys.
    static func ofChromium() -> [UInt8] {
        var body: [UInt8] = [0xFE, 0xFD] + Array(repeating: 0x5A, count: 32) + [0, 0]
        let suites: [UInt16] = [
            0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xCCA9, 0xCCA8, 0xC009, 0xC013, 0xC00A, 0xC014, 0x009C,
            0x002F,
        ]
        body.append(bigEndian: UInt16(suites.count * 2))
        for suite in suites { body.append(bigEndian: suite) }
        body += [1, 0]
        var extensions: [UInt8] = []
        func add(_ type: UInt16, _ value: [UInt8]) {
            extensions.append(bigEndian: type)
            extensions.append(bigEndian: UInt16(value.count))
            extensions += value
        }
        // extended_master_secret, renegotiation_info
        add(0x0017, [])
        add(0xFF01, [0])
        // supported_groups: X25519MLKEM768, X25519, P-256, P-384
        add(0x000A, [0, 8, 0x11, 0xEC, 0, 0x1D, 0, 0x17, 0, 0x18])
        add(0x000B, [1, 0])
        // use_srtp: AES128_CM_HMAC_SHA1_80, AEAD_AES_256_GCM, AEAD_AES_128_GCM
        add(0x000E, [0, 6, 0, 1, 0, 8, 0, 7, 0])
        // signature_algorithms
        add(0x000D, [0, 14, 4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6])
        // key_share: X25519MLKEM768 and X25519
        var shares: [UInt8] = [0x11, 0xEC, 0x04, 0xC0] + Array(repeating: 0xA5, count: 1_216)
        shares += [0, 0x1D, 0, 32] + Array(repeating: 0x42, count: 32)
        add(0x0033, [UInt8(shares.count >> 8), UInt8(shares.count & 0xFF)] + shares)
        add(0x002D, [1, 1])
        // supported_versions: DTLS 1.3, DTLS 1.2
        add(0x002B, [4, 0xFE, 0xFC, 0xFE, 0xFD])
        body.append(bigEndian: UInt16(extensions.count))
        return body + extensions
    }

    /// The message in as many fragments as `cuts` make, each in a record and a datagram of its own.
    static func records(_ body: [UInt8], cutAt cuts: [Int]) -> [[UInt8]] {
        let bounds = [0] + cuts + [body.count]
        return zip(bounds, bounds.dropFirst()).enumerated().map { number, bound in
            let fragment = body[bound.0..<bound.1]
            var record: [UInt8] = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, UInt8(number)]
            record.append(bigEndian: UInt16(fragment.count + 12))
            record.append(1)
            for length in [body.count, -1, bound.0, fragment.count] {
                if length < 0 {
                    record.append(bigEndian: UInt16(0))
                } else {
                    record += [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
                }
            }
            return record + fragment
        }
    }
}
