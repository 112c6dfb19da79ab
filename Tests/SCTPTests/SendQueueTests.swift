import Base
import Testing
import Wire

@testable import SCTP

@Suite struct SendQueues {
    private var queue = SendQueue(maximumBytes: 100, maximumCount: 4)
    private let start = MonotonicTime.zero

    private func message(
        _ stream: UInt16, _ count: Int, _ reliability: DataChannelDelivery.Reliability = .reliable
    ) -> SCTPMessage {
        SCTPMessage(
            stream: stream, payload: 53, delivery: DataChannelDelivery(reliability: reliability),
            bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: stream), count: count))
    }

    private mutating func takeAll(at now: MonotonicTime) -> [SCTPMessage] {
        var all: [SCTPMessage] = []
        while let first = queue.first(at: now) {
            all.append(first.message)
            queue.removeFirst()
        }
        return all
    }

    @Test mutating func `give messages out in their order`() throws {
        let sent = [message(1, 10), message(2, 20), message(1, 30)]
        for message in sent { try queue.append(message, at: start) }
        #expect(queue.buffered(1) == 40)
        #expect(queue.buffered(2) == 20)
        #expect(takeAll(at: start) == sent)
        #expect(queue.isEmpty)
        #expect(queue.buffered(1) == 0)
    }

    @Test mutating func `give out what is for stream 0 first`() throws {
        let sent = [message(1, 10), message(0, 20), message(2, 30), message(0, 5)]
        for message in sent { try queue.append(message, at: start) }
        #expect(takeAll(at: start) == [sent[1], sent[3], sent[0], sent[2]])
    }

    @Test mutating func `refuse what is too much`() throws {
        try queue.append(message(1, 60), at: start)
        #expect(throws: SCTPSendError.bufferFull) { try queue.append(message(1, 41), at: start) }
        try queue.append(message(1, 40), at: start)
        queue.removeFirst()
        try queue.append(message(1, 60), at: start)
        #expect(queue.count == 2)
    }

    @Test mutating func `refuse what is too many`() throws {
        for _ in 0..<4 { try queue.append(message(1, 1), at: start) }
        #expect(throws: SCTPSendError.bufferFull) { try queue.append(message(1, 1), at: start) }
    }

    @Test mutating func `let a lossy message push out older ones of its stream`() throws {
        let lossy = DataChannelDelivery.Reliability.retransmissions(0)
        try queue.append(message(1, 30), at: start)
        try queue.append(message(2, 30, lossy), at: start)
        try queue.append(message(3, 30, lossy), at: start)
        try queue.append(message(2, 30, lossy), at: start)
        #expect(queue.dropped == 1)
        #expect(takeAll(at: start).map(\.stream) == [1, 3, 2])
    }

    @Test mutating func `refuse a lossy message when nothing of its stream can go`() throws {
        try queue.append(message(1, 60), at: start)
        try queue.append(message(3, 30, .retransmissions(0)), at: start)
        #expect(throws: SCTPSendError.bufferFull) {
            try queue.append(message(1, 30, .retransmissions(0)), at: start)
        }
        #expect(takeAll(at: start).map(\.stream) == [1, 3])
    }

    @Test mutating func `drop what is too late`() throws {
        try queue.append(message(1, 10, .lifetime(milliseconds: 50)), at: start)
        try queue.append(message(2, 10), at: start)
        #expect(queue.first(at: start + .milliseconds(20))?.lifetime(at: start + .milliseconds(20)) == 30)
        #expect(takeAll(at: start + .milliseconds(50)).map(\.stream) == [2])
        #expect(queue.dropped == 1)
    }

    /// W3C's `maxPacketLifeTime` of 0: never sent again, but sent.
    @Test mutating func `try once what has no lifetime`() throws {
        try queue.append(message(1, 10, .lifetime(milliseconds: 0)), at: start)
        #expect(queue.first(at: start)?.lifetime(at: start) == 1)
        #expect(takeAll(at: start + .milliseconds(1)).isEmpty)
        #expect(queue.dropped == 1)
    }

    @Test mutating func `drop nothing for a message that is refused all the same`() throws {
        let lossy = DataChannelDelivery.Reliability.retransmissions(0)
        try queue.append(message(1, 60), at: start)
        try queue.append(message(2, 10, lossy), at: start)
        #expect(throws: SCTPSendError.bufferFull) { try queue.append(message(2, 60, lossy), at: start) }
        #expect(queue.dropped == 0)
        #expect(takeAll(at: start).map(\.stream) == [1, 2])
    }

    @Test mutating func `stay small however much passes through`() throws {
        for number in 0..<1_000 {
            try queue.append(message(UInt16(number % 7), 20), at: start)
            try queue.append(message(UInt16(number % 5), 20), at: start)
            queue.removeFirst()
            queue.removeFirst()
        }
        #expect(queue.isEmpty)
    }
}
