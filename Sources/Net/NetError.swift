import Base
import CLinux
import Glibc

/// Why a socket, a port or a thread could not be set up; the description names what to do about it.
package enum NetError: Error, Equatable, CustomStringConvertible {
    /// Another program has the port.
    case addressInUse(TransportAddress)
    /// No interface of this machine has the address.
    case addressNotLocal(TransportAddress)
    /// The process may not bind the port, as those below 1024 without privileges.
    case notPermitted(TransportAddress)
    /// The address is IPv6, which the kernel does not support or has switched off.
    case noIPv6(TransportAddress)
    /// The process or the system has no descriptor left.
    case tooManyOpenFiles
    /// Any other failure, with the kernel's `errno`.
    case system(operation: String, code: Int32)

    /// Translates a failed bind.
    /// - Parameter code: an `errno`, positive.
    init(binding address: TransportAddress, code: Int32) {
        switch code {
        case EADDRINUSE: self = .addressInUse(address)
        case EADDRNOTAVAIL: self = .addressNotLocal(address)
        case EACCES, EPERM: self = .notPermitted(address)
        case EAFNOSUPPORT: self = .noIPv6(address)
        case EMFILE, ENFILE: self = .tooManyOpenFiles
        default: self = .system(operation: "bind \(address.named)", code: code)
        }
    }

    /// What failed and why, and what an operator can do about it.
    package var description: String {
        switch self {
        case .addressInUse(let address):
            "\(address.named) is in use by another program; stop that program, or choose another port"
                + (address.transport == .tcp
                    ? " (for media: with --tcp, or --tcp off to do without)"
                    : " (for media: with --udp)")
        case .addressNotLocal(let address):
            "\(address.named) is not an address of this machine; choose one that is, or 0.0.0.0 for all"
        case .notPermitted(let address):
            "this user may not open \(address.named); choose a port above 1023"
        case .noIPv6(let address):
            "cannot open \(address.named), because this machine has no IPv6; choose an IPv4 address, "
                + "or 0.0.0.0 for all"
        case .tooManyOpenFiles:
            "too many files are open; raise the limit (ulimit -n, or LimitNOFILE in systemd)"
        case .system(let operation, let code):
            unsafe "cannot \(operation): \(String(cString: strerror(code)))"
        }
    }
}

extension TransportAddress {
    /// With its transport, as in `UDP address 192.0.2.1:7000`.
    fileprivate var named: String { "\(transport == .tcp ? "TCP" : "UDP") address \(self)" }
}
