import Base
import CLinux
import Synchronization

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

/// Counts connections, or other things that clients occupy, by the client's network, and enforces limits.
///
/// May be used by any thread.
package final class ConnectionQuota: Sendable {
    private struct State {
        var total = 0
        var counts: [ClientNetwork: Int] = [:]
    }

    private let state = Mutex(State())
    private let total: Int
    private let perAddress: Int
    private let share: Int

    /// - Parameters:
    ///   - total: limit over all addresses.
    ///   - perAddress: limit for one IPv4 address or one IPv6 /64.
    ///   - share: limit for a larger IPv6 network; at least `perAddress`.
    package init(total: Int, perAddress: Int, share: Int) {
        self.total = total
        self.perAddress = perAddress
        self.share = max(share, perAddress)
    }

    /// What is occupied now, over all addresses.
    package var count: Int { state.withLock { $0.total } }

    /// Occupies one place for an address.
    /// - Returns: false if a limit was reached; then nothing is occupied.
    package func take(_ address: IPAddress) -> Bool {
        let networks = ClientNetwork.all(of: address)
        return state.withLock { state in
            guard state.total < total, hasRoom(in: networks, state) else { return false }
            state.total += 1
            for network in networks { state.counts[network, default: 0] += 1 }
            return true
        }
    }

    /// Releases a place that `take` occupied for this address.
    package func giveBack(_ address: IPAddress) {
        state.withLock { state in
            state.total -= 1
            for network in ClientNetwork.all(of: address) {
                let count = state.counts[network, default: 1] - 1
                state.counts[network] = count > 0 ? count : nil
            }
        }
    }

    /// Whether an address has fewer places than its limit, whatever the total.
    func isOpen(to address: IPAddress) -> Bool {
        let networks = ClientNetwork.all(of: address)
        return state.withLock { hasRoom(in: networks, $0) }
    }

    private func hasRoom(in networks: [ClientNetwork], _ state: State) -> Bool {
        networks.allSatisfy { state.counts[$0, default: 0] < limit(of: $0) }
    }

    private func limit(of network: ClientNetwork) -> Int {
        min(perAddress * Int(network.factor), share)
    }
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
