import Base
import Testing

@testable import Net

@Suite struct `Datagrams between workers` {
    private let source = TransportAddress(ip: .loopback, port: 1)
    private let other = TransportAddress(ip: .loopback, port: 2)

    private func bundle(_ datagrams: [[UInt8]], from source: TransportAddress) -> DatagramBundle {
        var bundle = DatagramBundle()
        for datagram in datagrams { bundle.append(datagram.span, from: source) }
        return bundle
    }

    private func contents(_ mailbox: DatagramMailbox) -> [([UInt8], TransportAddress)] {
        var found: [([UInt8], TransportAddress)] = []
        var bundle = DatagramBundle()
        mailbox.swapContents(with: &bundle)
        bundle.forEach { datagram, source in found.append((datagram.withUnsafeBytes { Array($0) }, source)) }
        return found
    }

    @Test func `come in order, with where they came from`() {
        let mailbox = DatagramMailbox()
        var first = bundle([[1, 2], [], [3]], from: source)
        var second = bundle([[4]], from: other)
        mailbox.post(&first)
        mailbox.post(&second)
        #expect(first.isEmpty && second.isEmpty)
        let found = contents(mailbox)
        #expect(found.map(\.0) == [[1, 2], [], [3], [4]])
        #expect(found.map(\.1) == [source, source, source, other])
        #expect(contents(mailbox).isEmpty && mailbox.dropped == 0)
    }

    @Test(arguments: [0, 1_200]) func `are dropped and counted where too many wait`(size: Int) {
        let mailbox = DatagramMailbox()
        let datagram = [UInt8](repeating: 7, count: size)
        let limit = DatagramBundle.capacity / (size + 64)
        for count in [limit - 1, 2, limit + 5] {
            var bundle = bundle([[UInt8]](repeating: datagram, count: count), from: source)
            mailbox.post(&bundle)
        }
        #expect(mailbox.dropped == UInt64(limit + 6))
        let found = contents(mailbox)
        #expect(found.count == limit && found.allSatisfy { $0.0 == datagram })
        var next = bundle([[1]], from: other)
        mailbox.post(&next)
        #expect(contents(mailbox).map(\.0) == [[1]])
    }

    @Test func `wake the worker whose they are, which takes them like its own`() throws {
        let mailbox = DatagramMailbox()
        var configuration = WorkerConfiguration(address: TransportAddress(ip: .loopback, port: 0))
        configuration.isPortShared = true
        configuration.handedOver = mailbox
        let worker = try WorkerThread(configuration) { _ in Answerer() }
        defer { worker.stop() }
        var remote = try Remote()
        var handed = bundle([[1], [2]], from: remote.address)
        mailbox.post(&handed)
        let answers = remote.receive(2)
        #expect(answers.map(\.bytes) == [[1, 1], [2, 1]])
        #expect(answers.allSatisfy { $0.source == worker.localAddress })
        remote.send([[3]], to: worker.localAddress)
        #expect(remote.receive(1).map(\.bytes) == [[3, 0]])
    }
}

/// Sends back what it gets, with a 1 behind it if another worker took it.
private struct Answerer: DatagramHandler {
    let deadline: MonotonicTime? = nil

    mutating func perform(_ command: Never, at now: MonotonicTime, into sink: inout SendBatch) {}

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        sink.append(datagram.withUnsafeBytes { Array($0) } + [0], to: source)
    }

    mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        sink.append(datagram.withUnsafeBytes { Array($0) } + [1], to: source)
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {}
}
