import Base
import TestSupport
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

/// The same rules in plain lists, without the queue's sums and its head.
private struct PlainQueue {
    static let bytes = 200
    static let count = 12
    static let streamBytes = 120
    static let part = 4
    var waiting: [SendQueue.Waiting] = []
    var dropped = 0

    private func hasRoom(_ message: SCTPMessage, besides waiting: [SendQueue.Waiting]) -> Bool {
        let total = waiting.reduce(message.bytes.count) { $0 + $1.message.bytes.count }
        let ofStream = waiting.filter { $0.message.stream == message.stream }
            .reduce(message.bytes.count) { $0 + $1.message.bytes.count }
        let isControl = message.stream == 0
        return waiting.count < Self.count - (isControl ? 0 : Self.count / Self.part)
            && total <= Self.bytes - (isControl ? 0 : Self.bytes / Self.part) && ofStream <= Self.streamBytes
    }

    /// Returns whether there was room, or could be made by as few of the oldest messages as possible.
    mutating func append(_ message: SCTPMessage, at now: MonotonicTime) -> Bool {
        var kept = waiting
        while !hasRoom(message, besides: kept) {
            guard message.delivery.reliability != .reliable,
                let oldest = kept.firstIndex(where: { other in
                    other.message.stream == message.stream && other.message.delivery.reliability != .reliable
                })
            else { return false }
            kept.remove(at: oldest)
        }
        dropped += waiting.count - kept.count
        let place = message.stream == 0 ? kept.firstIndex(where: { $0.message.stream != 0 }) : nil
        kept.insert(SendQueue.Waiting(message: message, since: now), at: place ?? kept.count)
        waiting = kept
        return true
    }

    mutating func first(at now: MonotonicTime) -> SCTPMessage? {
        while let first = waiting.first {
            var isLate = false
            if case .lifetime(let milliseconds) = first.message.delivery.reliability {
                isLate = now - first.since >= .milliseconds(max(milliseconds, 1))
            }
            guard isLate else { return first.message }
            waiting.removeFirst()
            dropped += 1
        }
        return nil
    }
}

@Suite struct `A send queue with any messages` {
    @Test(arguments: 0..<30 as Range<UInt64>)
    func `keeps to its limits, its order and its priorities`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = SendQueue(
            maximumBytes: PlainQueue.bytes, maximumCount: PlainQueue.count,
            maximumStreamBytes: PlainQueue.streamBytes, reservedPart: PlainQueue.part)
        var plain = PlainQueue()
        var now = MonotonicTime.zero
        var refused = 0
        for number in 0..<1_500 {
            now = now + .milliseconds(Int.random(in: 0...5, using: &random))
            switch Int.random(in: 0...9, using: &random) {
            case 0...5:
                let reliabilities: [DataChannelDelivery.Reliability] = [
                    .reliable, .retransmissions(0), .lifetime(milliseconds: UInt32(number % 40)),
                ]
                let message = SCTPMessage(
                    stream: UInt16.random(in: 0...3, using: &random), payload: UInt32(number),
                    delivery: DataChannelDelivery(
                        reliability: reliabilities[Int.random(in: 0...2, using: &random)]),
                    bytes: [UInt8](repeating: 1, count: Int.random(in: 1...60, using: &random)))
                let isTaken: Bool
                do throws(SCTPSendError) {
                    try queue.append(message, at: now)
                    isTaken = true
                } catch {
                    #expect(error == .bufferFull)
                    isTaken = false
                }
                let mayBeTaken = plain.append(message, at: now)
                #expect(isTaken == mayBeTaken)
                refused += isTaken ? 0 : 1
            case 6...8:
                let (found, expected) = (queue.first(at: now)?.message, plain.first(at: now))
                #expect(found == expected)
                queue.removeFirst()
                if !plain.waiting.isEmpty { plain.waiting.removeFirst() }
            default:
                let (found, expected) = (queue.first(at: now)?.message, plain.first(at: now))
                #expect(found == expected)
            }
            #expect(queue.count == plain.waiting.count)
            #expect(queue.isEmpty == plain.waiting.isEmpty)
            #expect(queue.dropped == plain.dropped)
            for stream in 0...3 as ClosedRange<UInt16> {
                let bytes = plain.waiting.filter { $0.message.stream == stream }.map(\.message.bytes.count)
                #expect(queue.buffered(stream) == bytes.reduce(0, +))
            }
        }
        #expect(refused > 0 && plain.dropped > 0)
    }
}
