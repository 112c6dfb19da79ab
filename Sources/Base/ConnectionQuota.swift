import Synchronization

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
            Self.occupy(networks, &state)
            return true
        }
    }

    /// Occupies one place for an address whatever the limits, in place of another one that is released soon.
    package func add(_ address: IPAddress) {
        let networks = ClientNetwork.all(of: address)
        state.withLock { Self.occupy(networks, &$0) }
    }

    private static func occupy(_ networks: [ClientNetwork], _ state: inout State) {
        state.total += 1
        for network in networks { state.counts[network, default: 0] += 1 }
    }

    /// Releases a place that `take` or `add` occupied for this address.
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
    package func isOpen(to address: IPAddress) -> Bool {
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
