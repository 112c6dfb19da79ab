import Base
import Crypto
import Peer

/// Collects the datagrams of a worker's handler, and sends them when the batch ends.
///
/// Each datagram is written in place into an arena and chained with others for the same destination. Consecutive
/// datagrams of equal size for one destination, of which the last may be smaller, leave as one message that the
/// kernel cuts (UDP_SEGMENT), so a batch takes few system calls. The order of datagrams to one destination is kept;
/// the order between destinations is not.
///
/// It never blocks. While the socket's buffer is full, a bounded backlog waits for room. What exceeds it is dropped
/// and counted, large datagrams first, because small ones are audio, RTCP and STUN.
///
/// Datagrams for the address of a TCP connection go to that connection's queue. Datagrams for the relayed address of
/// a TURN client that has bound a channel go straight to the client.
package struct SendBatch: ~Copyable, DatagramSink {
    /// Memory limits; the memory is allocated once, when the worker starts.
    package struct Capacity: Sendable {
        /// Bytes in one batch; when it is full, the batch is sent early.
        package var bytes = 4 << 20
        /// Datagrams in one batch.
        package var datagrams = 4_096
        /// Bytes that may wait while the socket's buffer is full.
        package var backlogBytes = 512 << 10
        /// Datagrams that may wait while the socket's buffer is full.
        package var backlogDatagrams = 1_024

        /// The limits of a worker.
        package init() {}
    }

    /// Datagrams of up to this many bytes count as small.
    ///
    /// An Opus packet of 20 ms at 128 kbit/s has 320 bytes.
    static let smallDatagram = 400
    /// Share of the backlog's bytes up to which large datagrams are kept; the rest is reserved for small ones.
    static let largeShare = 0.5

    /// The worker's TCP connections; nil if it serves no TCP.
    private let streams: TCPConnections?
    /// Bytes after which the queue is sent before more is added, so that the kernel reads them while the CPU still
    /// caches them.
    static let sliceBytes = 192 << 10

    /// The TURN clients that this worker sends to directly; nil if the node has no TURN over UDP.
    private let channels: ChannelSends?
    /// Written in this batch.
    private var queue: SendQueue
    /// Left over from earlier batches because the socket's buffer was full.
    private var backlog: SendQueue
    private var transmitter: Transmitter
    /// Set by `begin` and `flush`, since `append` gets no time.
    private var now = MonotonicTime.zero
    /// Records the headers of packets to one session's address; nil if no session is captured.
    package var capture: HeaderCapture?
    /// Whether the socket's buffer was full at the last attempt.
    private(set) var isBlocked = false

    /// - Parameters:
    ///   - hashKey: random; prevents clients from choosing addresses whose hashes collide.
    ///   - refuse: answers in the kernel's place, for tests; see `Transmitter`.
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

    /// What left and what was dropped, over the socket and by channels.
    package var counters: TrafficCounters {
        guard let sent = channels?.counters else { return transmitter.counters }
        return transmitter.counters.adding(sentBy: sent)
    }

    /// Queues one datagram; sends the queue first if the arena is full.
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

    /// Queues a datagram where its destination requires: a TCP connection, a TURN channel or the worker's socket.
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

    /// Queues several datagrams for one destination, which is looked up once; sends the queue first if they do not
    /// fit.
    ///
    /// The packets' authentication tags may be completed later, several at a time. That is not possible over TCP, and
    /// not for a captured destination, whose packets are read here: those are written one by one, complete.
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

    /// Begins a batch.
    /// - Parameter now: the time at which the batch's datagrams count as sent.
    package mutating func begin(at now: MonotonicTime) {
        self.now = now
        channels?.begin(at: now)
    }

    /// Sends everything queued, as far as the socket has room, and keeps a bounded part of the rest.
    package mutating func flush(at now: MonotonicTime) {
        self.now = now
        channels?.flush(at: now)
        guard !queue.isEmpty || (!backlog.isEmpty && !isBlocked) else { return }
        if !isBlocked, sendBacklog(), !transmitter.drain(&queue, at: now) { isBlocked = true }
        if isBlocked { keepSome() }
    }

    /// Continues sending; the socket has room again.
    package mutating func becameWritable(at now: MonotonicTime) {
        isBlocked = false
        flush(at: now)
    }

    /// The backlog leaves before the queue, or datagrams to one destination would overtake each other.
    private mutating func sendBacklog() -> Bool {
        guard !backlog.isEmpty else { return true }
        isBlocked = !transmitter.drain(&backlog, at: now)
        return !isBlocked
    }

    /// Empties the queue all the same, so that the next batch finds its whole arena free.
    private mutating func keepSome() {
        let (moved, lost) = queue.move(to: &backlog) { backlog, length in
            length <= Self.smallDatagram || backlog.usedShare < Self.largeShare
        }
        transmitter.counters.delayed &+= UInt64(moved)
        transmitter.counters.droppedBufferFull &+= UInt64(lost)
    }
}
