import Base
import Foundation
import Glibc

/// An HTTP/1.1 and WebSocket server on libwebsockets, with one service thread.
///
/// This object is the handle for other threads: it only posts commands to the service thread.
package final class HTTPServer: Sendable {
    /// The address it listens on, with the actual port if the settings left the choice to the kernel.
    package let address: TransportAddress
    private let link: ServiceLink
    private let isSecure: Bool

    private init(address: TransportAddress, link: ServiceLink, isSecure: Bool) {
        self.address = address
        self.link = link
        self.isSecure = isSecure
    }

    /// Starts the service thread and returns once the server accepts connections.
    /// - Throws: if a TLS file is unreadable or unsuitable, the address cannot be bound, or libwebsockets fails.
    package static func start(
        _ settings: HTTPServerSettings, handler: any HTTPHandler, counters: HTTPCounters = HTTPCounters(),
        log: Log
    ) async throws(HTTPServerError) -> HTTPServer {
        raiseDescriptorLimit()
        if let tls = settings.tls {
            for path in [tls.certificate, tls.key] { try requireReadable(path) }
        }
        let (address, descriptor) = try listen(settings)
        let link = ServiceLink()
        let result = await withCheckedContinuation { continuation in
            let thread = Thread {
                do {
                    let loop = ServiceLoop(
                        settings: settings,
                        listener: descriptor.map { ListenSocket(adopting: $0, address) },
                        handler: handler,
                        link: link, counters: counters, log: log.subsystem("http"))
                    loop.run { continuation.resume(returning: $0) }
                }
                // The loop is gone, and with it the listening socket: from here on another server can bind the port.
                link.finish()
            }
            thread.name = "http"
            thread.start()
        }
        try result.get()
        return HTTPServer(address: address, link: link, isSecure: settings.tls != nil)
    }

    /// Binds the listening socket on the caller's thread, so that errors surface before a thread exists.
    /// - Returns: the bound address, and the descriptor; nil as descriptor if another component listens.
    private static func listen(
        _ settings: HTTPServerSettings
    ) throws(HTTPServerError) -> (TransportAddress, CInt?) {
        guard settings.listens else { return (settings.address, nil) }
        let listener = try ListenSocket(settings.address)
        let address = listener.address
        return (address, listener.relinquish())
    }

    /// Serves a connection that another component has accepted; the server owns the descriptor from then on.
    ///
    /// All limits apply to it. If 1,024 such connections are waiting already, it is closed.
    ///
    /// - Parameters:
    ///   - descriptor: a connected, non-blocking socket.
    ///   - client: the client's address, which may differ from the socket's peer.
    ///   - isDecrypted: whether TLS has been terminated before, so that the connection speaks plain HTTP.
    package func adopt(_ descriptor: CInt, from client: TransportAddress, isDecrypted: Bool) {
        let adoption = Adoption(descriptor: descriptor, client: client, isDecrypted: isDecrypted)
        if !link.post(adoption) { close(descriptor) }
    }

    /// Reads the TLS files again and presents the new certificate in handshakes from now on.
    ///
    /// Established connections continue with the old one. If a file is missing or invalid, nothing changes.
    ///
    /// - Parameter files: may differ from those of the start; ignored by a server without TLS.
    /// - Throws: as `ServerCertificate.init(_:)`.
    package func renewCertificate(_ files: HTTPServerSettings.TLSFiles?) throws(HTTPServerError) {
        guard isSecure, let files else { return }
        link.present(try ServerCertificate(files))
    }

    /// Returns once the service thread has performed all commands posted before; immediately after the end.
    package func turn() async {
        await withCheckedContinuation { continuation in
            if !link.post(.turn(continuation)) { continuation.resume() }
        }
    }

    /// Stops accepting, lets requests finish for up to `grace`, and returns when every connection is closed.
    package func stop(grace: Duration = .seconds(5)) async {
        link.post(.stop(grace: grace))
        await link.finished()
    }

    /// Opens a file for a test, because libwebsockets' own message does not name the file that is missing.
    static func requireReadable(_ path: String) throws(HTTPServerError) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw unsafe .unreadableFile(path, detail: String(cString: strerror(errno)))
        }
        close(descriptor)
    }

    /// Raises the limit of open files: each client takes a descriptor, and 1,024 is a common default.
    ///
    /// At most 262,144, because libwebsockets allocates a table with one entry per possible descriptor.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, 262_144)
        guard limit.rlim_cur != wanted else { return }
        limit.rlim_cur = wanted
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
