import Testing
import TestSupport
import Wire

@Suite struct SequenceNumbers {
    @Test(
        arguments: [(1, 0, true), (0, 65_535, true), (65_535, 0, false), (5, 5, false), (32_767, 0, true)]
            as [(UInt16, UInt16, Bool)])
    func `are compared the short way round`(candidate: UInt16, reference: UInt16, isNewer: Bool) {
        #expect(SequenceNumber.isNewer(candidate, than: reference) == isNewer)
    }

    @Test func `have a signed distance`() {
        #expect(SequenceNumber.distance(from: 65_535, to: 2) == 3)
        #expect(SequenceNumber.distance(from: 2, to: 65_535) == -3)
    }

    @Test func `are unwrapped over loss and reordering`() {
        var unwrapper = SequenceUnwrapper()
        #expect(
            [65_533, 65_535, 1, 65_534, 0, 40_000, 10].map { unwrapper.unwrap($0) } == [
                65_533, 65_535, 65_537, 65_534, 65_536, 40_000, 65_546,
            ])
        #expect(unwrapper.highest == 65_546)
    }

    @Test func `keep their low bits and come closest to the highest`() {
        var random = SeededGenerator(seed: 3)
        var unwrapper = SequenceUnwrapper()
        for _ in 0..<10_000 {
            let number = UInt16.random(in: 0...65_535, using: &random)
            let before = unwrapper.highest
            let peeked = unwrapper.peek(number)
            let value = unwrapper.unwrap(number)
            #expect(peeked == value)
            #expect(UInt16(truncatingIfNeeded: value) == number)
            if let before { #expect(abs(value - before) <= 32_768) }
        }
    }
}

@Suite struct Retransmissions {
    private func packet(payload: [UInt8]) -> [UInt8] {
        [0x80, 97, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2] + payload
    }

    @Test func `carry the original sequence number before the payload`() throws {
        let bytes = packet(payload: [0xAB, 0xCD, 1, 2, 3])
        let header = try RTPHeader(parsing: bytes.span)
        let original = try Retransmission.original(of: header, in: bytes.span, payloadType: 96, ssrc: 77)
        #expect(original?.sequenceNumber == 0xABCD)
        #expect(original?.payloadType == 96)
        #expect(original?.ssrc == 77)
        #expect(original?.timestamp == 1)
        #expect(original?.payloadRange == 14..<17)
    }

    @Test func `without payload are probes`() throws {
        let bytes = packet(payload: [])
        let header = try RTPHeader(parsing: bytes.span)
        #expect(try Retransmission.original(of: header, in: bytes.span, payloadType: 96, ssrc: 77) == nil)
    }

    @Test func `with half a sequence number are refused`() throws {
        let bytes = packet(payload: [1])
        let header = try RTPHeader(parsing: bytes.span)
        #expect(throws: WireError.truncated) {
            try Retransmission.original(of: header, in: bytes.span, payloadType: 96, ssrc: 77)
        }
    }

    @Test func `are written with their prefix`() throws {
        var bytes: [UInt8] = [0, 0, 0]
        var span = bytes.mutableSpan
        let end = try Retransmission.writePrefix(original: 0x0102, into: &span, at: 1)
        #expect(end == 3)
        #expect(bytes == [0, 1, 2])
    }
}
