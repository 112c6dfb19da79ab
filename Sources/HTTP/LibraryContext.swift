import CWebSockets
import Glibc
import Synchronization

/// A libwebsockets context, with the libuv loop it runs on.
///
/// Never destroyed: libwebsockets 4.1 closes the event descriptor of a context with libuv twice, and by the second
/// time the number may belong to a socket of another thread. A stopped server leaks a few kilobytes and a handful of
/// descriptors; outside of tests that happens once per process.
@safe final class LibraryContext {
    let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    /// Nil if libwebsockets could not start at all.
    private(set) var context: OpaquePointer?
    /// The virtual host, which holds the TLS settings; nil if libwebsockets rejected the certificate or key.
    private(set) var host: OpaquePointer?
    // The library keeps pointers to both for the life of the process, so they are never freed.
    private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    /// Protocol for ALPN; `h2` is not offered, because libwebsockets 4.1 uses freed memory on hostile HTTP/2 frames.
    private let alpn = unsafe strdup("http/1.1")

    /// Keeps the leaked addresses reachable, so that leak checkers do not report them.
    private static let abandoned = Mutex<[UInt]>([])

    /// Creates the loop, the context and its virtual host.
    /// - Parameter user: pointer that callbacks obtain from `lws_context_user`; must outlive the loop.
    /// - Throws: `missingEventPlugin`, `badCertificate` or `libraryFailed`, with libwebsockets' own words.
    init(_ settings: HTTPServerSettings, user: UnsafeMutableRawPointer) throws(HTTPServerError) {
        if let complaint = unsafe cws_load_event_plugin() {
            throw unsafe .missingEventPlugin(detail: String(cString: complaint))
        }
        unsafe uv_loop_init(loop)
        let kept = unsafe [UInt(bitPattern: loop), UInt(bitPattern: protocols), UInt(bitPattern: alpn)]
        Self.abandoned.withLock { $0 += kept }
        let complaints = unsafe create(settings, user)
        let created = unsafe UInt(bitPattern: context)
        Self.abandoned.withLock { $0.append(created) }
        guard unsafe host == nil else { return }
        let detail = complaints.first ?? "no reason given"
        guard let tls = settings.tls, unsafe context != nil else { throw .libraryFailed(detail: detail) }
        throw .badCertificate(certificate: tls.certificate, key: tls.key, detail: detail)
    }

    /// Creates context and host.
    /// - Returns: the error messages that libwebsockets logged meanwhile; empty if there were none.
    private func create(_ settings: HTTPServerSettings, _ user: UnsafeMutableRawPointer) -> [String] {
        var wanted = unsafe cws_settings()
        unsafe wanted.loop = unsafe loop
        unsafe wanted.callback = unsafe serviceCallback
        unsafe wanted.protocols = unsafe protocols
        unsafe wanted.user = unsafe user
        unsafe wanted.alpn = unsafe UnsafePointer(alpn)
        // Twice the limit, so that a head that is slightly too large still arrives here and is answered with 431.
        unsafe wanted.header_bytes = UInt32(clamping: 2 * settings.maximumHeaderBytes)
        unsafe wanted.header_seconds = UInt32(clamping: max(1, settings.receiveTimeout.components.seconds))
        unsafe wanted.idle_seconds = UInt32(clamping: max(1, settings.idleTimeout.components.seconds))
        let (created, complaints) = unsafe LibraryComplaints.collect {
            guard let tls = settings.tls else { return unsafe cws_create(&wanted, &host) }
            return unsafe tls.certificate.withCString { certificate in
                unsafe tls.key.withCString { key in
                    unsafe wanted.certificate_path = unsafe certificate
                    unsafe wanted.key_path = unsafe key
                    return unsafe cws_create(&wanted, &host)
                }
            }
        }
        unsafe context = unsafe created
        return complaints
    }
}
