import Wire

/// HMAC-SHA1 in plain Swift, so that tests of `Wire` and the machines need no C library.
///
/// For tests only: neither fast nor hardened.
/// - Source: RFC 3174 (SHA-1), RFC 2104 (HMAC).
package struct SHA1Authenticator: MessageAuthenticator {
    package init() {}

    package func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
        var block = Self.array(key)
        if block.count > 64 { block = Self.sha1(block) }
        block += [UInt8](repeating: 0, count: 64 - block.count)
        let inner = Self.sha1(block.map { $0 ^ 0x36 } + Self.array(message))
        return Self.sha1(block.map { $0 ^ 0x5C } + inner)
    }

    package static func sha1(_ message: [UInt8]) -> [UInt8] {
        var padded = message + [0x80]
        padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
        padded.append(bigEndian: UInt64(message.count) * 8)

        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        var words = [UInt32](repeating: 0, count: 80)
        for start in stride(from: 0, to: padded.count, by: 64) {
            for index in 0..<16 {
                let at = start + 4 * index
                words[index] =
                    UInt32(padded[at]) << 24 | UInt32(padded[at + 1]) << 16
                    | UInt32(padded[at + 2]) << 8 | UInt32(padded[at + 3])
            }
            compress(&words, into: &state)
        }
        var digest: [UInt8] = []
        for word in state { digest.append(bigEndian: word) }
        return digest
    }

    /// Plain loops, because unoptimised closures would make the tests slow.
    private static func compress(_ words: inout [UInt32], into state: inout [UInt32]) {
        for index in 16..<80 {
            words[index] = rotate(
                words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (mix, constant): (UInt32, UInt32) =
                switch index {
                case ..<20: (b & c | ~b & d, 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotate(a, 5) &+ mix &+ e &+ constant &+ words[index]
            (a, b, c, d, e) = (next, a, rotate(b, 30), c, d)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] = state[index] &+ word }
    }

    private static func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 {
        value << count | value >> (32 - count)
    }

    private static func array(_ span: Span<UInt8>) -> [UInt8] {
        span.indices.map { span[$0] }
    }
}
