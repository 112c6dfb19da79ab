import Base
import CLinux

/// A client's TCP connection; closed when its last owner is gone.
package final class StreamSocket: Sendable {
    /// The client's own address, of transport `tcp`.
    package let localAddress: TransportAddress
    /// The server's address, of transport `tcp`.
    package let remoteAddress: TransportAddress
    let connection: AcceptedConnection

    /// Connects, and blocks until that has succeeded or failed.
    /// - Parameter milliseconds: the longest wait.
    /// - Throws: the kernel's reason, or a timeout.
    package init(connect remote: TransportAddress, milliseconds: Int32 = 3_000) throws(NetError) {
        let descriptor = clinux_tcp_connect(clinux_address(remote))
        guard descriptor >= 0 else {
            throw .system(operation: "connect to TCP \(remote)", code: -descriptor)
        }
        remoteAddress = remote.over(.tcp)
        connection = AcceptedConnection(descriptor: descriptor, remote: remoteAddress, quotas: [])
        let result = clinux_tcp_finish(descriptor, milliseconds)
        guard result == 0 else { throw .system(operation: "connect to TCP \(remote)", code: -result) }
        var local = clinux_address()
        _ = unsafe clinux_local_address(descriptor, &local)
        localAddress = TransportAddress(local).over(.tcp)
    }
}

/// The transport of one simulated client: a socket of its own.
package enum ClientSocket: Sendable {
    case datagram(DatagramSocket)
    case stream(StreamSocket)

    /// The client's own address, as the kernel chose it.
    package var localAddress: TransportAddress {
        switch self {
        case .datagram(let socket): socket.localAddress
        case .stream(let socket): socket.localAddress
        }
    }
}
