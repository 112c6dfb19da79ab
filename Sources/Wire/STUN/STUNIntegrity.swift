import Base

/// Computes message authentication codes for protocol code.
///
/// A protocol, so that `Wire` needs no C library: `Crypto` has an implementation based on OpenSSL.
package protocol MessageAuthenticator: Sendable {
    /// Computes an HMAC.
    /// - Returns: 20 bytes (RFC 2104 with SHA-1).
    func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8]
}

extension STUNMessage {
    /// The result of verifying FINGERPRINT.
    package enum Fingerprint: Equatable, Sendable {
        case absent, wrong, right
    }

    /// Compares FINGERPRINT with the CRC of the bytes before it.
    ///
    /// - Source: RFC 8489 §14.7.
    package func fingerprint(in bytes: Span<UInt8>) -> Fingerprint {
        guard let range = self[.fingerprint] else { return .absent }
        guard range.lowerBound >= 4, let value = try? bytes.uint32(at: range.lowerBound) else {
            return .wrong
        }
        let crc = CRC32.checksum(bytes.extracting(first: range.lowerBound - 4))
        return value == crc ^ STUNWriter.fingerprintMask ? .right : .wrong
    }

    /// Whether MESSAGE-INTEGRITY is present and was computed with `key`; compares in constant time.
    ///
    /// - Parameter key: the password's UTF-8 bytes (short-term credentials).
    /// - Source: RFC 8489 §9.1.1, §14.5.
    package func isAuthentic(_ bytes: Span<UInt8>, key: [UInt8], by authenticator: some MessageAuthenticator)
        -> Bool
    {
        guard let range = self[.messageIntegrity],
            var signed = try? bytes.bytes(0..<(range.lowerBound - 4)), signed.count >= Self.headerLength,
            let received = try? bytes.bytes(range)
        else { return false }
        // The length at the time of signing: up to and including MESSAGE-INTEGRITY.
        let length = UInt16(truncatingIfNeeded: range.upperBound - Self.headerLength)
        signed[2] = UInt8(truncatingIfNeeded: length >> 8)
        signed[3] = UInt8(truncatingIfNeeded: length)
        let expected = authenticator.hmacSHA1(key: key.span, signed.span)
        guard expected.count == received.count else { return false }
        var difference: UInt8 = 0
        for (left, right) in zip(expected, received) { difference |= left ^ right }
        return difference == 0
    }
}

extension ICECredentials {
    /// The key of MESSAGE-INTEGRITY (RFC 8489 §9.1.1).
    package var key: [UInt8] { Array(password.exposed.utf8) }
}

/// The CRC used by Ethernet and by STUN's FINGERPRINT.
///
/// - Source: ITU V.42 §8.1.1.6.2, referenced by RFC 8489 §14.7.
package enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
            value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xEDB8_8320
        }
    }

    /// The plain CRC, without the mask of FINGERPRINT.
    package static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
        let table = table.span
        var crc: UInt32 = 0xFFFF_FFFF
        for index in bytes.indices {
            crc = crc >> 8 ^ table[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
        }
        return ~crc
    }
}
