import Base

/// Why a server cannot start; the description tells the operator how to fix it.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
    /// `EADDRINUSE`: another socket is bound to the address.
    case addressInUse(TransportAddress)
    /// `EADDRNOTAVAIL`: the address belongs to no interface of this machine.
    case addressNotAvailable(TransportAddress)
    /// `EACCES` or `EPERM`, usually a port below 1024.
    case permissionDenied(TransportAddress)
    /// Any other error of the socket calls; `detail` is the system's text.
    case cannotListen(TransportAddress, detail: String)
    /// A TLS file that cannot be opened; `detail` is the system's text.
    case unreadableFile(String, detail: String)
    /// The files are readable, but they are no PEM or do not belong together; `detail` is the library's text.
    case badCertificate(certificate: String, key: String, detail: String)
    /// Debian packages libwebsockets' libuv support separately, as a plugin loaded at run time.
    case missingEventPlugin(detail: String)
    /// libwebsockets could not start; `detail` is its first log line.
    case libraryFailed(detail: String)

    /// For operators, with the option to change.
    package var description: String {
        switch self {
        case .addressInUse(let address):
            "the HTTP address \(address) is in use by another program; stop it or choose another with --http"
        case .addressNotAvailable(let address):
            "this machine has no address \(address.ip); choose one of its own, or 0.0.0.0 for all, with --http"
        case .permissionDenied(let address):
            "port \(address.port) needs more rights than this user has; choose one above 1023 with --http"
        case .cannotListen(let address, let detail):
            "cannot listen on the HTTP address \(address): \(detail)"
        case .unreadableFile(let path, let detail):
            "cannot read \(path): \(detail); check --tls-certificate and --tls-key"
        case .badCertificate(let certificate, let key, let detail):
            "TLS does not accept \(certificate) with \(key): \(detail); "
                + "both must be PEM files and belong to each other"
        case .missingEventPlugin(let detail):
            "libwebsockets' libuv plugin is missing (\(detail)); install the package libwebsockets-evlib-uv"
        case .libraryFailed(let detail):
            "libwebsockets refused to start: \(detail)"
        }
    }
}
