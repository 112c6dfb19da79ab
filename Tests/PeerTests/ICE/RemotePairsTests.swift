import Base
import Testing

@testable import Peer

private func remote(_ port: UInt16) -> TransportAddress {
    TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: port, transport: .tcp)
}

/// Over TCP an address is proven from the start, so that only nominations and use decide.
@Suite struct `The remote addresses of a session` {
    private var pairs = RemotePairs()
    private let a = remote(1)
    private let b = remote(2)
    private let c = remote(3)
    private let d = remote(4)

    private mutating func check(
        _ address: TransportAddress, generation: Int = 0, nominating priority: UInt32? = nil,
        at milliseconds: Int64
    ) {
        _ = pairs.heardCheck(
            from: address, generation: generation, nominating: priority, at: at(milliseconds))
    }

    private mutating func nominate(
        _ address: TransportAddress, generation: Int = 0, priority: UInt32, at milliseconds: Int64
    ) -> Bool {
        check(address, generation: generation, nominating: priority, at: milliseconds)
        return pairs.nominate(address, at: at(milliseconds))
    }

    // MARK: Closed connections

    @Test mutating func `fall back to what was used, then to what is in reserve, then to nothing`() {
        let first = nominate(a, priority: 100, at: 0)
        let second = nominate(b, priority: 50, at: 10)
        #expect(first && !second)
        // Heard last, but never used.
        check(c, at: 20)
        let isRemoved = pairs.remove(a, at: at(30))
        #expect(isRemoved && pairs.selected == b)
        _ = pairs.remove(b, at: at(40))
        #expect(pairs.selected == c)
        _ = pairs.remove(c, at: at(50))
        #expect(pairs.selected == nil && pairs.all.isEmpty)
        let isRemovedAgain = pairs.remove(c, at: at(60))
        #expect(!isRemovedAgain)
    }

    @Test mutating func `stay where they are when a connection in reserve closes`() {
        _ = nominate(a, priority: 100, at: 0)
        check(b, at: 10)
        let isRemoved = pairs.remove(b, at: at(20))
        #expect(isRemoved && pairs.selected == a)
    }

    @Test mutating func `fall back to the credentials that are valid, however long ago they were used`() {
        let first = nominate(a, generation: 1, priority: 100, at: 0)
        #expect(first)
        check(b, generation: 1, nominating: 1, at: 10)
        check(c, generation: 0, nominating: 9, at: 100)
        _ = pairs.remove(a, at: at(200))
        #expect(pairs.selected == b)
    }

    @Test mutating func `never fall back to an address that is not proven`() {
        let unproven = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 9)
        _ = nominate(a, priority: 100, at: 0)
        check(unproven, nominating: 200, at: 10)
        _ = pairs.remove(a, at: at(20))
        #expect(pairs.selected == nil)
    }

    // MARK: Nominations

    @Test mutating func `move to a worse one only after a restart`() {
        _ = nominate(a, priority: 100, at: 0)
        let worse = nominate(b, priority: 99, at: 10)
        let equal = nominate(c, priority: 100, at: 20)
        #expect(!worse && equal && pairs.selected == c)
        let restarted = nominate(d, generation: 1, priority: 1, at: 30)
        #expect(restarted && pairs.selected == d)
        // The nomination from before the restart no longer counts.
        check(c, generation: 1, at: 40)
        let forgotten = pairs.nominate(c, at: at(40))
        #expect(!forgotten && pairs.selected == d)
    }

    @Test mutating func `move to none that was never checked`() {
        let unknown = pairs.nominate(a, at: at(0))
        #expect(!unknown && pairs.selected == nil)
        check(a, at: 0)
        let unnominated = pairs.nominate(a, at: at(0))
        #expect(!unnominated && pairs.selected == nil)
    }

    // MARK: Use

    @Test mutating func `follow the client to where it sends once the selected one is unused`() {
        _ = nominate(a, priority: 100, at: 0)
        check(b, at: 10)
        let onSelected = pairs.heardTraffic(from: a, at: at(290))
        let onOther = pairs.heardTraffic(from: b, at: at(300))
        #expect(onSelected && onOther)
        #expect(pairs.takeover == at(540))
        let early = pairs.followUse(at: at(539))
        #expect(!early)
        let late = pairs.followUse(at: at(540))
        #expect(late && pairs.selected == b)
    }

    @Test mutating func `stay while the client still uses the selected one`() {
        _ = nominate(a, priority: 100, at: 0)
        check(b, at: 10)
        _ = pairs.heardTraffic(from: b, at: at(300))
        _ = pairs.heardTraffic(from: a, at: at(301))
        #expect(pairs.takeover == nil)
        let moved = pairs.followUse(at: at(10_000))
        #expect(!moved && pairs.selected == a)
    }

    @Test mutating func `take no straggler just after a selection for use`() {
        _ = nominate(a, priority: 100, at: 0)
        check(b, at: 10)
        _ = pairs.heardTraffic(from: b, at: at(250))
        #expect(pairs.takeover == nil)
        _ = pairs.heardTraffic(from: b, at: at(251))
        #expect(pairs.takeover == at(250))
        let moved = pairs.followUse(at: at(251))
        #expect(moved && pairs.selected == b)
    }

    @Test mutating func `leave one that is silent for five seconds for one that is heard`() {
        _ = nominate(a, priority: 100, at: 0)
        check(b, at: 300)
        #expect(pairs.takeover == at(5_000))
        let early = pairs.followUse(at: at(4_999))
        #expect(!early)
        // It is heard again, and the other has been silent since.
        check(a, at: 4_999)
        #expect(pairs.takeover == nil)
        check(b, at: 5_300)
        #expect(pairs.takeover == at(9_999))
        let late = pairs.followUse(at: at(9_999))
        #expect(late && pairs.selected == b)
    }

    @Test mutating func `take nothing from an address that they do not know`() {
        _ = nominate(a, priority: 100, at: 0)
        let known = pairs.all
        let isKnown = pairs.heardTraffic(from: b, at: at(10))
        #expect(!isKnown && pairs.all == known)
        #expect(!pairs.isBelieved(b) && pairs.isBelieved(a))
    }
}
