import Base
import Testing

@testable import Forwarding

@Suite struct `Handshakes that wait` {
    private let source = TransportAddress(ip: .loopback, port: 5)

    @Test func `come in their order, over and over`() {
        var queue = HandshakeQueue()
        var expected: UInt16 = 0
        var sent: UInt16 = 0
        for round in 0..<200 {
            for _ in 0..<(round % 13) {
                let bytes = [UInt8(sent >> 8), UInt8(sent & 0xFF)]
                let isTaken = queue.append(bytes.span, from: source)
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

    @Test func `are bounded`() {
        var queue = HandshakeQueue()
        let bytes: [UInt8] = [1]
        var taken = 0
        for _ in 0..<(HandshakeQueue.limit + 3) where queue.append(bytes.span, from: source) { taken += 1 }
        #expect(taken == HandshakeQueue.limit)
        _ = queue.next()
        if queue.append(bytes.span, from: source) { taken += 1 }
        #expect(taken == HandshakeQueue.limit + 1)
        var count = 0
        while queue.next() != nil { count += 1 }
        #expect(count == HandshakeQueue.limit)
    }
}
