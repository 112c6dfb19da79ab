import Base
import Glibc
import TestSupport
import Testing

@testable import Net

@Suite struct `While the socket's buffer is full` {
    @Test func `datagrams wait, and leave in order once there is room`() throws {
        var remote = try Remote()
        let batch = try Sender()
        batch.kernel.answer = { _ in EAGAIN }
        for number in 0..<10 {
            batch.append(datagram(number, size: 200), to: remote.address)
            batch.flush()
            #expect(batch.isBlocked)
        }
        #expect(batch.kernel.seen.count == 1, "it asks again only when the kernel says that there is room")
        #expect(batch.counters.delayed == 10)
        #expect(remote.receiveWaiting().isEmpty)

        batch.kernel.answer = { _ in nil }
        batch.append(datagram(10, size: 200), to: remote.address)
        batch.becameWritable()
        #expect(!batch.isBlocked)
        #expect(remote.receiveWaiting().map(\.bytes) == (0...10).map { datagram($0, size: 200) })
    }

    @Test func `what exceeds the backlog is dropped and counted, large datagrams first`() throws {
        var remote = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.backlogBytes = 20_000
        capacity.backlogDatagrams = 100
        let batch = try Sender(capacity)
        batch.kernel.answer = { _ in EAGAIN }
        for number in 0..<30 {
            batch.append(datagram(number, size: 1_200), to: remote.address)
            batch.append(datagram(1_000 + number, size: 150), to: remote.address)
        }
        batch.flush()
        batch.kernel.answer = { _ in nil }
        batch.becameWritable()
        let sizes = remote.receiveWaiting().map(\.bytes.count)
        #expect(sizes.filter { $0 == 150 }.count == 30)
        #expect(sizes.filter { $0 == 1_200 }.count < 10)
        #expect(Int(batch.counters.droppedBufferFull) == 60 - sizes.count)
        #expect(Int(batch.counters.delayed) == sizes.count)
    }

    @Test func `a message half sent as plain datagrams goes on where it stopped`() throws {
        var remote = try Remote()
        let batch = try Sender()
        try #require(batch.socket.canSegment)
        var left = 4
        batch.kernel.answer = { message in
            guard message.datagrams == 1 else { return EIO }
            left -= 1
            return left >= 0 ? nil : EAGAIN
        }
        for number in 0..<9 { batch.append(datagram(number, size: 300), to: remote.address) }
        batch.flush()
        #expect(remote.receiveWaiting().count == 4)
        batch.kernel.answer = { _ in nil }
        batch.becameWritable()
        #expect(remote.receiveWaiting().map(\.bytes) == (4..<9).map { datagram($0, size: 300) })
    }

    /// Whatever the kernel answers: no datagram twice, none out of order for its destination, each accounted for.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `every datagram is sent once, in order, or counted as dropped`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var first = try Remote()
        var second = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.bytes = 30_000
        capacity.datagrams = 64
        capacity.backlogBytes = 12_000
        capacity.backlogDatagrams = 32
        let batch = try Sender(capacity)
        var answers = SeededGenerator(seed: seed &+ 1_000)
        batch.kernel.answer = { _ in
            [nil, nil, nil, nil, EAGAIN, EIO, EMSGSIZE, ENOBUFS].randomElement(using: &answers) ?? nil
        }
        var appended = 0
        for _ in 0..<40 {
            for _ in 0..<Int.random(in: 0..<50, using: &random) {
                let size = [1_200, 1_200, 80, 600].randomElement(using: &random) ?? 80
                let address = Bool.random(using: &random) ? first.address : second.address
                batch.append(datagram(appended, size: size), to: address)
                appended += 1
            }
            if Bool.random(using: &random) { batch.flush() }
            if Bool.random(using: &random), batch.isBlocked { batch.becameWritable() }
        }
        batch.kernel.answer = { _ in nil }
        batch.becameWritable()

        var arrived = 0
        for received in [first.receiveWaiting(), second.receiveWaiting()] {
            let numbers = received.map { $0.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) } }
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
            #expect(
                received.allSatisfy { entry in
                    entry.bytes
                        == datagram(
                            entry.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }, size: entry.bytes.count)
                })
            arrived += received.count
        }
        let counters = batch.counters
        #expect(Int(counters.datagramsOut) == arrived)
        let dropped = counters.droppedBufferFull + counters.droppedTooLarge + counters.droppedOther
        #expect(arrived + Int(dropped) == appended)
        #expect(dropped > 0 && arrived > 0)
    }
}
