import Base
import CLinux
import Glibc

/// Why a worker could not be started; says what to do about it.
package enum NetError: Error, Equatable, CustomStringConvertible {
    case addressInUse(TransportAddress)
    case addressNotLocal(TransportAddress)
    case notPermitted(TransportAddress)
    case noIPv6(TransportAddress)
    case tooManyOpenFiles
    /// Anything else, with the kernel's reason.
    case system(operation: String, code: Int32)

    /// - Parameter code: an errno, positive.
    init(binding address: TransportAddress, code: Int32) {
        switch code {
        case EADDRINUSE: self = .addressInUse(address)
        case EADDRNOTAVAIL: self = .addressNotLocal(address)
        case EACCES, EPERM: self = .notPermitted(address)
        case EAFNOSUPPORT: self = .noIPv6(address)
        case EMFILE, ENFILE: self = .tooManyOpenFiles
        default: self = .system(operation: "bind UDP \(address)", code: code)
        }
    }

    package var description: String {
        switch self {
        case .addressInUse(let address):
            "UDP address \(address) is in use by another program: stop it, or choose another port"
        case .addressNotLocal(let address):
            "UDP address \(address) is not an address of this machine: bind 0.0.0.0 or one that is"
        case .notPermitted(let address):
            "not permitted to bind UDP address \(address): choose a port above 1023"
        case .noIPv6(let address):
            "this machine has no IPv6, cannot bind UDP address \(address): bind 0.0.0.0"
        case .tooManyOpenFiles:
            "too many open files: raise the limit (ulimit -n)"
        case .system(let operation, let code):
            "cannot \(operation): \(String(cString: strerror(code)))"
        }
    }
}
