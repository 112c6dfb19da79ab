import COpenSSL

/// Digests that other protocols require.
package enum MessageDigest {
    private static let md5Length = 16

    /// The MD5 digest of a message.
    /// - Returns: 16 bytes, or nil if OpenSSL is limited to approved algorithms and offers no MD5.
    /// - Source: RFC 1321. It protects no secret here: RFC 8489 §9.2.2 derives keys with it.
    package static func md5(_ message: Span<UInt8>) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: md5Length)
        var count: CUnsignedInt = 0
        let isMade = unsafe message.withUnsafeBufferPointer { message in
            unsafe EVP_Digest(message.baseAddress, message.count, &digest, &count, EVP_md5(), nil) == 1
        }
        return isMade && count == digest.count ? digest : nil
    }
}
