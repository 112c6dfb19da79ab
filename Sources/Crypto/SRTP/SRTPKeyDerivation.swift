import COpenSSL

/// Makes session keys from a master key.
///
/// - Source: RFC 3711 §4.3 with a key derivation rate of 0; RFC 6188 §3 for AES-256; RFC 7714 §11 for the 12-byte
///   salts of AES-GCM, to which two zero bytes are appended.
enum SRTPKeyDerivation {
    /// - Parameters:
    ///   - key: 16 or 32 bytes.
    ///   - salt: at most 14 bytes.
    static func derive(
        _ length: Int, label: UInt8, key: [UInt8], salt: [UInt8]
    ) throws(SRTPError) -> [UInt8] {
        guard key.count == 16 || key.count == 32, salt.count <= 14 else { throw .library(0) }
        var counter = salt + Array(repeating: 0, count: 16 - salt.count)
        counter[7] ^= label
        guard let context = EVP_CIPHER_CTX_new() else { throw .library(0) }
        defer { EVP_CIPHER_CTX_free(context) }
        let cipher = key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
        guard EVP_EncryptInit_ex2(context, cipher, key, counter, nil) == 1 else { throw .library(0) }
        let zeros = [UInt8](repeating: 0, count: length)
        var derived = zeros
        var written: CInt = 0
        guard EVP_EncryptUpdate(context, &derived, &written, zeros, CInt(length)) == 1, written == length
        else { throw .library(0) }
        return derived
    }
}
