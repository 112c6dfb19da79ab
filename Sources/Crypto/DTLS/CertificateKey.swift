import COpenSSL

/// Checks of the public key in a peer's certificate.
enum CertificateKey {
    /// A signature by a key of this length takes 0.1 ms to verify; one by a key four times as long takes 1.5 ms.
    private static let maximumRSABits: CInt = 4_096

    /// Whether the key of a certificate, an `X509 *`, is of a kind that WebRTC peers use, and fast to verify with.
    ///
    /// Signatures are verified on the worker's thread, where media has to wait meanwhile.
    /// - Source: RFC 8827 §6.5 (ECDSA and RSA).
    static func isAffordable(_ certificate: OpaquePointer) -> Bool {
        guard let key = unsafe X509_get0_pubkey(certificate) else { return false }
        switch unsafe EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_EC: return true
        case EVP_PKEY_RSA: return unsafe EVP_PKEY_get_bits(key) <= maximumRSABits
        default: return false
        }
    }

    /// The same for a certificate in DER.
    static func isAffordable(_ certificate: [UInt8]) -> Bool {
        unsafe certificate.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            guard let certificate = unsafe d2i_X509(nil, &start, CLong(bytes.count)) else { return false }
            defer { unsafe X509_free(certificate) }
            return unsafe isAffordable(certificate)
        }
    }
}
