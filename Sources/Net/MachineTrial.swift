import Base
import CLinux

/// Checks of this machine that need no running server.
package enum MachineTrial {
    /// Whether the system clock is synchronized (STA_UNSYNC of adjtimex(2) is clear); nil if the kernel does not
    /// report it.
    package static var isClockSynchronised: Bool? {
        let result = clinux_clock_is_synchronised()
        return result < 0 ? nil : result > 0
    }

    /// Binds an address and releases it again, to find out whether it is free.
    /// - Returns: the `errno` of the refusal; nil if the address is free.
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
