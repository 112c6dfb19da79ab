import Base
import COpenSSL

/// What all DTLS handshakes of one worker share: certificate, versions, cipher suites and SRTP profiles.
///
/// Owns an `SSL_CTX`, for both roles. It is not `Sendable`: each worker has a context of its own.
/// - Source: RFC 8827 §6.5, RFC 5764 §4.1, RFC 6347.
@safe package final class DTLSContext {
    /// Most bytes of a handshake datagram, unless set otherwise.
    package static let defaultMTU = 1_200
    /// Most bytes of a certificate chain; WebRTC peers send one certificate of less than 2,000 bytes.
    private static let maximumCertificates = 16_384

    // Freed in `deinit`; each connection holds an OpenSSL reference of its own. OpenSSL copies what the context is
    // given.
    let context: OpaquePointer
    /// Most bytes of a handshake datagram, without IP and UDP headers.
    package let mtu: Int

    /// - Parameters:
    ///   - profiles: the preferred one first; a server chooses in this order.
    ///   - cipherSuites: the preferred one first.
    ///   - mtu: at least 256 bytes; smaller values are raised.
    /// - Throws: if OpenSSL refuses the certificate, its key or an option.
    package convenience init(
        identity: DTLSIdentity, profiles: [SRTPProfile] = SRTPProfile.preference,
        cipherSuites: [DTLSCipherSuite] = DTLSCipherSuite.preference, mtu: Int = defaultMTU
    ) throws(CryptoError) {
        try self.init(profiles: profiles, cipherSuites: cipherSuites, mtu: mtu)
        try install(identity)
    }

    /// A context without a certificate: a client with it is refused by the server.
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
        // Independent of the machine's openssl.cnf. Certificates are pinned, so an old RSA key endangers its owner
        // only.
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
        // Unlike the other functions, this one returns 0 for success.
        guard unsafe SSL_CTX_set_tlsext_use_srtp(context, names) == 0 else {
            throw CryptoError("SSL_CTX_set_tlsext_use_srtp")
        }
    }

    /// Sets certificate and key.
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
