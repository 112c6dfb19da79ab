import CWebSockets
import Glibc
import Synchronization

/// A libwebsockets context, with the libuv loop it runs on.
///
/// Never taken down: libwebsockets 4.1 closes the event descriptor of a context with libuv twice, and by the second
/// time the number may belong to a socket of another thread. What a stopped server leaves is some kilobytes and a
/// handful of descriptors, once per process but in tests.
@safe final class LibraryContext {
    let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private(set) var context: OpaquePointer?
    private(set) var host: OpaquePointer?
    // The library keeps pointers to both, for ever: they are never freed.
    private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    /// Not h2: libwebsockets 4.1 uses freed memory on hostile HTTP/2 frames.
    private let alpn = unsafe strdup("http/1.1")

    /// Keeps what was abandoned reachable, so that leak checkers know it is meant.
    private static let abandoned = Mutex<[UInt]>([])

    /// - Parameter user: what the callbacks get from `lws_context_user`.
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

    /// - Returns: what libwebsockets has to say about it.
    private func create(_ settings: HTTPServerSettings, _ user: UnsafeMutableRawPointer) -> [String] {
        var wanted = unsafe cws_settings()
        unsafe wanted.loop = unsafe loop
        unsafe wanted.callback = unsafe serviceCallback
        unsafe wanted.protocols = unsafe protocols
        unsafe wanted.user = unsafe user
        unsafe wanted.alpn = unsafe UnsafePointer(alpn)
        // What is a little too large still reaches us, and gets its 431.
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
