import Base
import Foundation
import Glibc

/// An HTTP/1.1 and WebSocket server on libwebsockets, with one service thread.
package final class HTTPServer: Sendable {
    /// Where it listens, with the port the kernel chose if it was asked to.
    package let address: TransportAddress
    private let link: ServiceLink
    private let isSecure: Bool

    private init(address: TransportAddress, link: ServiceLink, isSecure: Bool) {
        self.address = address
        self.link = link
        self.isSecure = isSecure
    }

    /// Returns once the server accepts connections.
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
                // The loop has gone, and with it the listening socket: another server may have the port.
                link.finish()
            }
            thread.name = "http"
            thread.start()
        }
        try result.get()
        return HTTPServer(address: address, link: link, isSecure: settings.tls != nil)
    }

    /// - Returns: nil as descriptor where others listen.
    private static func listen(
        _ settings: HTTPServerSettings
    ) throws(HTTPServerError) -> (TransportAddress, CInt?) {
        guard settings.listens else { return (settings.address, nil) }
        let listener = try ListenSocket(settings.address)
        let address = listener.address
        return (address, listener.relinquish())
    }

    /// Takes a connection that somebody else has accepted, which does not block and is the server's from then on.
    ///
    /// All limits hold for it as for others. Where too many are on their way it is closed.
    ///
    /// - Parameters:
    ///   - client: where it comes from, whatever the descriptor says.
    ///   - isDecrypted: whether TLS was taken off it, so that it counts as secure without any.
    package func adopt(_ descriptor: CInt, from client: TransportAddress, isDecrypted: Bool) {
        let adoption = Adoption(descriptor: descriptor, client: client, isDecrypted: isDecrypted)
        if !link.post(adoption) { close(descriptor) }
    }

    /// Reads the TLS files again, and presents what they hold to those who connect from now on; who is connected stays.
    ///
    /// Where one of them is missing or makes no sense, all stays as it was.
    ///
    /// - Parameter files: which may be others than those of the start; nothing for a server without TLS.
    package func renewCertificate(_ files: HTTPServerSettings.TLSFiles?) throws(HTTPServerError) {
        guard isSecure, let files else { return }
        link.present(try ServerCertificate(files))
    }

    /// Returns once the service thread has had a turn.
    package func turn() async {
        await withCheckedContinuation { continuation in
            if !link.post(.turn(continuation)) { continuation.resume() }
        }
    }

    /// Stops accepting, lets what is under way finish for at most `grace`, and returns when all is closed.
    package func stop(grace: Duration = .seconds(5)) async {
        link.post(.stop(grace: grace))
        await link.finished()
    }

    static func requireReadable(_ path: String) throws(HTTPServerError) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw unsafe .unreadableFile(path, detail: String(cString: strerror(errno)))
        }
        close(descriptor)
    }

    /// The usual 1,024 descriptors would be 1,024 clients.
    ///
    /// Not more than 262,144, because libwebsockets allocates a table as long as the limit.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, 262_144)
        guard limit.rlim_cur != wanted else { return }
        limit.rlim_cur = wanted
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
