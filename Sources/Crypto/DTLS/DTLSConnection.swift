import COpenSSL

/// OpenSSL's state of one DTLS association.
///
/// Owns the `SSL` and its two memory BIOs. OpenSSL's retransmission timer is set beyond the end of any handshake,
/// because it runs by the system's clock: `DTLSEndpoint` retransmits, by the time that is passed in.
@safe final class DTLSConnection {
    /// The result of a handshake step.
    enum Progress {
        /// The peer has to answer first.
        case wantsMore
        case finished
        /// With OpenSSL's reason.
        case failed(String)
    }

    /// Checks the peer's certificate when OpenSSL calls, and remembers whether it was refused.
    private final class Verifier {
        let expected: [CertificateFingerprint]
        var isRefused = false

        init(expected: [CertificateFingerprint]) {
            self.expected = expected
        }

        /// Accepts a certificate whose key is affordable and whose fingerprint was announced.
        func accepts(_ certificate: OpaquePointer?) -> Bool {
            // Refused until proven otherwise.
            isRefused = true
            guard let certificate = unsafe certificate, unsafe CertificateKey.isAffordable(certificate) else {
                return false
            }
            isRefused = !expected.contains { unsafe $0.matches(certificate) }
            return !isRefused
        }
    }

    // Freed in `deinit` and nowhere else. Beyond a call OpenSSL keeps one pointer from here, to `verifier`, which
    // lives as long as this object.
    private let ssl: OpaquePointer
    /// Bytes from the network; freed with `ssl`.
    private let input: OpaquePointer
    /// Bytes for the network; freed with `ssl`.
    private let output: OpaquePointer
    private let verifier: Verifier

    /// - Parameter expected: fingerprints of which the peer's certificate must have one.
    init(_ context: DTLSContext, _ role: DTLSRole, expected: [CertificateFingerprint]) throws(CryptoError) {
        guard let ssl = unsafe SSL_new(context.context) else { throw CryptoError("SSL_new") }
        guard let input = unsafe rostrum_dtls_make_bio(), let output = unsafe rostrum_dtls_make_bio() else {
            unsafe SSL_free(ssl)
            throw CryptoError("BIO_new")
        }
        unsafe SSL_set_bio(ssl, input, output)
        unsafe self.ssl = unsafe ssl
        unsafe self.input = unsafe input
        unsafe self.output = unsafe output
        verifier = Verifier(expected: expected)
        unsafe rostrum_dtls_set_mtu(ssl, CLong(context.mtu))
        unsafe DTLS_set_timer_cb(ssl) { _, _ in CUnsignedInt.max }
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(verifier).toOpaque())
        if role == .client { unsafe SSL_set_connect_state(ssl) } else { unsafe SSL_set_accept_state(ssl) }
    }

    deinit {
        unsafe SSL_free(ssl)
    }

    /// Callback for `SSL_CTX_set_cert_verify_callback`: returns 1 if the certificate is expected.
    static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> CInt = { store, _ in
        guard let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let pointer = unsafe SSL_get_ex_data(OpaquePointer(ssl), 0)
        else { return 0 }
        let verifier = unsafe Unmanaged<Verifier>.fromOpaque(pointer).takeUnretainedValue()
        if unsafe verifier.accepts(X509_STORE_CTX_get0_cert(store)) { return 1 }
        // OpenSSL then sends the alert bad_certificate.
        unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
        return 0
    }

    /// Whether the handshake failed because of the peer's certificate.
    var isCertificateRefused: Bool {
        verifier.isRefused
    }

    /// Whether to pass a record to OpenSSL.
    ///
    /// An encrypted record that is shorter than nonce and tag is a fatal error for OpenSSL, although RFC 6347
    /// §4.1.2.7 requires that it be dropped: anyone could end the association with one datagram. After the handshake,
    /// unencrypted records are not passed on at all.
    func canRead(_ record: DTLSRecord) -> Bool {
        guard unsafe SSL_is_init_finished(ssl) == 1, let suite else {
            return record.epoch == 0 || record.bodyRange.count >= 8 + 16
        }
        return record.epoch == 1 && record.bodyRange.count >= suite.explicitNonceLength + 16
    }

    /// The negotiated cipher suite; nil before there is one.
    private var suite: DTLSCipherSuite? {
        guard let cipher = unsafe SSL_get_current_cipher(ssl) else { return nil }
        return unsafe DTLSCipherSuite(rawValue: UInt16(truncatingIfNeeded: SSL_CIPHER_get_id(cipher)))
    }

    /// Passes records to OpenSSL; the next call reads all of them, as if they had arrived in one datagram.
    func feed(_ records: Span<UInt8>) {
        unsafe records.withUnsafeBytes { bytes in
            _ = unsafe BIO_write(input, bytes.baseAddress, CInt(truncatingIfNeeded: bytes.count))
        }
    }

    /// Takes the records that OpenSSL has written since the last call.
    func takeOutput() -> [UInt8] {
        let pending = unsafe BIO_ctrl_pending(output)
        guard pending > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: pending) { buffer, count in
            count = unsafe max(
                0, Int(BIO_read(output, buffer.baseAddress, CInt(truncatingIfNeeded: pending))))
        }
    }

    /// Continues the handshake with what was fed.
    func handshake() -> Progress {
        // Otherwise `SSL_get_error` could report an older error of this thread; the same holds for all calls below.
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(ssl)
        guard result != 1 else { return .finished }
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .wantsMore
        default: return .failed(CryptoError.takeReason())
        }
    }

    // MARK: After the handshake

    /// Decrypts what was fed.
    /// - Returns: application data, and whether the peer has closed or broken the association.
    func read() -> (data: [[UInt8]], isClosed: Bool) {
        var data: [[UInt8]] = []
        while true {
            ERR_clear_error()
            var result: CInt = 0
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, count in
                result = unsafe SSL_read(ssl, buffer.baseAddress, CInt(Self.readSize))
                count = max(0, Int(result))
            }
            guard result <= 0 else {
                data.append(bytes)
                continue
            }
            let error = unsafe SSL_get_error(ssl, result)
            ERR_clear_error()
            return (data, error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        }
    }

    /// Longer than any application data expected here; longer data is returned in pieces.
    private static let readSize = 2_048

    /// Encrypts one record.
    /// - Returns: false if OpenSSL refuses.
    func write(_ bytes: Span<UInt8>) -> Bool {
        ERR_clear_error()
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe SSL_write(ssl, bytes.baseAddress, CInt(truncatingIfNeeded: bytes.count))
        }
        ERR_clear_error()
        return result > 0
    }

    /// Writes a close_notify alert into the output.
    func shutDown() {
        unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Exports the keys for SRTP; nil if no SRTP profile was negotiated.
    func exportKeyingMaterial() -> SRTPKeyingMaterial? {
        guard let selected = unsafe SSL_get_selected_srtp_profile(ssl),
            let profile = unsafe SRTPProfile(rawValue: UInt16(truncatingIfNeeded: selected.pointee.id))
        else { return nil }
        // The exporter's label and the absence of a context are those of RFC 5764 §4.2.
        let label = "EXTRACTOR-dtls_srtp"
        let exported = unsafe SecretBytes(count: SRTPKeyingMaterial.exportLength(profile)) { exported in
            unsafe SSL_export_keying_material(
                ssl, exported.baseAddress, exported.count, label, label.utf8.count, nil, 0, 0) == 1
        }
        return exported.flatMap { SRTPKeyingMaterial(profile: profile, exported: $0) }
    }

    /// Derives what is needed to read the peer's alerts without this connection; nil if the cipher suite is unknown.
    func alertReader(as role: DTLSRole) -> DTLSAlertReader? {
        guard let session = unsafe SSL_get_session(ssl), let suite,
            let master = unsafe SecretBytes(
                count: 48,
                fill: { unsafe SSL_SESSION_get_master_key(session, $0.baseAddress, $0.count) == $0.count }
            )
        else { return nil }
        let client = unsafe Self.bytes(32) { unsafe SSL_get_client_random(ssl, $0, $1) }
        let server = unsafe Self.bytes(32) { unsafe SSL_get_server_random(ssl, $0, $1) }
        return DTLSAlertReader(
            suite, masterSecret: master, clientRandom: client, serverRandom: server,
            readingFrom: role == .client ? .server : .client)
    }

    private static func bytes(_ count: Int, _ fill: (UnsafeMutablePointer<UInt8>?, Int) -> Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = unsafe min(count, fill(buffer.baseAddress, count))
        }
    }
}
