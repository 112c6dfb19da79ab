import Base
import Synchronization

/// Routes by which workers send directly to clients of TURN over UDP: from the TURN port's socket, in the client's
/// channel.
///
/// Without a route a worker's datagram goes to the client's relayed address on this machine, and so through the
/// kernel and two more threads, which costs twice as much again.
/// - Source: RFC 8656 §12.
package final class ChannelRoutes: Sendable {
    /// How one worker reaches a client.
    package struct Route: Equatable, Sendable {
        /// The client's address.
        package let client: TransportAddress
        /// The channel that the client has bound to the worker's address.
        package let channel: UInt16
        /// When the route ends: with the channel, the permission or the allocation, whichever ends first.
        package let end: MonotonicTime

        /// - Parameters:
        ///   - client: where datagrams are sent.
        ///   - channel: number for the ChannelData header.
        ///   - end: the route must not be used from then on.
        package init(client: TransportAddress, channel: UInt16, end: MonotonicTime) {
            self.client = client
            self.channel = channel
            self.end = end
        }
    }

    private struct State {
        /// The TURN port's socket; nil until it is open.
        var socket: DatagramSocket?
        /// Routes by relayed address, one per allocation, and by the worker's address.
        var routes: [TransportAddress: [TransportAddress: Route]] = [:]
    }

    private let state = Mutex(State())
    /// Counts changes of `routes`, so that workers need no lock to notice that nothing changed.
    private let changes = Atomic(0)
    private let datagrams = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)

    /// No routes, and no socket yet.
    package init() {}

    /// Sets the socket by which workers send.
    /// - Parameter socket: the TURN port's.
    package func open(_ socket: DatagramSocket) { state.withLock { $0.socket = socket } }

    /// Replaces the routes to one client.
    ///
    /// Identical routes leave the version unchanged, so that a refresh without news makes no worker copy them.
    /// - Parameters:
    ///   - routes: all of the client's, by worker address; empty if it has none left.
    ///   - relayed: the client's relayed address.
    package func set(_ routes: [TransportAddress: Route], of relayed: TransportAddress) {
        let isNew = state.withLock { state in
            let old = state.routes[relayed] ?? [:]
            state.routes[relayed] = routes.isEmpty ? nil : routes
            return old != routes
        }
        if isNew { changes.add(1, ordering: .releasing) }
    }

    /// What workers sent, without ChannelData headers, and the datagrams that were dropped.
    package var counters: (datagrams: UInt64, bytes: UInt64, dropped: UInt64) {
        (
            datagrams.load(ordering: .relaxed), bytes.load(ordering: .relaxed),
            dropped.load(ordering: .relaxed)
        )
    }

    // MARK: For workers

    /// Changes whenever `routes(of:)` would return something else.
    var version: Int { changes.load(ordering: .acquiring) }

    /// A copy of the routes from one worker, by relayed address.
    /// - Parameter port: of the worker.
    /// - Returns: nil until the TURN port is open.
    func routes(of port: UInt16) -> (routes: [TransportAddress: Route], socket: DatagramSocket)? {
        state.withLock { state in
            guard let socket = state.socket else { return nil }
            let routes = state.routes.compactMapValues { $0.first { $0.key.port == port }?.value }
            return (routes, socket)
        }
    }

    /// Adds what a worker sent in one batch.
    func count(datagrams: UInt64, bytes: UInt64, dropped: UInt64) {
        self.datagrams.add(datagrams, ordering: .relaxed)
        self.bytes.add(bytes, ordering: .relaxed)
        self.dropped.add(dropped, ordering: .relaxed)
    }
}
