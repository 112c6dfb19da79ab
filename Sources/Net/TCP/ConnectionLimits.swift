import Base
import CLinux

/// Limits on TCP connections for media.
package struct ConnectionLimits: Sendable {
    /// Connections of all workers together.
    package var total = 8_192
    /// Connections from one IPv4 address or one IPv6 /64, which an office may share.
    ///
    /// An IPv6 /56 may have 4 times and a /48 16 times as many, but never more than half of `total`.
    package var perAddress = 1_024
    /// Connections that have not named their session yet, in all.
    package var waiting = 1_024
    /// Connections that have not named their session yet, from one address.
    package var waitingPerAddress = 128
    /// How long a connection may take to name its session.
    package var patience = Duration.seconds(5)

    /// The limits of a node.
    package init() {}
}

/// The descriptor of a TCP connection; closed when its last owner releases it.
package final class AcceptedConnection: Sendable {
    /// The address of its other end.
    package let remote: TransportAddress
    let descriptor: Int32
    private let quotas: [ConnectionQuota]

    /// - Parameter quotas: in which it occupies a place until it closes.
    init(descriptor: Int32, remote: TransportAddress, quotas: [ConnectionQuota]) {
        self.descriptor = descriptor
        self.remote = remote
        self.quotas = quotas
    }

    deinit {
        // Before the close, so that a client that sees the end can connect again immediately.
        for quota in quotas { quota.giveBack(remote.ip) }
        clinux_close(descriptor)
    }
}

/// A connection on its way to its worker.
package struct ConnectionHandover: Sendable {
    let connection: AcceptedConnection
    /// Bytes that were read from it before.
    let firstBytes: [UInt8]
    /// When the connection is closed if no session has its address by then.
    let deadline: MonotonicTime
}
