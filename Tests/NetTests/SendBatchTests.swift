import Base
import Crypto
import Glibc
import Peer
import TestSupport
import Testing

@testable import Net

@Suite struct `A send batch` {
    /// Batches as fan-out writes them: mixed sizes, every destination in turn.
    private func fanOut(seed: UInt64, to addresses: [TransportAddress]) -> [(TransportAddress, [UInt8])] {
        var random = SeededGenerator(seed: seed)
        var result: [(TransportAddress, [UInt8])] = []
        for number in 0..<120 {
            let size = [1_200, 1_200, 1_200, 700, 90].randomElement(using: &random) ?? 90
            for address in addresses { result.append((address, datagram(number, size: size))) }
        }
        return result
    }

    @Test(arguments: [EIO, EINVAL, EOPNOTSUPP, EMSGSIZE])
    func `gives the same datagrams whether or not the kernel cuts messages`(code: Int32) throws {
        var cut = try Remote()
        var plain = try Remote()
        var other = try Remote()
        for seed in 1...4 as ClosedRange<UInt64> {
            let whole = try Sender()
            for (address, bytes) in fanOut(seed: seed, to: [cut.address, other.address]) {
                whole.append(bytes, to: address)
            }
            whole.flush()
            if whole.socket.canSegment { #expect(whole.counters.segmentedMessagesOut > 0) }

            let single = try Sender()
            single.kernel.refuseSegmentation(with: code)
            let sent = fanOut(seed: seed, to: [plain.address, other.address])
            for (address, bytes) in sent { single.append(bytes, to: address) }
            single.flush()
            #expect(single.counters.segmentedMessagesOut == 0)
            #expect(single.counters.datagramsOut == whole.counters.datagramsOut)
            #expect(single.counters.bytesOut == whole.counters.bytesOut)

            let expected = sent.filter { $0.0 == plain.address }.map(\.1)
            #expect(cut.receiveWaiting().map(\.bytes) == expected)
            #expect(plain.receiveWaiting().map(\.bytes) == expected)
            #expect(other.receiveWaiting().count == 2 * expected.count)
        }
    }

    @Test func `shows a capture what leaves for its client alone, one by one or together`() throws {
        var captured = try Remote()
        var other = try Remote()
        let batch = try Sender()
        let local = TransportAddress(ip: .loopback, port: 7_000)
        let capture = HeaderCapture(local: local, clock: WallClock(unixNanoseconds: 0, at: .zero))
        capture.remote = captured.address
        batch.capture = capture
        let packet: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3] + [UInt8](repeating: 7, count: 100)
        let empty = capture.bytes.count
        batch.append(packet, to: other.address)
        #expect(capture.bytes.count == empty)
        batch.append(packet, to: captured.address)
        let one = 16 + 28 + 12
        #expect(capture.bytes.count == empty + one)
        for address in [captured.address, other.address] {
            batch.append(3, to: address, capacity: 200) { _, span in
                for (index, byte) in packet.enumerated() { span[index] = byte }
                return EncryptedPacket(length: packet.count)
            }
        }
        #expect(capture.bytes.count == empty + 4 * one)
        batch.flush()
        #expect(captured.receiveWaiting().map(\.bytes) == Array(repeating: packet, count: 4))
        #expect(other.receiveWaiting().count == 4)
    }

    @Test func `gathers what is not adjacent into one message for each destination`() throws {
        var first = try Remote()
        var second = try Remote()
        let batch = try Sender()
        for number in 0..<10 {
            batch.append(datagram(number, size: 1_000), to: first.address)
            batch.append(datagram(number + 100, size: 900), to: second.address)
        }
        batch.flush()
        #expect(
            batch.kernel.seen.map(\.datagrams)
                == (batch.socket.canSegment ? [10, 10] : Array(repeating: 1, count: 20)))
        #expect(batch.counters.sendCalls == 1)
        #expect(first.receiveWaiting().map(\.bytes) == (0..<10).map { datagram($0, size: 1_000) })
        #expect(second.receiveWaiting().map(\.bytes) == (100..<110).map { datagram($0, size: 900) })
    }

    @Test(.enabled(if: try Sender().socket.canSegment))
    func `ends a message after a smaller datagram and before a larger one`() throws {
        var remote = try Remote()
        let batch = try Sender()
        let sizes = [500, 500, 300, 300, 700, 700, 700, 20]
        for (number, size) in sizes.enumerated() {
            batch.append(datagram(number, size: size), to: remote.address)
        }
        batch.flush()
        #expect(batch.kernel.seen.map(\.datagrams) == [3, 1, 4])
        #expect(remote.receiveWaiting().map(\.bytes.count) == sizes)
    }

    @Test(.enabled(if: try Sender().socket.canSegment))
    func `keeps a message below 65 segments and 65,001 bytes`() throws {
        var remote = try Remote()
        let batch = try Sender()
        for number in 0..<130 { batch.append(datagram(number, size: 100), to: remote.address) }
        for number in 0..<60 { batch.append(datagram(number, size: 1_200), to: remote.address) }
        batch.flush()
        #expect(batch.kernel.seen.map(\.datagrams) == [64, 64, 2, 54, 6])
        #expect(batch.kernel.seen.allSatisfy { $0.byteCount <= 65_000 })
        #expect(remote.receiveWaiting().count == 190)
    }

    @Test func `takes several datagrams for one destination at once`() throws {
        var first = try Remote()
        var second = try Remote()
        let batch = try Sender()
        for address in [first.address, second.address] {
            batch.append(datagram(9, size: 700), to: address)
            batch.append(5, to: address, capacity: 800) { number, buffer in
                guard number != 2 else { return EncryptedPacket(length: 0) }
                let bytes = datagram(number, size: 700)
                for index in bytes.indices { buffer[index] = bytes[index] }
                return EncryptedPacket(length: bytes.count)
            }
        }
        batch.flush()
        let expected = [9, 0, 1, 3, 4].map { datagram($0, size: 700) }
        #expect(first.receiveWaiting().map(\.bytes) == expected)
        #expect(second.receiveWaiting().map(\.bytes) == expected)
        #expect(batch.counters.datagramsOut == 10)
        #expect(batch.counters.messagesOut == (batch.socket.canSegment ? 2 : 10))
    }

    @Test func `takes several datagrams at once where not all of them fit`() throws {
        var remote = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.datagrams = 7
        let batch = try Sender(capacity)
        for round in 0..<3 {
            // The second time the arena has no room left for five, the third time it never has for twenty.
            batch.append(round < 2 ? 5 : 20, to: remote.address, capacity: 400) { number, buffer in
                buffer[0] = UInt8(truncatingIfNeeded: round * 100 + number)
                return EncryptedPacket(length: 300)
            }
        }
        batch.flush()
        let expected = [0..<5, 100..<105, 200..<220].flatMap { Array($0) }
        #expect(remote.receiveWaiting().map { Int($0.bytes[0]) } == expected)
    }

    /// There is room for the addresses of as many destinations as there may be datagrams.
    @Test func `keeps no destination for which nothing was written`() throws {
        var remote = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.datagrams = 16
        let batch = try Sender(capacity)
        for port in 1...17 as ClosedRange<UInt16> {
            batch.append(2, to: TransportAddress(ip: .loopback, port: port), capacity: 400) { _, _ in
                EncryptedPacket(length: 0)
            }
        }
        let bytes = datagram(1, size: 300)
        batch.append(bytes, to: remote.address)
        batch.flush()
        #expect(remote.receiveWaiting().map(\.bytes) == [bytes])
        #expect(batch.counters.datagramsOut == 1)
    }

    @Test func `leaves early when its arena is full`() throws {
        var remote = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.bytes = 10_000
        let small = try Sender(capacity)
        for number in 0..<50 { small.append(datagram(number, size: 1_000), to: remote.address) }
        #expect(small.counters.datagramsOut > 0)
        small.flush()
        capacity = SendBatch.Capacity()
        capacity.datagrams = 7
        let few = try Sender(capacity)
        for number in 50..<100 { few.append(datagram(number, size: 1_000), to: remote.address) }
        few.flush()
        #expect(remote.receiveWaiting().map(\.bytes) == (0..<100).map { datagram($0, size: 1_000) })
    }

    @Test func `queues nothing when the writer throws or returns no length`() throws {
        struct Refusal: Error {}
        var remote = try Remote()
        let batch = try Sender()
        let address = remote.address
        #expect(throws: Refusal.self) {
            try batch.append(to: address, capacity: 100) { (_: inout MutableSpan<UInt8>) throws(Refusal) in
                throw Refusal()
            }
        }
        batch.append(to: address, capacity: 100) { _ in 0 }
        batch.flush()
        #expect(batch.counters == TrafficCounters())
        #expect(remote.receiveWaiting().isEmpty)
    }

    @Test func `stops asking for segmentation after repeated refusals, and tries again later`() throws {
        var remote = try Remote()
        let batch = try Sender()
        try #require(batch.socket.canSegment)
        batch.kernel.refuseSegmentation(with: EIO)
        func asked(at now: MonotonicTime) -> Bool {
            let before = batch.counters.segmentationRefused
            for number in 0..<3 { batch.append(datagram(number, size: 500), to: remote.address) }
            batch.flush(at: now)
            return batch.counters.segmentationRefused > before
        }
        for _ in 0..<Transmitter.refusalsBeforePause { #expect(asked(at: .zero)) }
        #expect(!asked(at: .zero))
        let later = MonotonicTime(nanoseconds: Transmitter.pauseNanoseconds)
        #expect(!asked(at: later.advanced(byNanoseconds: -1)))
        #expect(asked(at: later))
        #expect(remote.receiveWaiting().count == 3 * (Transmitter.refusalsBeforePause + 3))
    }

    @Test func `drops what cannot leave by its reason and sends the rest`() throws {
        var good = try Remote()
        let bad = TransportAddress(ip: .loopback, port: 9)
        let batch = try Sender()
        for code in [EMSGSIZE, ENETUNREACH, EPERM, EINVAL] {
            batch.kernel.answer = { $0.destination == bad ? code : nil }
            batch.append(datagram(0, size: 100), to: good.address)
            batch.append(datagram(1, size: 100), to: bad)
            batch.append(datagram(2, size: 90), to: good.address)
            batch.flush()
            #expect(good.receiveWaiting().map(\.bytes.count) == [100, 90])
        }
        #expect(batch.counters.droppedTooLarge == 1)
        #expect(batch.counters.droppedUnreachable == 2)
        #expect(batch.counters.droppedOther == 1)
        #expect(!batch.isBlocked)
    }
}
