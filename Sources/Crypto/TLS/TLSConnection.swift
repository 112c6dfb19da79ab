import Base
import COpenSSL

/// One side of a TLS connection, which converts between bytes of the network and plain bytes.
///
/// It owns an `SSL` with two memory BIOs, and no socket. It is not `Sendable`: the thread that reads the socket
/// creates it. Each connection has a context of its own, so no two threads share one, and a renewed certificate
/// applies from the next connection on.
/// - Source: RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2); older versions are refused.
@safe package final class TLSConnection {
    /// Most bytes that one record may contain (RFC 8446 §5.1).
    private static let recordLength = 16_384

    // Freed in `deinit`. It holds the only reference to its context; OpenSSL keeps no pointer from here.
    private let ssl: OpaquePointer
    /// Bytes from the network; freed with `ssl`.
    private let input: OpaquePointer
    /// Bytes for the network; freed with `ssl`.
    private let output: OpaquePointer
    /// Plain bytes that wait until the handshake is complete.
    private var waiting: [UInt8] = []
    /// Whether the handshake is complete.
    package private(set) var isReady = false
    /// Whether nothing more is read: the other end closed the connection, its certificate was refused, or it sent
    /// invalid TLS.
    package private(set) var isClosed = false

    /// Creates the server's side.
    /// - Throws: if the certificate or key cannot be used.
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

    /// Creates the client's side, which requires a certificate for `host`, and starts the handshake.
    ///
    /// It trusts the system's certificates, or those in the file that the variable `SSL_CERT_FILE` names.
    /// - Parameter host: a name, or an IP address as text.
    /// - Throws: if OpenSSL cannot set up the connection.
    package convenience init(to host: String) throws(CryptoError) {
        ERR_clear_error()
        let isAddress: Int32 = IPAddress(host) == nil ? 0 : 1
        guard let ssl = unsafe rostrum_tls_client(host, isAddress) else {
            throw CryptoError("beginning TLS with \(host)")
        }
        try unsafe self.init(ssl)
        _ = shakeHands()
    }

    /// - Parameter ssl: knows its role; the new object owns it, also if this throws.
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

    /// Why the other end's certificate was refused; nil if it was accepted or has not arrived.
    package var complaint: String? {
        let result = unsafe SSL_get_verify_result(ssl)
        guard result != X509_V_OK, let text = unsafe X509_verify_cert_error_string(result) else { return nil }
        return unsafe String(cString: text)
    }

    /// Receives bytes from the network.
    /// - Returns: decrypted bytes.
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

    /// Encrypts plain bytes; before the handshake is complete they wait.
    package func send(_ plain: [UInt8]) {
        guard !plain.isEmpty, !isClosed else { return }
        waiting += plain
        writeWaiting()
    }

    /// Writes a close_notify alert into the output: nothing more will be sent.
    package func close() {
        guard isReady, !isClosed else { return }
        unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Takes the bytes to be sent over the network.
    package func takeOutput() -> [UInt8] {
        let pending = unsafe BIO_ctrl_pending(output)
        guard pending > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: pending) { buffer, count in
            count = unsafe max(
                0, Int(BIO_read(output, buffer.baseAddress, CInt(truncatingIfNeeded: pending))))
        }
    }

    /// Continues the handshake, and encrypts the waiting bytes once it is complete.
    /// - Returns: whether it is complete.
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

    /// Encrypts the waiting plain bytes, after the handshake.
    private func writeWaiting() {
        guard isReady, !waiting.isEmpty else { return }
        ERR_clear_error()
        let result = unsafe waiting.withUnsafeBytes { bytes in
            unsafe SSL_write(ssl, bytes.baseAddress, CInt(truncatingIfNeeded: bytes.count))
        }
        waiting.removeAll()
        // A memory BIO accepts everything, so a failure is not temporary.
        if result <= 0 { isClosed = true }
        ERR_clear_error()
    }

    /// Marks the connection as closed, unless OpenSSL only waits for more input or output.
    private func noteError(_ error: CInt) {
        ERR_clear_error()
        isClosed = isClosed || error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE
    }
}
