import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `Handshakes that wait` {
    private let source = TransportAddress(ip: .loopback, port: 5)
    private var random = SeededGenerator(seed: 3)

    @Test mutating func `handshakes are served in the order in which they came`() {
        var queue = HandshakeQueue()
        var expected: UInt16 = 0
        var sent: UInt16 = 0
        let sessions = (0..<200).map { _ in SessionID(using: &random) }
        for round in 0..<200 {
            for _ in 0..<(round % 13) {
                let bytes = [UInt8(sent >> 8), UInt8(sent & 0xFF)]
                let isTaken = queue.append(bytes.span, of: sessions[round], from: source)
                #expect(isTaken)
                sent += 1
            }
            for _ in 0..<6 {
                guard let record = queue.next() else { break }
                #expect(record.bytes == [UInt8(expected >> 8), UInt8(expected & 0xFF)])
                expected += 1
            }
        }
        while queue.next() != nil { expected += 1 }
        #expect(expected == sent && queue.isEmpty)
    }

    @Test mutating func `the number of waiting handshakes is bounded`() {
        var queue = HandshakeQueue()
        let sessions = (0..<HandshakeQueue.limit).map { _ in SessionID(using: &random) }
        let bytes: [UInt8] = [1]
        var taken = 0
        for number in 0..<(HandshakeQueue.limit + 3)
        where queue.append(bytes.span, of: sessions[number % sessions.count], from: source) { taken += 1 }
        #expect(taken == HandshakeQueue.limit)
        _ = queue.next()
        if queue.append(bytes.span, of: sessions[0], from: source) { taken += 1 }
        #expect(taken == HandshakeQueue.limit + 1)
        var count = 0
        while queue.next() != nil { count += 1 }
        #expect(count == HandshakeQueue.limit)
    }

    @Test mutating func `one client's handshakes leave room for those of others`() {
        var queue = HandshakeQueue()
        let (greedy, other) = (SessionID(using: &random), SessionID(using: &random))
        let bytes: [UInt8] = [1]
        var taken = 0
        for _ in 0..<HandshakeQueue.limit where queue.append(bytes.span, of: greedy, from: source) {
            taken += 1
        }
        #expect(taken == HandshakeQueue.limitForEach)
        let isTaken = queue.append(bytes.span, of: other, from: source)
        #expect(isTaken)
        // What has been served makes room again.
        #expect(queue.next()?.session == greedy)
        let isTakenAgain = queue.append(bytes.span, of: greedy, from: source)
        #expect(isTakenAgain)
        while queue.next() != nil {}
        for _ in 0..<HandshakeQueue.limitForEach {
            let isTaken = queue.append(bytes.span, of: greedy, from: source)
            #expect(isTaken)
        }
    }
}
