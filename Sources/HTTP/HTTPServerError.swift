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

    /// What failed and why, and what an operator can do about it.
    package var description: String {
        switch self {
        case .addressInUse(let address):
            "the HTTP address \(address) is in use by another program; stop that program, "
                + "or choose another address \(Self.option)"
        case .addressNotAvailable(let address):
            "\(address.ip) is not an address of this machine; choose one that is, or 0.0.0.0 for all, "
                + Self.option
        case .permissionDenied(let address):
            "this user may not open port \(address.port); choose one above 1023 \(Self.option)"
        case .cannotListen(let address, let detail):
            "cannot listen on the HTTP address \(address): \(detail); choose another address \(Self.option)"
        case .unreadableFile(let path, let detail):
            "cannot read \(path): \(detail); check --tls-certificate and --tls-key, "
                + "and that the server's user may read both files"
        case .badCertificate(let certificate, let key, let detail):
            "cannot use \(certificate) with \(key) for TLS: \(detail); "
                + "both must be PEM files, and the key must be the certificate's"
        case .missingEventPlugin(let detail):
            "libwebsockets' plugin for libuv is missing (\(detail)); "
                + "install the package libwebsockets-evlib-uv"
        case .libraryFailed(let detail):
            "libwebsockets could not start: \(detail)"
        }
    }

    /// The options that set an address of HTTP.
    private static let option = "with --http (--admin for the operators' port)"
}
