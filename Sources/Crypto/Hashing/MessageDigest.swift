import COpenSSL

/// Digests that protocols of others ask for.
package enum MessageDigest {
    private static let md5Length = 16

    /// - Returns: 16 bytes, or nil where OpenSSL is set to approved algorithms and has no such digest.
    /// - Source: RFC 1321. It protects no secret: RFC 8489 §9.2.2 makes keys by it.
    package static func md5(_ message: Span<UInt8>) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: md5Length)
        var count: CUnsignedInt = 0
        let isMade = unsafe message.withUnsafeBufferPointer { message in
            unsafe EVP_Digest(message.baseAddress, message.count, &digest, &count, EVP_md5(), nil) == 1
        }
        return isMade && count == digest.count ? digest : nil
    }
}
