import Base
import Testing

@testable import Forwarding

@Suite struct `Addresses of sessions that ended` {
    private var ended = EndedAddresses()
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    private func address(_ port: Int) -> TransportAddress {
        TransportAddress(ip: .loopback, port: UInt16(truncatingIfNeeded: port))
    }

    @Test mutating func `the address of an ended session is known for a second, and then forgotten`() {
        var isKnown = ended.contains(address(1), at: start)
        #expect(!isKnown)
        ended.insert(address(1), at: start)
        for milliseconds in [0, 1, 500, 999] {
            isKnown = ended.contains(address(1), at: start + .milliseconds(milliseconds))
            #expect(isKnown, "after \(milliseconds) ms")
        }
        isKnown = ended.contains(address(2), at: start + .milliseconds(999))
        #expect(!isKnown)
        isKnown = ended.contains(address(1), at: start + .seconds(2))
        #expect(!isKnown)
    }

    @Test mutating func `an address is known for at least a second, whenever it is inserted`() {
        ended.insert(address(1), at: start)
        ended.insert(address(2), at: start + .milliseconds(900))
        ended.insert(address(3), at: start + .milliseconds(1_100))
        var isKnown = ended.contains(address(2), at: start + .milliseconds(1_899))
        #expect(isKnown)
        isKnown = ended.contains(address(1), at: start + .milliseconds(2_100))
        #expect(!isKnown)
        isKnown = ended.contains(address(3), at: start + .milliseconds(2_099))
        #expect(isKnown)
        // After a long time without a lookup.
        isKnown = ended.contains(address(3), at: start + .seconds(60))
        #expect(!isKnown)
    }

    @Test mutating func `the number of known addresses is bounded`() {
        for port in 0...EndedAddresses.capacity { ended.insert(address(port), at: start) }
        var isKnown = ended.contains(address(EndedAddresses.capacity - 1), at: start)
        #expect(isKnown)
        isKnown = ended.contains(address(EndedAddresses.capacity), at: start)
        #expect(!isKnown)
        ended.insert(address(EndedAddresses.capacity), at: start + .seconds(1))
        isKnown = ended.contains(address(EndedAddresses.capacity), at: start + .seconds(1))
        #expect(isKnown)
    }
}
