import Base
@testable import Peer
import TestSupport
import Testing
import Wire

private typealias Client = ICETestClient

private func address(_ port: UInt16) -> TransportAddress { Client.address(port) }

@Suite struct ICENomination {
    private var client = ICETestClient()

    /// Firefox checks every pair with USE-CANDIDATE.
    @Test(arguments: [[1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 1, 3]] as [[UInt16]])
    mutating func `of many pairs at once settles on the highest priority`(order: [UInt16]) throws {
        for (index, port) in order.enumerated() {
            _ = try client.check(from: port, priority: UInt32(port) * 1_000, at: Int64(index) * 50)
        }
        #expect(client.agent.selected == address(3))
        #expect(client.advance(to: 2_000) == [])
        #expect(client.agent.selected == address(3))
    }

    @Test mutating func `of a better pair moves media at once`() throws {
        _ = try client.check(from: 1, priority: Client.low, at: 0)
        #expect(
            try client.check(from: 2, priority: Client.high, at: 1) == [
                .nominate(address(2))
            ])
    }

    /// A NAT gave the same candidate another address.
    @Test mutating func `of a pair with the same priority moves media at once`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.traffic(from: 1, at: 2_400)
        #expect(try client.check(from: 2, at: 2_500) == [.nominate(address(2))])
    }

    /// Chrome lost its first network some time ago.
    @Test mutating func `of a worse pair moves media at once if the better one fell silent`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.traffic(from: 1, at: 1_000)
        #expect(
            try client.check(from: 2, priority: Client.low, at: 1_250) == [
                .nominate(address(2))
            ])
    }

    /// Chrome changed to another network by its own choice.
    @Test mutating func `of a worse pair moves media after a moment`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.traffic(from: 1, at: 1_000)
        #expect(try client.check(from: 2, priority: Client.low, at: 1_010) == [])
        #expect(client.agent.deadline == Client.time(1_250))
        #expect(client.advance(to: 1_249) == [])
        #expect(client.advance(to: 1_250) == [.nominate(address(2))])
        #expect(client.agent.deadline == Client.time(31_010))
    }

    /// Firefox nominated a relayed pair late, and goes on using the direct one.
    @Test mutating func `of a worse pair does nothing while the better one is used`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.traffic(from: 1, at: 990) == nil)
        _ = try client.check(from: 2, priority: Client.low, at: 1_000)
        #expect(client.traffic(from: 1, at: 1_100) == nil)
        #expect(client.agent.deadline == Client.time(31_100))
        #expect(client.advance(to: 3_000) == [])
        #expect(client.agent.selected == address(1))
    }

    @Test mutating func `of a worse pair right after the better one does nothing`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = try client.check(from: 2, priority: Client.low, at: 250)
        #expect(client.advance(to: 5_000) == [])
        #expect(client.agent.selected == address(1))
    }

    @Test mutating func `is corrected by where the client sends from`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = try client.check(from: 2, priority: Client.low, at: 1_000)
        #expect(client.agent.selected == address(2))
        #expect(client.traffic(from: 1, at: 1_240) == nil)
        #expect(client.advance(to: 1_500) == [])
        #expect(client.traffic(from: 1, at: 1_500) == .nominate(address(1)))
        #expect(client.traffic(from: 1, at: 1_501) == nil)
    }

    @Test mutating func `is not undone by stragglers on the old path`() throws {
        _ = try client.check(from: 1, priority: Client.low, at: 0)
        _ = try client.check(from: 2, priority: Client.high, at: 1_000)
        #expect(client.traffic(from: 1, at: 1_100) == nil)
        #expect(client.advance(to: 5_000) == [])
        #expect(client.agent.selected == address(2))
    }

    /// Firefox does not nominate again when a NAT changed its address.
    @Test mutating func `is not needed where the client sends from a checked address`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.traffic(from: 1, at: 4_000)
        #expect(try client.check(from: 2, nominates: false, at: 5_000) == [])
        #expect(client.traffic(from: 2, at: 5_020) == .nominate(address(2)))
    }

    /// Chrome keeps other pairs alive without using them.
    @Test mutating func `is not replaced by plain checks`() throws {
        _ = try client.check(from: 1, at: 0)
        for time in stride(from: Int64(1_000), to: 14_000, by: 500) {
            _ = try client.check(from: 2, nominates: false, at: time)
            if time % 2_500 == 0 { _ = try client.check(from: 1, nominates: false, at: time + 1) }
        }
        #expect(client.advance(to: 14_000) == [])
        #expect(client.agent.selected == address(1))
    }

    /// The client's checks from its new network arrive there no more.
    @Test mutating func `of an address that is then silent does not last`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(try client.check(from: 9, at: 1_000) == [.nominate(address(9))])
        #expect(try client.check(from: 1, nominates: false, at: 2_500) == [])
        #expect(try client.check(from: 1, nominates: false, at: 5_000) == [])
        #expect(client.agent.deadline == Client.time(6_000))
        #expect(client.advance(to: 5_999) == [])
        #expect(client.advance(to: 6_000) == [.nominate(address(1))])
    }

    @Test mutating func `never comes from an address without a check`() throws {
        #expect(client.traffic(from: 1, at: 0) == nil)
        _ = try client.check(from: 1, at: 1)
        #expect(client.traffic(from: 2, at: 2_000) == nil)
        #expect(client.agent.addresses == [address(1)])
    }

    @Test mutating func `needs USE-CANDIDATE the first time`() throws {
        _ = try client.check(from: 1, nominates: false, at: 0)
        #expect(client.traffic(from: 1, at: 1_000) == nil)
        #expect(client.agent.selected == nil)
    }
}
