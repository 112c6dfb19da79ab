import CWebSockets

/// What handshakes present: the certificate of the start, until another one is put here.
///
/// Belongs to the thread of the handshakes, as `LibraryContext` does, whose library looks into it.
@safe final class CertificateSlot {
    /// A `cws_certificate`, which is freed when another one comes; made in `init` and freed in `deinit`.
    private let current: UnsafeMutablePointer<OpaquePointer?>

    init() {
        unsafe current = .allocate(capacity: 1)
        unsafe current.initialize(to: nil)
    }

    deinit {
        unsafe cws_certificate_free(current.pointee)
        unsafe current.deallocate()
    }

    /// Has the library look here at the beginning of each handshake.
    /// - Parameter library: its `SSL_CTX`, of which no handshake may begin once this is gone.
    func attach(to library: UnsafeMutableRawPointer?) {
        unsafe cws_present(library, current)
    }

    /// Of handshakes from now on; those under way hold what they need of the one before.
    func put(_ certificate: consuming ServerCertificate) {
        unsafe cws_certificate_free(current.pointee)
        unsafe current.pointee = unsafe OpaquePointer(bitPattern: certificate.relinquish())
    }
}
