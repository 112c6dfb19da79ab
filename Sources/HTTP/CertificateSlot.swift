import CWebSockets

/// The certificate that TLS handshakes present after a renewal; empty until then.
///
/// While it is empty, OpenSSL presents the certificate of the start. Belongs to the service thread, on which
/// libwebsockets performs handshakes and reads `current`.
@safe final class CertificateSlot {
    /// Points to a `cws_certificate`, or to null; the certificate is freed when another replaces it, and in `deinit`.
    private let current: UnsafeMutablePointer<OpaquePointer?>

    init() {
        unsafe current = .allocate(capacity: 1)
        unsafe current.initialize(to: nil)
    }

    deinit {
        unsafe cws_certificate_free(current.pointee)
        unsafe current.deallocate()
    }

    /// Makes the TLS library read `current` at the beginning of each handshake.
    /// - Parameter library: an `SSL_CTX`; no handshake of it may begin after this object is gone.
    func attach(to library: UnsafeMutableRawPointer?) {
        unsafe cws_present(library, current)
    }

    /// Presents a certificate from the next handshake on.
    ///
    /// Handshakes under way hold references of their own to the previous one, so it can be freed here.
    func put(_ certificate: consuming ServerCertificate) {
        unsafe cws_certificate_free(current.pointee)
        unsafe current.pointee = unsafe OpaquePointer(bitPattern: certificate.relinquish())
    }
}
