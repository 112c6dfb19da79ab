import Base
import Glibc

/// Buffers that `recvmmsg` fills, and the way to walk over the datagrams in them.
struct ReceiveBatch: ~Copyable {
    /// Messages taken in one system call.
    static let messages = 64
    /// A coalesced message holds up to 64 kB, a single datagram seldom more than 1,500 bytes.
    static let coalescedSize = 65_536
    static let singleSize = 2_048
    /// Added to each buffer so that their beginnings do not fall into the same cache sets.
    private static let stagger = 64 * 17

    private let bufferSize: Int
    private let stride: Int
    private var memory: MessageMemory
    /// Messages that the last call filled.
    private var filled = 0
    /// How far the realtime clock was ahead of the media clock when the last call filled messages that tell when
    /// they came, in nanoseconds; nil where they do not.
    private var clockOffset: Int64?

    /// - Parameter coalesces: whether the sockets it reads have UDP_GRO on.
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

    /// Takes what has arrived at a socket, without waiting.
    /// - Returns: whether more may be waiting.
    mutating func fill(from socket: DatagramSocket, counting counters: inout TrafficCounters) -> Bool {
        // The kernel overwrote what it filled.
        for index in 0..<filled { memory.prepareReceive(index, offset: index * stride, count: bufferSize) }
        counters.receiveCalls &+= 1
        filled = max(memory.receive(Self.messages, from: socket), 0)
        clockOffset = socket.stampsArrivals ? MonotonicClock.realtimeOffset() : nil
        return filled == Self.messages
    }

    /// Visits each datagram of the last `fill` in order of arrival.
    /// - Parameter body: takes the datagram, who sent it, and when the kernel took it in, if the socket tells.
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
            // Once even for an empty datagram.
            repeat {
                let end = min(start + arrival.segmentSize, arrival.bytes.upperBound)
                counters.datagramsIn &+= 1
                memory.withBytes(at: start, count: end - start) { body(&$0, arrival.source, time) }
                start = end
            } while start < arrival.bytes.upperBound
        }
    }
}
