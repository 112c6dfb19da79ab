import Base
import CLinux

/// What can be tried on this machine without serving anybody.
package enum MachineTrial {
    /// Whether the system's time follows a clock that is right; nil where the kernel does not tell.
    package static var isClockSynchronised: Bool? {
        let result = clinux_clock_is_synchronised()
        return result < 0 ? nil : result > 0
    }

    /// Takes a port and gives it back.
    /// - Returns: the kernel's reason against it, an `errno`; nil if it is free.
    package static func refusal(of address: TransportAddress) -> Int32? {
        let descriptor =
            switch address.transport {
            case .udp: clinux_udp_open(clinux_address(address), 0)
            case .tcp: clinux_tcp_listen(clinux_address(address), 1)
            }
        guard descriptor >= 0 else { return -descriptor }
        clinux_close(descriptor)
        return nil
    }
}
