import Base
import Net
import Testing

/// Sends back what it gets, and says what it was told to say.
private struct Echo: DatagramHandler {
    enum Command: Sendable {
        case say([UInt8], to: TransportAddress)
    }

    var deadline: MonotonicTime?
    var farewell: TransportAddress?

    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        switch command {
        case .say(let bytes, let destination):
            sink.append(bytes, to: destination)
            farewell = destination
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        sink.append(datagram.indices.map { datagram[$0] }, to: source)
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) { deadline = nil }

    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {
        if let farewell { sink.append([0xFF], to: farewell) }
    }
}

@Suite struct `A worker` {
    private let anywhere = TransportAddress(ip: .loopback, port: 0)

    private func echo() throws -> WorkerThread<Echo> {
        try WorkerThread(WorkerConfiguration(address: anywhere)) { _ in Echo() }
    }

    @Test func `tells the port that the kernel chose`() throws {
        let worker = try echo()
        #expect(worker.localAddress.ip == .loopback)
        #expect(worker.localAddress.port != 0)
        worker.stop()
    }

    @Test func `hands datagrams to its handler and sends what that wrote`() throws {
        let worker = try echo()
        var remote = try Remote()
        let sent = (0..<100).map { datagram($0, size: 40 + $0) }
        remote.send(sent, to: worker.localAddress)
        let echoed = remote.receive(100)
        #expect(echoed.map(\.bytes) == sent)
        #expect(echoed.allSatisfy { $0.source == worker.localAddress })
        worker.stop()
        #expect(worker.statistics.traffic.datagramsIn == 100)
        #expect(worker.statistics.traffic.datagramsOut == 100)
        #expect(worker.statistics.traffic.bytesIn == worker.statistics.traffic.bytesOut)
    }

    @Test func `carries out commands from any thread, and says goodbye when stopped`() throws {
        let worker = try echo()
        var remote = try Remote()
        #expect(worker.post(.say([1, 2, 3], to: remote.address)))
        #expect(remote.receive(1).map(\.bytes) == [[1, 2, 3]])
        #expect(worker.post(.say([4], to: remote.address)))
        worker.stop()
        #expect(remote.receiveWaiting().map(\.bytes) == [[4], [0xFF]])
        #expect(!worker.post(.say([5], to: remote.address)))
    }
}
