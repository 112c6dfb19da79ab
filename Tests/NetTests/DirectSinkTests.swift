import Base
import Peer
import Testing

@testable import Net

@Suite struct `A sink that sends at once` {
    private let buffer = DirectSinkBuffer()

    private func socket(_ ip: IPAddress = .loopback) throws -> DatagramSocket {
        try DatagramSocket(bind: TransportAddress(ip: ip, port: 0))
    }

    @Test func `sends each datagram before the next is written`() throws {
        var remote = try Remote()
        let address = remote.address
        var sink = DirectSink(socket: try socket(), buffer: buffer)
        for size in [1, 1_200, 40] {
            sink.append(datagram(size, size: size), to: address)
            #expect(remote.receiveWaiting().map(\.bytes) == [datagram(size, size: size)])
        }
        #expect(buffer.counters.datagramsOut == 3 && buffer.counters.bytesOut == 1_241)
        #expect(buffer.counters.sendCalls == 3 && buffer.counters.unsent == 0)
    }

    @Test func `sends by sockets of both families with one memory`() throws {
        var old = try Remote()
        var new = try Remote(IPAddress(high: 0, low: 1))
        let (oldAddress, newAddress) = (old.address, new.address)
        var byIPv4 = DirectSink(socket: try socket(), buffer: buffer)
        var byIPv6 = DirectSink(socket: try socket(IPAddress(high: 0, low: 0)), buffer: buffer)
        byIPv4.append([1], to: oldAddress)
        byIPv6.append([2], to: newAddress)
        // An IPv6 socket reaches IPv4 in its mapped form.
        byIPv6.append([3], to: oldAddress)
        byIPv4.append([4], to: oldAddress)
        #expect(old.receiveWaiting().map(\.bytes) == [[1], [3], [4]])
        #expect(new.receiveWaiting().map(\.bytes) == [[2]])
        #expect(buffer.counters.datagramsOut == 4)
    }

    @Test func `drops what exceeds its memory, without asking for it`() throws {
        var remote = try Remote()
        let address = remote.address
        var sink = DirectSink(socket: try socket(), buffer: buffer)
        var asked = 0
        sink.append(to: address, capacity: 2_049) { _ in
            asked += 1
            return 10
        }
        #expect(asked == 0 && buffer.counters.droppedTooLarge == 1)
        sink.append(datagram(7, size: 2_048), to: address)
        let received = remote.receiveWaiting().map(\.bytes.count)
        #expect(received == [2_048])
        #expect(buffer.counters.droppedTooLarge == 1)
    }

    @Test func `sends nothing where nothing was written, or the writer throws`() throws {
        struct Refusal: Error {}
        var remote = try Remote()
        let address = remote.address
        var sink = DirectSink(socket: try socket(), buffer: buffer)
        sink.append(to: address, capacity: 100) { _ in 0 }
        sink.append(to: address, capacity: 100) { _ in 101 }
        do {
            try sink.append(to: address, capacity: 100) {
                (_: inout MutableSpan<UInt8>) throws(Refusal) in throw Refusal()
            }
            Issue.record("The writer's error was lost.")
        } catch {}
        #expect(remote.receiveWaiting().isEmpty)
        #expect(buffer.counters == TrafficCounters())
    }

    @Test func `tells what no socket can send`() throws {
        var sink = DirectSink(socket: try socket(), buffer: buffer)
        // To port 0 nothing can be sent.
        sink.append([1], to: TransportAddress(ip: .loopback, port: 0))
        #expect(buffer.counters.droppedOther == 1 && buffer.counters.datagramsOut == 0)
        #expect(buffer.counters.sendCalls == 1)
    }
}

@Suite struct `A sink that sends over a connection` {
    private let buffer = DirectSinkBuffer()
    private let address = TransportAddress(ip: .loopback, port: 9, transport: .tcp)

    private func connect(_ pair: StreamPair, limits: FrameQueue.Limits = .init()) -> TCPConnection {
        TCPConnection(
            AcceptedConnection(descriptor: pair.inner, remote: address, quotas: []), token: 1, deadline: nil,
            limits: limits, at: MonotonicClock.now())
    }

    @Test func `sends frames`() throws {
        let pair = try StreamPair()
        var sink = DirectSink(connection: connect(pair), buffer: buffer)
        sink.append([1, 2, 3], to: address)
        sink.append([4], to: address)
        #expect(pair.receive() == [[1, 2, 3], [4]])
        #expect(buffer.counters.datagramsOut == 2 && buffer.counters.bytesOut == 4)
    }

    @Test func `keeps order and whole frames when the other end reads late`() throws {
        let pair = try StreamPair()
        let connection = connect(pair)
        var sink = DirectSink(connection: connection, buffer: buffer)
        var sent = 0
        while connection.queue.isEmpty, sent < 10_000 {
            sink.append(datagram(sent, size: 1_000), to: address)
            sent += 1
        }
        let isWaiting = !connection.queue.isEmpty
        #expect(isWaiting && buffer.counters.unsent == 0)
        var found = pair.receive()
        // What waited leaves before the next datagram.
        sink.append([0, 0, 0, 1], to: address)
        found += pair.receive()
        #expect(found.count == sent + 1 && found.last == [0, 0, 0, 1])
        for (number, bytes) in found.dropLast().enumerated() {
            #expect(bytes == datagram(number, size: 1_000))
        }
    }

    @Test func `counts what a full queue drops, and goes on once there is room`() throws {
        var limits = FrameQueue.Limits()
        limits.bytes = 3_000
        let pair = try StreamPair()
        let connection = connect(pair, limits: limits)
        var sink = DirectSink(connection: connection, buffer: buffer)
        var tries = 0
        while buffer.counters.droppedBufferFull == 0, tries < 10_000 {
            sink.append(datagram(tries, size: 1_000), to: address)
            tries += 1
        }
        #expect(buffer.counters.droppedBufferFull == 1)
        #expect(connection.queue.waiting <= 3_000)
        var found = pair.receive()
        sink.append([9], to: address)
        found += pair.receive()
        #expect(found.count == tries && found.last == [9])
        #expect(buffer.counters.datagramsOut == UInt64(tries))
    }

    @Test func `drops and counts what follows the end of the connection`() throws {
        var pairs = [try StreamPair()]
        var sink = DirectSink(connection: connect(pairs[0]), buffer: buffer)
        sink.append([1], to: address)
        pairs.removeAll()
        sink.append([2], to: address)
        #expect(buffer.counters.datagramsOut == 1 && buffer.counters.unsent == 1)
    }
}
