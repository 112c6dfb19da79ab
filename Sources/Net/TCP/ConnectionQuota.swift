import Base
import CLinux
import Synchronization

/// How many TCP connections there may be.
package struct ConnectionLimits: Sendable {
    /// Of all workers together.
    package var total = 8_192
    /// From one IPv4 address, or from one IPv6 network of 64 bits; an office may share one.
    ///
    /// IPv6 networks of 56 and of 48 bits may have 4 and 16 times as many, but never more than half of all.
    package var perAddress = 1_024
    /// Connections that have not said yet which session they belong to, in all and from one address.
    package var waiting = 1_024
    /// The same from one address.
    package var waitingPerAddress = 128
    /// How long they may take to.
    package var patience = Duration.seconds(5)

    package init() {}
}

/// Counts the connections there are, or what else clients have, by where they come from.
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
    ///   - total: of all addresses.
    ///   - share: what all addresses of a site may have together; `perAddress` if that is more.
    package init(total: Int, perAddress: Int, share: Int) {
        self.total = total
        self.perAddress = perAddress
        self.share = max(share, perAddress)
    }

    package var count: Int { state.withLock { $0.total } }

    /// - Returns: false if there are too many.
    package func take(_ address: IPAddress) -> Bool {
        let networks = ClientNetwork.all(of: address)
        return state.withLock { state in
            let hasRoom = networks.allSatisfy { state.counts[$0, default: 0] < limit(of: $0) }
            guard state.total < total, hasRoom else { return false }
            state.total += 1
            for network in networks { state.counts[network, default: 0] += 1 }
            return true
        }
    }

    package func giveBack(_ address: IPAddress) {
        state.withLock { state in
            state.total -= 1
            for network in ClientNetwork.all(of: address) {
                let count = state.counts[network, default: 1] - 1
                state.counts[network] = count > 0 ? count : nil
            }
        }
    }

    private func limit(of network: ClientNetwork) -> Int {
        min(perAddress * Int(network.factor), share)
    }
}

/// The descriptor of a TCP connection; closed when its last owner lets it go.
package final class AcceptedConnection: Sendable {
    /// Where its other end is.
    package let remote: TransportAddress
    let descriptor: Int32
    private let quotas: [ConnectionQuota]

    /// - Parameter quotas: in which it was counted.
    init(descriptor: Int32, remote: TransportAddress, quotas: [ConnectionQuota]) {
        self.descriptor = descriptor
        self.remote = remote
        self.quotas = quotas
    }

    deinit {
        // First, so that a client that sees the end finds its place free.
        for quota in quotas { quota.giveBack(remote.ip) }
        clinux_close(descriptor)
    }
}

/// A connection on its way to the worker that it belongs to.
package struct ConnectionHandover: Sendable {
    let connection: AcceptedConnection
    /// What was read from it already.
    let firstBytes: [UInt8]
    /// Until when its session must be known.
    let deadline: MonotonicTime
}
