import Base
import Synchronization

/// How workers send to clients of a TURN port over UDP themselves: from the port, in the client's channel.
///
/// Without a route a worker's datagram goes to an address of this machine in the client's name, and so through the
/// kernel and two threads more, which costs twice as much again.
/// - Source: RFC 8656 §12.
package final class ChannelRoutes: Sendable {
    /// A client as one worker reaches it.
    package struct Route: Equatable, Sendable {
        /// Where the client is.
        package let client: TransportAddress
        /// What stands for the worker there.
        package let channel: UInt16
        /// Of the channel, of the permission, or of the relayed address, whichever comes first.
        package let end: MonotonicTime

        package init(client: TransportAddress, channel: UInt16, end: MonotonicTime) {
            self.client = client
            self.channel = channel
            self.end = end
        }
    }

    private struct State {
        /// The port's; nil as long as it is not open.
        var socket: DatagramSocket?
        /// By relayed address, of which there are no more than allocations, and by where workers listen.
        var routes: [TransportAddress: [TransportAddress: Route]] = [:]
    }

    private let state = Mutex(State())
    private let changes = Atomic(0)
    private let datagrams = Atomic<UInt64>(0)
    private let bytes = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)

    /// Nobody yet.
    package init() {}

    /// - Parameter socket: the TURN port's.
    package func open(_ socket: DatagramSocket) { state.withLock { $0.socket = socket } }

    /// - Parameter routes: all of the client's, by where workers listen; empty where it has none any more.
    package func set(_ routes: [TransportAddress: Route], of relayed: TransportAddress) {
        let isNew = state.withLock { state in
            let old = state.routes[relayed] ?? [:]
            state.routes[relayed] = routes.isEmpty ? nil : routes
            return old != routes
        }
        if isNew { changes.add(1, ordering: .releasing) }
    }

    /// What workers sent, without the heads of channels, and what found no room in the socket.
    package var counters: (datagrams: UInt64, bytes: UInt64, dropped: UInt64) {
        (
            datagrams.load(ordering: .relaxed), bytes.load(ordering: .relaxed),
            dropped.load(ordering: .relaxed)
        )
    }

    // MARK: For workers

    /// Another number says that `routes(of:)` has changed.
    var version: Int { changes.load(ordering: .acquiring) }

    /// By relayed address.
    /// - Parameter port: of the worker that asks.
    /// - Returns: nil as long as the TURN port is not open.
    func routes(of port: UInt16) -> (routes: [TransportAddress: Route], socket: DatagramSocket)? {
        state.withLock { state in
            guard let socket = state.socket else { return nil }
            let routes = state.routes.compactMapValues { $0.first { $0.key.port == port }?.value }
            return (routes, socket)
        }
    }

    func count(datagrams: UInt64, bytes: UInt64, dropped: UInt64) {
        self.datagrams.add(datagrams, ordering: .relaxed)
        self.bytes.add(bytes, ordering: .relaxed)
        self.dropped.add(dropped, ordering: .relaxed)
    }
}
