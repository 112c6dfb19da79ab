import COpenSSL

/// The SHA-256 digest of data that arrives in parts, such as a file.
///
/// It is not copyable, because it owns an OpenSSL context, which it frees.
/// - Source: FIPS 180-4 §6.2.
@safe package struct SHA256Digest: ~Copyable {
    private let context: OpaquePointer
    private var hasFailed: Bool

    /// - Throws: if OpenSSL has no memory for a context.
    package init() throws(CryptoError) {
        guard let context = unsafe EVP_MD_CTX_new() else { throw CryptoError("EVP_MD_CTX_new") }
        unsafe self.context = unsafe context
        hasFailed = unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) != 1
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Adds the next part; a failure is reported by `finish`.
    package mutating func update(_ bytes: Span<UInt8>) {
        let isTaken = unsafe bytes.withUnsafeBufferPointer {
            unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1
        }
        if !isTaken { hasFailed = true }
    }

    /// Completes the digest.
    /// - Returns: 32 bytes.
    /// - Throws: if any step has failed.
    package consuming func finish() throws(CryptoError) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        var count: CUnsignedInt = 0
        guard !hasFailed, unsafe EVP_DigestFinal_ex(context, &digest, &count) == 1, count == digest.count
        else {
            throw CryptoError("EVP_DigestFinal_ex")
        }
        return digest
    }
}
