import Base
import Glibc
import Peer

/// Memory for one datagram, shared by the sinks of one thread.
package final class DirectSinkBuffer {
    /// Bytes of a datagram at most; WebRTC's paths have none that are longer.
    static let size = 2_048

    /// One for each address family, since the kernel expects addresses in the socket's format.
    fileprivate var ipv4: MessageMemory
    fileprivate var ipv6: MessageMemory
    /// What left and what was dropped, over all sinks that use this buffer.
    package fileprivate(set) var counters = TrafficCounters()

    /// Allocates the memory.
    package init() {
        let capacity = MessageMemory.Capacity(bytes: Self.size, messages: 1, vectors: 1, names: 1)
        ipv4 = MessageMemory(capacity, isIPv4: true)
        ipv6 = MessageMemory(capacity, isIPv4: false)
    }
}

/// Sends each datagram immediately and by itself, as a client does that sends few.
///
/// A datagram that the kernel does not accept immediately is dropped and counted.
package struct DirectSink: DatagramSink {
    private enum Way {
        case datagrams(DatagramSocket)
        case stream(TCPConnection)
    }

    private let way: Way
    private let buffer: DirectSinkBuffer

    /// - Parameters:
    ///   - socket: sends the datagrams.
    ///   - buffer: of the calling thread.
    package init(socket: DatagramSocket, buffer: DirectSinkBuffer) {
        way = .datagrams(socket)
        self.buffer = buffer
    }

    /// - Parameter connection: sends each datagram as a frame; one that the kernel does not accept immediately stays
    ///   in its queue.
    init(connection: TCPConnection, buffer: DirectSinkBuffer) {
        way = .stream(connection)
        self.buffer = buffer
    }

    /// Sends one datagram, which `write` fills in place; its result is the length, and 0 sends nothing.
    ///
    /// Drops it if `capacity` exceeds the buffer.
    package mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard capacity <= DirectSinkBuffer.size else {
            buffer.counters.droppedTooLarge &+= 1
            return
        }
        switch way {
        case .datagrams(let socket): try send(through: socket, to: destination, capacity, write)
        case .stream(let connection): try send(over: connection, capacity, write)
        }
    }

    private func send<Failure: Error>(
        through socket: DatagramSocket, to destination: TransportAddress, _ capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        let result: Int
        let length: Int
        if socket.isIPv4 {
            (length, result) = try Self.send(&buffer.ipv4, socket, destination, capacity, write)
        } else {
            (length, result) = try Self.send(&buffer.ipv6, socket, destination, capacity, write)
        }
        guard length > 0 else { return }
        buffer.counters.sendCalls &+= 1
        guard result == 1 else {
            let isFull = result == -Int(EAGAIN) || result == -Int(ENOBUFS) || result == 0
            if isFull { buffer.counters.droppedBufferFull &+= 1 } else { buffer.counters.droppedOther &+= 1 }
            return
        }
        buffer.counters.datagramsOut &+= 1
        buffer.counters.bytesOut &+= UInt64(length)
    }

    /// Sends over TCP; the connection keeps what the kernel does not accept immediately and sends it before the next
    /// datagram.
    private func send<Failure: Error>(
        over connection: TCPConnection, _ capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        let length = try buffer.ipv4.withBytes(at: 0, count: capacity, write)
        guard length > 0, length <= capacity else { return }
        let now = MonotonicClock.now()
        let before = connection.queue.drops
        buffer.ipv4.withBytes(at: 0, count: length) { connection.queue.append($0.span, at: now) }
        buffer.counters.sendCalls &+= 1
        guard connection.flush(at: now), connection.queue.drops == before else {
            buffer.counters.droppedBufferFull &+= 1
            return
        }
        buffer.counters.datagramsOut &+= 1
        buffer.counters.bytesOut &+= UInt64(length)
    }

    private static func send<Failure: Error>(
        _ memory: inout MessageMemory, _ socket: DatagramSocket, _ destination: TransportAddress,
        _ capacity: Int, _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) -> (length: Int, result: Int) {
        let length = try memory.withBytes(at: 0, count: capacity, write)
        guard length > 0, length <= capacity else { return (0, 0) }
        memory.setName(0, to: destination)
        memory.setVector(0, offset: 0, count: length)
        memory.setMessage(0, name: 0, vectors: 0..<1, segmentSize: nil)
        return (length, memory.send(0..<1, through: socket))
    }
}
