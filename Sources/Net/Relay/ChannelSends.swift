import Base
import Crypto
import Peer

/// What one worker sends to TURN clients in their channels; used by the worker's thread only.
///
/// Datagrams for which the socket has no room stay in the arena until the next batch.
final class ChannelSends {
    /// Bytes of a ChannelData header: the channel's number and the datagram's length (RFC 8656 §12.4).
    private static let headLength = 4

    /// Minimum time between two copies of the routes.
    ///
    /// Clients that refresh all the time must not make workers copy all the time. Until the next copy, datagrams to a
    /// new client go through its relayed address.
    private static let lookInterval = Duration.milliseconds(20)

    private let routes: ChannelRoutes
    private let port: UInt16
    private let capacity: SendBatch.Capacity
    private let hashKey: UInt64
    /// Version of `known`.
    private var version = 0
    private var nextLook = MonotonicTime.zero
    private var known: [TransportAddress: ChannelRoutes.Route] = [:]
    /// Nil until there is a first route.
    private var lane: Lane?

    /// The TURN port's side: an arena and transmitter of its own, because datagrams leave by another socket.
    private final class Lane {
        var queue: SendQueue
        var transmitter: Transmitter

        init(_ socket: DatagramSocket, _ capacity: SendBatch.Capacity, hashKey: UInt64) {
            queue = SendQueue(
                .init(bytes: capacity.bytes, datagrams: capacity.datagrams), isIPv4: socket.isIPv4,
                hashKey: hashKey)
            transmitter = Transmitter(socket: socket)
        }
    }

    /// - Parameter port: of the worker.
    init(_ routes: ChannelRoutes, port: UInt16, capacity: SendBatch.Capacity, hashKey: UInt64) {
        self.routes = routes
        self.port = port
        self.capacity = capacity
        self.hashKey = hashKey
    }

    /// What was sent and dropped, ChannelData headers included; nil if there was no route yet.
    var counters: TrafficCounters? { lane?.transmitter.counters }

    /// Copies the routes if they have changed; called at the beginning of each batch.
    func begin(at now: MonotonicTime) {
        let latest = routes.version
        guard latest != version, now >= nextLook, let (routes, socket) = routes.routes(of: port) else {
            return
        }
        nextLook = now + Self.lookInterval
        version = latest
        known = routes
        if lane == nil, !known.isEmpty { lane = Lane(socket, capacity, hashKey: hashKey) }
    }

    /// The route to a relayed address; nil if the datagram has to go to the address itself.
    func route(to address: TransportAddress, at now: MonotonicTime) -> ChannelRoutes.Route? {
        guard !known.isEmpty, let route = known[address], route.end > now else { return nil }
        return route
    }

    /// Queues one datagram; drops it if there is no room.
    func append<Failure: Error>(
        by route: ChannelRoutes.Route, capacity: Int, at now: MonotonicTime,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let lane = room(for: capacity, at: now) else { return }
        try lane.queue.append(to: route.client, capacity: capacity, channel: route.channel, write)
    }

    /// Queues several datagrams for one client; drops all of them if there is no room.
    func append(
        _ count: Int, by route: ChannelRoutes.Route, capacity: Int, at now: MonotonicTime,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        guard let lane = room(for: capacity, times: count, at: now) else { return }
        lane.queue.append(count, to: route.client, capacity: capacity, channel: route.channel, write)
    }

    /// Makes room, by sending if necessary.
    ///
    /// - Returns: nil if there is none; the datagrams then count as dropped.
    private func room(for capacity: Int, times count: Int = 1, at now: MonotonicTime) -> Lane? {
        guard let lane else { return nil }
        let bytes = capacity + Self.headLength
        if lane.queue.usedBytes >= SendBatch.sliceBytes || !lane.queue.hasRoom(for: bytes, times: count) {
            flush(at: now)
        }
        guard lane.queue.hasRoom(for: bytes, times: count) else {
            lane.transmitter.counters.droppedBufferFull &+= UInt64(count)
            routes.count(datagrams: 0, bytes: 0, dropped: UInt64(count))
            return nil
        }
        return lane
    }

    /// Sends what is queued, as far as the socket has room, and reports the totals to `routes`.
    func flush(at now: MonotonicTime) {
        guard let lane, !lane.queue.isEmpty else { return }
        let before = lane.transmitter.counters
        _ = lane.transmitter.drain(&lane.queue, at: now)
        let after = lane.transmitter.counters
        let datagrams = after.datagramsOut &- before.datagramsOut
        routes.count(
            datagrams: datagrams,
            bytes: after.bytesOut &- before.bytesOut &- datagrams &* UInt64(Self.headLength),
            dropped: after.unsent &- before.unsent)
    }
}
