import Base
import Crypto
import Peer

/// Where a worker's handler puts datagrams; they leave together when the batch ends.
///
/// Datagrams are written in place, gathered by destination, and handed over in few system calls: consecutive
/// datagrams of equal size for one destination, of which the last may be smaller, as one message that the kernel cuts
/// (UDP_SEGMENT). For each destination the order of appending is kept; between destinations it is not.
///
/// It never blocks. While the socket's buffer is full, a bounded amount waits for room; what is beyond is dropped and
/// counted, large datagrams first, because small ones are audio, RTCP and STUN.
///
/// Datagrams for the address of a TCP connection go to that connection's own queue, and those for an address in the
/// name of a client by TURN to that client itself, where it has a channel.
package struct SendBatch: ~Copyable, DatagramSink {
    /// Room that is taken once, when the worker starts.
    package struct Capacity: Sendable {
        /// Room for one batch; when it is full, the batch leaves early.
        package var bytes = 4 << 20
        /// The same in datagrams.
        package var datagrams = 4_096
        /// What may wait while the socket's buffer is full.
        package var backlogBytes = 512 << 10
        /// The same in datagrams.
        package var backlogDatagrams = 1_024

        package init() {}
    }

    /// Datagrams up to this size count as small.
    ///
    /// An Opus packet of 20 ms at 128 kbit/s has 320 bytes.
    static let smallDatagram = 400
    /// Large datagrams may take this share of the backlog.
    static let largeShare = 0.5

    /// Nil where there is no TCP.
    private let streams: TCPConnections?
    /// When so much is written it leaves before more is added: the kernel then reads it out of the CPU's cache.
    static let sliceBytes = 192 << 10

    /// Nil where nobody comes by TURN over UDP.
    private let channels: ChannelSends?
    private var queue: SendQueue
    private var backlog: SendQueue
    private var transmitter: Transmitter
    private var now = MonotonicTime.zero
    /// Sees what leaves for its session; nil for nobody.
    package var capture: HeaderCapture?
    /// The socket's buffer was full at the last attempt.
    private(set) var isBlocked = false

    /// - Parameters:
    ///   - hashKey: random; keeps strangers from choosing addresses that collide.
    ///   - refuse: stands in for a kernel that refuses messages; for tests.
    package init(
        socket: DatagramSocket, capacity: Capacity = Capacity(), hashKey: UInt64,
        refuse: ((OutgoingMessage) -> Int32?)? = nil
    ) {
        self.init(socket: socket, streams: nil, capacity: capacity, hashKey: hashKey, refuse: refuse)
    }

    init(
        socket: DatagramSocket, streams: TCPConnections?, routes: ChannelRoutes? = nil,
        capacity: Capacity = Capacity(), hashKey: UInt64, refuse: ((OutgoingMessage) -> Int32?)? = nil
    ) {
        self.streams = streams
        channels = routes.map {
            ChannelSends($0, port: socket.localAddress.port, capacity: capacity, hashKey: hashKey)
        }
        queue = SendQueue(
            .init(bytes: capacity.bytes, datagrams: capacity.datagrams), isIPv4: socket.isIPv4,
            hashKey: hashKey)
        backlog = SendQueue(
            .init(bytes: capacity.backlogBytes, datagrams: capacity.backlogDatagrams), isIPv4: socket.isIPv4,
            hashKey: hashKey)
        transmitter = Transmitter(socket: socket, refuse: refuse)
    }

    /// Counts of what left and what was dropped.
    package var counters: TrafficCounters {
        guard let sent = channels?.counters else { return transmitter.counters }
        return transmitter.counters.adding(sentBy: sent)
    }

    /// Queues a datagram; sends what is queued first if the arena is full.
    package mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let capture, capture.remote == destination else {
            return try place(to: destination, capacity: capacity, write)
        }
        let now = now
        try place(to: destination, capacity: capacity) { span throws(Failure) in
            let length = try write(&span)
            if span.indices.contains(length - 1) {
                capture.noteSent(span.span.extracting(0..<length), to: destination, at: now)
            }
            return length
        }
    }

    private mutating func place<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        if destination.transport == .tcp {
            try streams?.append(to: destination, capacity: capacity, write)
            return
        }
        if let channels, let route = channels.route(to: destination, at: now) {
            return try channels.append(by: route, capacity: capacity, at: now, write)
        }
        if !queue.hasRoom(for: capacity) {
            flush(at: now)
            guard queue.hasRoom(for: capacity) else {
                assertionFailure("a datagram of \(capacity) bytes exceeds the whole arena")
                return
            }
        }
        try queue.append(to: destination, capacity: capacity, write)
    }

    /// Queues datagrams for one destination, looked up once; sends what is queued first if they do not fit.
    package mutating func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        if let channels, capture?.remote != destination,
            let route = channels.route(to: destination, at: now)
        {
            return channels.append(count, by: route, capacity: capacity, at: now, write)
        }
        if queue.usedBytes >= Self.sliceBytes || !queue.hasRoom(for: capacity, times: count) {
            flush(at: now)
        }
        guard destination.transport == .udp, capture?.remote != destination,
            queue.hasRoom(for: capacity, times: count)
        else {
            for number in 0..<count {
                append(to: destination, capacity: capacity) { write(number, &$0).complete(&$0) }
            }
            return
        }
        queue.append(count, to: destination, capacity: capacity, write)
    }

    /// Starts a batch; `now` is when its datagrams leave.
    package mutating func begin(at now: MonotonicTime) {
        self.now = now
        channels?.begin(at: now)
    }

    /// Sends everything queued, as far as the socket takes it.
    package mutating func flush(at now: MonotonicTime) {
        self.now = now
        channels?.flush(at: now)
        guard !queue.isEmpty || (!backlog.isEmpty && !isBlocked) else { return }
        if !isBlocked, sendBacklog(), !transmitter.drain(&queue, at: now) { isBlocked = true }
        if isBlocked { keepSome() }
    }

    /// The socket has room again.
    package mutating func becameWritable(at now: MonotonicTime) {
        isBlocked = false
        flush(at: now)
    }

    private mutating func sendBacklog() -> Bool {
        guard !backlog.isEmpty else { return true }
        isBlocked = !transmitter.drain(&backlog, at: now)
        return !isBlocked
    }

    private mutating func keepSome() {
        let (moved, lost) = queue.move(to: &backlog) { backlog, length in
            length <= Self.smallDatagram || backlog.usedShare < Self.largeShare
        }
        transmitter.counters.delayed &+= UInt64(moved)
        transmitter.counters.droppedBufferFull &+= UInt64(lost)
    }
}
