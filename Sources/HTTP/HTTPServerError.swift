import Base

/// Why a server cannot start, in words that say how to mend it.
package enum HTTPServerError: Error, Equatable, CustomStringConvertible {
    case addressInUse(TransportAddress)
    case addressNotAvailable(TransportAddress)
    case permissionDenied(TransportAddress)
    /// `detail` comes from the system.
    case cannotListen(TransportAddress, detail: String)
    case unreadableFile(String, detail: String)
    /// The certificate and the key were read, but TLS refuses them.
    case badCertificate(certificate: String, key: String, detail: String)
    case missingEventPlugin(detail: String)
    case libraryFailed(detail: String)

    /// In words for an operator, with the option to change.
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
