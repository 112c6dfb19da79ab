import Base
import Crypto
import Peer

/// What one worker sends to clients of a TURN port in their channels; used by its thread alone.
///
/// What the port's socket has no room for waits for the next turn, within the arena.
final class ChannelSends {
    /// Bytes of a channel's number and a datagram's length (RFC 8656 §12.4).
    private static let headLength = 4

    /// Between two looks at who has come and gone.
    ///
    /// Clients who refresh all the time must not make workers copy all the time. Until then the way is through the
    /// address in the client's name.
    private static let lookInterval = Duration.milliseconds(20)

    private let routes: ChannelRoutes
    private let port: UInt16
    private let capacity: SendBatch.Capacity
    private let hashKey: UInt64
    private var version = 0
    private var nextLook = MonotonicTime.zero
    private var known: [TransportAddress: ChannelRoutes.Route] = [:]
    /// Nil until there is a first client.
    private var lane: Lane?

    /// With an arena of its own, because datagrams leave by another socket.
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

    /// What it sent, heads included.
    var counters: TrafficCounters? { lane?.transmitter.counters }

    /// Learns who has come and gone since.
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

    /// Nil for who is at the address itself.
    func route(to address: TransportAddress, at now: MonotonicTime) -> ChannelRoutes.Route? {
        guard !known.isEmpty, let route = known[address], route.end > now else { return nil }
        return route
    }

    func append<Failure: Error>(
        by route: ChannelRoutes.Route, capacity: Int, at now: MonotonicTime,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let lane = room(for: capacity, at: now) else { return }
        try lane.queue.append(to: route.client, capacity: capacity, channel: route.channel, write)
    }

    func append(
        _ count: Int, by route: ChannelRoutes.Route, capacity: Int, at now: MonotonicTime,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        guard let lane = room(for: capacity, times: count, at: now) else { return }
        lane.queue.append(count, to: route.client, capacity: capacity, channel: route.channel, write)
    }

    /// - Returns: nil where there is none; what was to be sent is lost then.
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
