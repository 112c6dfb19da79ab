import CWebSockets
import Glibc
import Synchronization

/// A libwebsockets context, with the libuv loop it runs on.
///
/// Never taken down: libwebsockets 4.1 closes the event descriptor of a context with libuv twice, and by the second
/// time the number may belong to a socket of another thread. What a stopped server leaves is some kilobytes and a
/// handful of descriptors, once per process but in tests.
final class LibraryContext {
    let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private(set) var context: OpaquePointer?
    private(set) var host: OpaquePointer?
    private let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    /// Not h2: libwebsockets 4.1 uses freed memory on hostile HTTP/2 frames.
    private let alpn = strdup("http/1.1")

    /// Keeps what was abandoned reachable, so that leak checkers know it is meant.
    private static let abandoned = Mutex<[UInt]>([])

    /// - Parameter user: what the callbacks get from `lws_context_user`.
    init(_ settings: HTTPServerSettings, user: UnsafeMutableRawPointer) throws(HTTPServerError) {
        if let complaint = cws_load_event_plugin() {
            throw .missingEventPlugin(detail: String(cString: complaint))
        }
        uv_loop_init(loop)
        let kept = [UInt(bitPattern: loop), UInt(bitPattern: protocols), UInt(bitPattern: alpn)]
        Self.abandoned.withLock { $0 += kept }
        let complaints = create(settings, user)
        let created = UInt(bitPattern: context)
        Self.abandoned.withLock { $0.append(created) }
        guard host == nil else { return }
        let detail = complaints.first ?? "no reason given"
        guard let tls = settings.tls, context != nil else { throw .libraryFailed(detail: detail) }
        throw .badCertificate(certificate: tls.certificate, key: tls.key, detail: detail)
    }

    /// - Returns: what libwebsockets has to say about it.
    private func create(_ settings: HTTPServerSettings, _ user: UnsafeMutableRawPointer) -> [String] {
        var wanted = cws_settings()
        wanted.loop = loop
        wanted.callback = serviceCallback
        wanted.protocols = protocols
        wanted.user = user
        wanted.alpn = UnsafePointer(alpn)
        // What is a little too large still reaches us, and gets its 431.
        wanted.header_bytes = UInt32(clamping: 2 * settings.maximumHeaderBytes)
        wanted.header_seconds = UInt32(clamping: max(1, settings.receiveTimeout.components.seconds))
        wanted.idle_seconds = UInt32(clamping: max(1, settings.idleTimeout.components.seconds))
        let (created, complaints) = LibraryComplaints.collect {
            guard let tls = settings.tls else { return cws_create(&wanted, &host) }
            return tls.certificate.withCString { certificate in
                tls.key.withCString { key in
                    wanted.certificate_path = certificate
                    wanted.key_path = key
                    return cws_create(&wanted, &host)
                }
            }
        }
        context = created
        return complaints
    }
}
