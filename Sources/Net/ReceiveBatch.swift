import Base
import Glibc

/// The buffers that `recvmmsg` fills, and iteration over the datagrams in them.
struct ReceiveBatch: ~Copyable {
    /// Messages received by one system call.
    static let messages = 64
    /// Buffer size with UDP_GRO: a coalesced message has up to 64 kB.
    static let coalescedSize = 65_536
    /// Buffer size without UDP_GRO: a datagram seldom has more than 1,500 bytes.
    static let singleSize = 2_048
    /// Bytes added to each buffer, so that the buffers' beginnings do not compete for the same cache sets.
    private static let stagger = 64 * 17

    private let bufferSize: Int
    /// Distance between the beginnings of two buffers, in bytes.
    private let stride: Int
    private var memory: MessageMemory
    /// Messages that the last call filled.
    private var filled = 0
    /// How far the realtime clock was ahead of the media clock at the last call, in nanoseconds.
    ///
    /// Nil if the socket does not record arrival times.
    private var clockOffset: Int64?

    /// - Parameter coalesces: whether the sockets to be read have UDP_GRO on, and so need large buffers.
    init(coalesces: Bool) {
        bufferSize = coalesces ? Self.coalescedSize : Self.singleSize
        stride = bufferSize + Self.stagger
        memory = MessageMemory(
            .init(
                bytes: stride * Self.messages, messages: Self.messages, vectors: Self.messages,
                names: Self.messages),
            isIPv4: true)
        for index in 0..<Self.messages {
            memory.prepareReceive(index, offset: index * stride, count: bufferSize)
        }
    }

    /// Receives what has arrived at a socket, without waiting.
    /// - Returns: whether more may be waiting.
    mutating func fill(from socket: DatagramSocket, counting counters: inout TrafficCounters) -> Bool {
        // The kernel overwrote name length, control length and flags in the headers of the messages that it filled.
        for index in 0..<filled { memory.prepareReceive(index, offset: index * stride, count: bufferSize) }
        counters.receiveCalls &+= 1
        filled = max(memory.receive(Self.messages, from: socket), 0)
        clockOffset = socket.stampsArrivals ? MonotonicClock.realtimeOffset() : nil
        return filled == Self.messages
    }

    /// Calls `body` with each datagram of the last `fill`, in order of arrival.
    /// - Parameter body: gets the datagram, its source, and when it arrived on the media clock; nil if the socket
    ///   does not record that.
    mutating func forEach(
        counting counters: inout TrafficCounters,
        _ body: (inout MutableSpan<UInt8>, TransportAddress, MonotonicTime?) -> Void
    ) {
        for index in 0..<filled {
            let arrival = memory.arrival(index, offset: index * stride, isStamped: clockOffset != nil)
            let time = clockOffset.flatMap { offset in
                arrival.realtime > 0 ? MonotonicTime(nanoseconds: arrival.realtime &- offset) : nil
            }
            guard !arrival.isTruncated else {
                counters.droppedTruncated &+= 1
                continue
            }
            counters.bytesIn &+= UInt64(arrival.bytes.count)
            if arrival.bytes.count > arrival.segmentSize { counters.coalescedMessagesIn &+= 1 }
            var start = arrival.bytes.lowerBound
            // A loop that runs at least once, because an empty datagram counts, too.
            repeat {
                let end = min(start + arrival.segmentSize, arrival.bytes.upperBound)
                counters.datagramsIn &+= 1
                memory.withBytes(at: start, count: end - start) { body(&$0, arrival.source, time) }
                start = end
            } while start < arrival.bytes.upperBound
        }
    }
}
