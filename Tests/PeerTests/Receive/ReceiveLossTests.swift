import Base
import Peer
import TestSupport
import Testing
import Wire

/// What counts as lost by the network, and what a report says after repair.
@Suite final class `The losses of a receive stream` {
    var stream = ReceiveStream(ssrc: 7, clockRate: 90_000, repair: .packetsAndKeyFrames)

    @discardableResult
    func receive(
        _ number: UInt16, origin: ReceiveStream.Origin = .original, startsKeyFrame: Bool = false,
        head: Int64 = 0, at milliseconds: Int64 = 0
    ) -> ReceiveStream.Arrival {
        stream.receive(
            sequenceNumber: number, timestamp: 0, size: 1_000, origin: origin,
            startsKeyFrame: startsKeyFrame, head: head, at: at(milliseconds))
    }

    func nacks(at milliseconds: Int64) -> [UInt16] {
        var numbers: [UInt16] = []
        stream.nacksDue(at: at(milliseconds), rtt: .milliseconds(50), into: &numbers)
        return numbers
    }

    func takeLoss() -> ReceiveStream.LossInterval { stream.takeLoss() }

    func report() throws -> ReportBlock {
        let block = stream.reportBlock(at: at(0))
        return try #require(block)
    }

    func loss(_ expected: Int, _ lost: Int) -> ReceiveStream.LossInterval {
        ReceiveStream.LossInterval(expected: expected, lost: lost)
    }

    @Test func `a packet that came only because it was requested counts as lost`() throws {
        receive(1)
        receive(3)
        #expect(nacks(at: 0) == [2])
        #expect(receive(2, at: 30) == .repaired(2))
        #expect(takeLoss() == loss(3, 1))
        #expect(stream.counters.repaired == 1)
        // The publisher has nothing to repair any more.
        let block = try report()
        #expect(block.cumulativeLost == 0 && block.fractionLost == 0)
    }

    @Test func `a packet that was only out of order does not count as lost`() {
        receive(1)
        receive(3)
        #expect(receive(2) == .new(2))
        #expect(takeLoss() == loss(3, 0))
        #expect(nacks(at: 0) == [])
    }

    @Test func `losses are reported once, and later arrivals do not offset others`() {
        receive(1)
        receive(3)
        #expect(takeLoss() == loss(3, 1))
        // Of the interval before.
        receive(2)
        #expect(takeLoss() == loss(0, 0))
        receive(4)
        receive(6)
        #expect(takeLoss() == loss(3, 1))
    }

    @Test func `duplicates do not hide losses`() {
        receive(1)
        receive(3)
        #expect(receive(3) == .duplicate(3))
        #expect(receive(1, origin: .retransmission) == .duplicate(1))
        #expect(takeLoss() == loss(3, 1))
        #expect(stream.counters.packets == 2 && stream.counters.duplicates == 2)
    }

    @Test func `a gap between two time lines does not count as lost`() throws {
        for number: UInt16 in 1...3 { receive(number) }
        #expect(takeLoss() == loss(3, 0))
        #expect(receive(10_000) == .new(10_000))
        #expect(takeLoss() == loss(1, 0))
        #expect(stream.counters.restarts == 1)
        #expect(nacks(at: 0) == [])
        // Losses on the new one count from its first packet on.
        receive(10_003)
        #expect(takeLoss() == loss(3, 2))
        let block = try report()
        #expect(block.cumulativeLost == 2)
    }

    @Test func `a gap before the first packet counts once an older packet shows it`() {
        receive(100)
        #expect(takeLoss() == loss(1, 0))
        #expect(receive(98) == .new(98))
        #expect(takeLoss() == loss(2, 1))
        #expect(stream.isMissing(99) && !stream.isMissing(98))
        // But nobody asks for what was sent before we were there.
        #expect(nacks(at: 0) == [])
    }

    @Test func `losses before a key frame are forgotten, except those at its head`() {
        receive(1)
        receive(5, startsKeyFrame: true, head: 2)
        #expect(nacks(at: 0) == [3, 4])
    }

    @Test func `losses of a stream without retransmissions are counted too`() {
        stream = ReceiveStream(ssrc: 7, clockRate: 90_000, repair: .none)
        receive(1)
        receive(4)
        #expect(stream.deadline == nil)
        #expect(nacks(at: 5_000) == [])
        // It was not requested, so it is no repair.
        #expect(receive(2) == .new(2))
        #expect(takeLoss() == loss(4, 1))
    }
}
