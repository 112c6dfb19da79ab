import Base
import COpenSSL

/// What all DTLS handshakes of one worker share: certificate, versions, ciphers, SRTP profiles.
///
/// Owns an `SSL_CTX`. Serves both roles. Not `Sendable`: each worker makes its own.
/// - Source: RFC 8827 §6.5, RFC 5764 §4.1, RFC 6347.
@safe package final class DTLSContext {
    /// Datagrams of a handshake are no longer than this, in bytes.
    package static let defaultMTU = 1_200
    /// Longest certificate chain taken, in bytes; peers of WebRTC send one certificate of less than 2,000.
    private static let maximumCertificates = 16_384

    // Freed in `deinit`; each connection of it holds a reference of OpenSSL's own. What it is set up with is copied.
    let context: OpaquePointer
    /// Longest datagram of a handshake, in bytes, without IP and UDP headers.
    package let mtu: Int

    /// - Parameters:
    ///   - profiles: the most wanted first; a server chooses by this order.
    ///   - cipherSuites: likewise.
    ///   - mtu: at least 256 bytes.
    package convenience init(
        identity: DTLSIdentity, profiles: [SRTPProfile] = SRTPProfile.preference,
        cipherSuites: [DTLSCipherSuite] = DTLSCipherSuite.preference, mtu: Int = defaultMTU
    ) throws(CryptoError) {
        try self.init(profiles: profiles, cipherSuites: cipherSuites, mtu: mtu)
        try install(identity)
    }

    /// A context without a certificate, with which a client is refused.
    init(
        profiles: [SRTPProfile] = SRTPProfile.preference,
        cipherSuites: [DTLSCipherSuite] = DTLSCipherSuite.preference, mtu: Int = defaultMTU
    ) throws(CryptoError) {
        guard let context = unsafe SSL_CTX_new_ex(rostrum_dtls_library(), nil, DTLS_method()) else {
            throw CryptoError("SSL_CTX_new_ex")
        }
        unsafe self.context = unsafe context
        self.mtu = max(mtu, 256)
        try configure(profiles, cipherSuites)
    }

    deinit {
        unsafe SSL_CTX_free(context)
    }

    private func configure(_ profiles: [SRTPProfile], _ suites: [DTLSCipherSuite]) throws(CryptoError) {
        unsafe SSL_CTX_set_options(context, rostrum_dtls_options())
        unsafe rostrum_dtls_prepare(context, CLong(Self.maximumCertificates))
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, DTLSConnection.verify, nil)
        // Whatever the machine's openssl.cnf says: certificates are pinned, so that an old RSA key hurts its
        // owner alone.
        unsafe SSL_CTX_set_security_level(context, 1)
        guard unsafe rostrum_dtls_only_1_2(context) == 1 else { throw CryptoError("setting DTLS 1.2") }
        guard unsafe SSL_CTX_set_cipher_list(context, suites.map(\.openSSLName).joined(separator: ":")) == 1
        else {
            throw CryptoError("SSL_CTX_set_cipher_list")
        }
        guard unsafe rostrum_dtls_groups(context, "X25519:P-256") == 1 else {
            throw CryptoError("setting groups")
        }
        let names = profiles.map(\.openSSLName).joined(separator: ":")
        // Unlike the others, this one answers 0 for success.
        guard unsafe SSL_CTX_set_tlsext_use_srtp(context, names) == 0 else {
            throw CryptoError("SSL_CTX_set_tlsext_use_srtp")
        }
    }

    private func install(_ identity: DTLSIdentity) throws(CryptoError) {
        let certificate = identity.certificate
        let key = identity.privateKey.exposed
        guard unsafe SSL_CTX_use_certificate_ASN1(context, CInt(certificate.count), certificate) == 1 else {
            throw CryptoError("SSL_CTX_use_certificate_ASN1")
        }
        guard unsafe SSL_CTX_use_PrivateKey_ASN1(EVP_PKEY_EC, context, key, key.count) == 1 else {
            throw CryptoError("SSL_CTX_use_PrivateKey_ASN1")
        }
    }
}
