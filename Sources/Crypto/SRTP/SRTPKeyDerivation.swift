import COpenSSL

/// Derives session keys from a master key.
///
/// - Source: RFC 3711 §4.3 with a key derivation rate of 0; RFC 6188 §3 for AES-256; RFC 7714 §11 for the 12-byte
///   salts of AES-GCM, to which two zero bytes are appended.
enum SRTPKeyDerivation {
    /// Derives one key.
    /// - Parameters:
    ///   - length: bytes to derive.
    ///   - label: what the key is for (RFC 3711 §4.3.2).
    ///   - key: the master key, 16 or 32 bytes.
    ///   - salt: the master salt, at most 14 bytes.
    static func derive(
        _ length: Int, label: UInt8, key: SecretBytes, salt: SecretBytes
    ) throws(SRTPError) -> SecretBytes {
        guard key.count == 16 || key.count == 32, salt.count <= 14, let context = unsafe EVP_CIPHER_CTX_new()
        else {
            throw .library(0)
        }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        // The counter block: the salt, padded with zeros, with the label in byte 7. Encrypting zeros yields the key
        // stream.
        let counter = unsafe SecretBytes(count: 16) { counter in
            unsafe salt.withBytes { salt in
                for unsafe(index, byte) in unsafe salt.enumerated() { unsafe counter[index] = byte }
            }
            unsafe counter[7] ^= label
            return true
        }
        let cipher = unsafe key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
        var isKeyed = false
        unsafe counter?.withBytes { counter in
            unsafe key.withBytes { key in
                isKeyed =
                    unsafe EVP_EncryptInit_ex2(context, cipher, key.baseAddress, counter.baseAddress, nil)
                    == 1
            }
        }
        let zeros = [UInt8](repeating: 0, count: length)
        let derived = unsafe SecretBytes(count: length) { derived in
            var written: CInt = 0
            return unsafe EVP_EncryptUpdate(context, derived.baseAddress, &written, zeros, CInt(length)) == 1
                && written == length
        }
        guard isKeyed, let derived else { throw .library(0) }
        return derived
    }
}
