import Base
import COpenSSL

/// A key pair, and the self-signed certificate that presents it in DTLS handshakes.
///
/// It is stored as DER and not as OpenSSL objects, so that each worker can make its own context from it. One per
/// process is enough, because clients check nothing but the fingerprint.
/// - Source: RFC 8827 §6.5 (self-signed, P-256).
package struct DTLSIdentity: Sendable {
    /// The certificate, X.509 in DER.
    package let certificate: [UInt8]
    /// The private key, in DER.
    package let privateKey: Secret<[UInt8]>
    /// SHA-256 of the certificate, for the SDP answer.
    package let fingerprint: CertificateFingerprint

    /// An existing identity.
    /// - Throws: if OpenSSL cannot compute the fingerprint.
    package init(certificate: [UInt8], privateKey: Secret<[UInt8]>) throws(CryptoError) {
        guard let fingerprint = CertificateFingerprint(of: certificate, algorithm: .sha256) else {
            throw CryptoError("EVP_Digest")
        }
        self.certificate = certificate
        self.privateKey = privateKey
        self.fingerprint = fingerprint
    }

    /// Generates an ECDSA P-256 key and a certificate for it.
    ///
    /// The certificate is valid from yesterday, because clocks differ, for ten years; browsers ignore the dates.
    package init() throws(CryptoError) {
        guard let key = unsafe rostrum_make_p256_key() else { throw CryptoError("EVP_EC_gen") }
        defer { unsafe EVP_PKEY_free(key) }
        guard let certificate = unsafe X509_new() else { throw CryptoError("X509_new") }
        defer { unsafe X509_free(certificate) }
        try unsafe Self.fill(certificate, key)
        guard unsafe X509_sign(certificate, key, EVP_sha256()) > 0 else { throw CryptoError("X509_sign") }
        self.certificate = try unsafe Self.encode("i2d_X509") { unsafe i2d_X509(certificate, $0) }
        guard let fingerprint = CertificateFingerprint(of: self.certificate, algorithm: .sha256) else {
            throw CryptoError("EVP_Digest")
        }
        self.fingerprint = fingerprint
        privateKey = unsafe Secret(try Self.encode("i2d_PrivateKey") { unsafe i2d_PrivateKey(key, $0) })
    }

    /// Sets version, serial number, dates, names and key.
    private static func fill(_ certificate: OpaquePointer, _ key: OpaquePointer) throws(CryptoError) {
        let day: CLong = 86_400
        var serial: UInt64 = 0
        for byte in try RandomBytes.make(8) { serial = serial << 8 | UInt64(byte) }
        let subject = unsafe X509_get_subject_name(certificate)
        guard unsafe X509_set_version(certificate, 2) == 1,
            unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1,
            unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil,
            unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), 3_650 * day) != nil,
            unsafe X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, "rostrum", -1, -1, 0) == 1,
            unsafe X509_set_issuer_name(certificate, subject) == 1,
            unsafe X509_set_pubkey(certificate, key) == 1
        else { throw CryptoError("filling in a certificate") }
    }

    /// Calls an `i2d_…` function of OpenSSL twice: first for the length, then to write.
    private static func encode(
        _ name: String, _ function: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt
    ) throws(CryptoError) -> [UInt8] {
        let length = Int(function(nil))
        guard length > 0 else { throw CryptoError(name) }
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            var end = buffer.baseAddress
            count = unsafe Int(function(&end)) == length ? length : 0
        }
        guard bytes.count == length else { throw CryptoError(name) }
        return bytes
    }
}
