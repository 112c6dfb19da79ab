import Base
import COpenSSL

/// One end of a TLS connection: bytes of the network in, plain ones out, and the other way round.
///
/// Owns no socket, and an `SSL` with two memory BIOs. Not `Sendable`: whoever reads the socket makes it. Each has a
/// context of its own, so that no two threads share one and a renewed certificate holds from the next one on.
/// - Source: RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2); older versions are refused.
@safe package final class TLSConnection {
    /// As much as one record may hold (RFC 8446 §5.1).
    private static let recordLength = 16_384

    // Freed in `deinit`. It holds the context, of which nobody else has a reference; OpenSSL keeps no pointer of ours.
    private let ssl: OpaquePointer
    /// What comes from the network; belongs to `ssl`.
    private let input: OpaquePointer
    /// What goes to the network; belongs to `ssl`.
    private let output: OpaquePointer
    /// Plain bytes that wait for the end of the handshake.
    private var waiting: [UInt8] = []
    /// Whether the handshake is done.
    package private(set) var isReady = false
    /// Whether the other end closed the connection, is not who it should be, or sent what is no TLS: nothing is read
    /// any more.
    package private(set) var isClosed = false

    /// The server's end.
    /// - Throws: for a certificate or key that cannot be used.
    package convenience init(_ identity: TLSIdentity) throws(CryptoError) {
        ERR_clear_error()
        let (chain, key) = (identity.chain, identity.key.exposed)
        let context = unsafe rostrum_tls_server(chain, chain.count, key, key.count)
        guard let context = unsafe context else { throw CryptoError("using a certificate and its key") }
        defer { unsafe SSL_CTX_free(context) }
        guard let ssl = unsafe SSL_new(context) else { throw CryptoError("SSL_new") }
        unsafe SSL_set_accept_state(ssl)
        try unsafe self.init(ssl)
    }

    /// The client's end, which speaks with nobody but who has a certificate for a name.
    ///
    /// By the certificates that the system trusts, or the file that `SSL_CERT_FILE` names.
    /// - Parameter host: a name, or an IP address in its text form.
    package convenience init(to host: String) throws(CryptoError) {
        ERR_clear_error()
        let isAddress: Int32 = IPAddress(host) == nil ? 0 : 1
        guard let ssl = unsafe rostrum_tls_client(host, isAddress) else {
            throw CryptoError("beginning TLS with \(host)")
        }
        try unsafe self.init(ssl)
        _ = shakeHands()
    }

    /// - Parameter ssl: which knows what it is; belongs to the new object.
    private init(_ ssl: OpaquePointer) throws(CryptoError) {
        guard let input = unsafe BIO_new(BIO_s_mem()), let output = unsafe BIO_new(BIO_s_mem()) else {
            unsafe SSL_free(ssl)
            throw CryptoError("BIO_new")
        }
        unsafe SSL_set_bio(ssl, input, output)
        unsafe self.ssl = unsafe ssl
        unsafe self.input = unsafe input
        unsafe self.output = unsafe output
    }

    deinit {
        unsafe SSL_free(ssl)
    }

    /// What is wrong with the other end's certificate; nil where nothing is, or there was none yet.
    package var complaint: String? {
        let result = unsafe SSL_get_verify_result(ssl)
        guard result != X509_V_OK, let text = unsafe X509_verify_cert_error_string(result) else { return nil }
        return unsafe String(cString: text)
    }

    /// Takes bytes of the network in.
    /// - Returns: plain ones.
    package func receive(_ bytes: Span<UInt8>) -> [UInt8] {
        guard !isClosed else { return [] }
        let taken = unsafe bytes.withUnsafeBytes { bytes in
            unsafe BIO_write(input, bytes.baseAddress, CInt(truncatingIfNeeded: bytes.count))
        }
        guard Int(taken) == bytes.count, shakeHands() else { return [] }
        var plain: [UInt8] = []
        while true {
            ERR_clear_error()
            var result: CInt = 0
            plain += unsafe [UInt8](unsafeUninitializedCapacity: Self.recordLength) { buffer, count in
                result = unsafe SSL_read(ssl, buffer.baseAddress, CInt(Self.recordLength))
                count = max(0, Int(result))
            }
            guard result <= 0 else { continue }
            noteError(unsafe SSL_get_error(ssl, result))
            return plain
        }
    }

    /// Encrypts plain bytes, once the handshake is done.
    package func send(_ plain: [UInt8]) {
        guard !plain.isEmpty, !isClosed else { return }
        waiting += plain
        writeWaiting()
    }

    /// Says that nothing more comes.
    package func close() {
        guard isReady, !isClosed else { return }
        unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// What is to go over the network since the last call.
    package func takeOutput() -> [UInt8] {
        let pending = unsafe BIO_ctrl_pending(output)
        guard pending > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: pending) { buffer, count in
            count = unsafe max(
                0, Int(BIO_read(output, buffer.baseAddress, CInt(truncatingIfNeeded: pending))))
        }
    }

    /// - Returns: whether the handshake is done.
    private func shakeHands() -> Bool {
        guard !isReady else { return true }
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(ssl)
        guard result == 1 else {
            noteError(unsafe SSL_get_error(ssl, result))
            return false
        }
        isReady = true
        writeWaiting()
        return true
    }

    private func writeWaiting() {
        guard isReady, !waiting.isEmpty else { return }
        ERR_clear_error()
        let result = unsafe waiting.withUnsafeBytes { bytes in
            unsafe SSL_write(ssl, bytes.baseAddress, CInt(truncatingIfNeeded: bytes.count))
        }
        waiting.removeAll()
        // Memory takes all of it.
        if result <= 0 { isClosed = true }
        ERR_clear_error()
    }

    private func noteError(_ error: CInt) {
        ERR_clear_error()
        isClosed = isClosed || error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE
    }
}
