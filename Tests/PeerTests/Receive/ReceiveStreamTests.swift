import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite final class `A receive stream` {
    var stream = ReceiveStream(ssrc: 7, clockRate: 90_000, repair: .packetsAndKeyFrames)

    @discardableResult
    func receive(
        _ number: UInt16, timestamp: UInt32 = 0, origin: ReceiveStream.Origin = .original,
        startsKeyFrame: Bool = false,
        at milliseconds: Int64 = 0
    ) -> ReceiveStream.Arrival {
        stream.receive(
            sequenceNumber: number, timestamp: timestamp, size: 1_000, origin: origin,
            startsKeyFrame: startsKeyFrame, at: at(milliseconds))
    }

    func nacks(at milliseconds: Int64) -> [UInt16] {
        var numbers: [UInt16] = []
        stream.nacksDue(at: at(milliseconds), rtt: .milliseconds(50), into: &numbers)
        return numbers
    }

    func report(at milliseconds: Int64 = 0) throws -> ReportBlock {
        let block = stream.reportBlock(at: at(milliseconds))
        return try #require(block)
    }

    func takesKeyFrameDemand() -> Bool { stream.takeKeyFrameDemand() }

    func takeLoss() -> ReceiveStream.LossInterval { stream.takeLoss() }

    func senderReport(ntp: UInt64, rtp: UInt32, packets: UInt32 = 1) -> SenderReport {
        SenderReport(ssrc: 7, ntpTime: ntp, rtpTimestamp: rtp, packetCount: packets, octetCount: 0)
    }

    @Test func `has nothing to report before the first packet`() {
        let block = stream.reportBlock(at: at(0))
        #expect(block == nil)
        #expect(stream.expected == 0)
        #expect(takeLoss() == ReceiveStream.LossInterval(expected: 0, lost: 0))
    }

    @Test func `tells what became of each packet`() {
        #expect(receive(10) == .new(10))
        #expect(receive(14) == .new(14))
        #expect(receive(13) == .new(13))
        #expect(nacks(at: 0) == [11, 12])
        #expect(receive(12) == .repaired(12))
        #expect(receive(11, origin: .retransmission) == .repaired(11))
        #expect(receive(11) == .duplicate(11))
        #expect(receive(10 &- 3_000) == .tooOld)
        #expect(stream.counters.packets == 5)
        #expect(stream.counters.bytes == 5_000)
        #expect(stream.counters.repaired == 2)
        #expect(stream.counters.duplicates == 1)
        #expect(stream.counters.tooOld == 1)
    }

    @Test func `reports the share lost since the last report, in 256ths`() throws {
        receive(1)
        _ = try report()
        for number in UInt16(2)...100 where number % 4 != 0 { receive(number) }
        receive(101)
        let block = try report()
        #expect(block.ssrc == 7)
        #expect(block.fractionLost == 64)
        #expect(block.cumulativeLost == 25)
        #expect(block.highestSequenceNumber == 101)
        #expect(try report().fractionLost == 0)
        #expect(try report().cumulativeLost == 25)
    }

    @Test func `counts wraps in the highest number it reports`() throws {
        receive(65_530)
        receive(5)
        #expect(try report().highestSequenceNumber == 65_541)
    }

    @Test func `takes repaired packets as received`() throws {
        receive(1)
        receive(4)
        receive(2, origin: .retransmission)
        #expect(try report().cumulativeLost == 1)
        #expect(takeLoss() == ReceiveStream.LossInterval(expected: 4, lost: 2))
        #expect(takeLoss() == ReceiveStream.LossInterval(expected: 0, lost: 0))
    }

    /// A report describes the path, so repaired losses count too.
    @Test func `reports as lost what only a later packet carried, and asks for it no more`() throws {
        receive(1)
        #expect(stream.isMissing(2), "what is newer than the newest is not there yet")
        #expect(receive(3, origin: .redundancy) == .repaired(3))
        receive(4)
        #expect(stream.index(of: 2) == 2 && stream.isMissing(2) && !stream.isMissing(3))
        #expect(nacks(at: 0) == [2])
        #expect(receive(2, origin: .redundancy) == .repaired(2))
        #expect(nacks(at: 1_000).isEmpty && stream.deadline == nil)
        #expect(receive(2, origin: .redundancy) == .duplicate(2))
        #expect(try report().cumulativeLost == 2)
        #expect(stream.counters.recovered == 2)
        #expect(stream.counters.packets == 2)
        #expect(takeLoss() == ReceiveStream.LossInterval(expected: 4, lost: 2))
    }

    @Test func `a packet that comes after all counts as received, once`() throws {
        receive(1)
        receive(2, origin: .redundancy)
        receive(3)
        #expect(try report().cumulativeLost == 1)
        #expect(receive(2) == .duplicate(2))
        #expect(receive(2) == .duplicate(2))
        #expect(try report().cumulativeLost == 0)
        #expect(takeLoss() == ReceiveStream.LossInterval(expected: 3, lost: 0))
        #expect(stream.counters.packets == 3)
    }

    @Test func `knows the numbers of packets only near the newest one`() {
        #expect(stream.index(of: 5) == nil && !stream.isMissing(5))
        receive(65_530)
        #expect(stream.index(of: 2) == 65_538)
        #expect(
            stream.index(of: 65_529) == 65_529 && !stream.isMissing(65_529),
            "before the first nothing is missing")
        #expect(stream.index(of: 65_530 &+ 3_000) == 68_530)
        #expect(stream.index(of: 65_530 &+ 3_001) == nil)
        #expect(stream.index(of: 65_530 - 2_048) == nil)
    }

    @Test func `hides no loss behind duplicates`() throws {
        receive(1)
        receive(3)
        receive(3)
        receive(1)
        #expect(try report().cumulativeLost == 1)
    }

    @Test func `reports no negative fraction when late packets make up for earlier loss`() throws {
        receive(1)
        receive(5)
        _ = try report()
        receive(2)
        receive(3)
        let block = try report()
        #expect(block.fractionLost == 0)
        #expect(block.cumulativeLost == 1)
    }

    @Test func `does not take a jump of the sender for loss`() throws {
        receive(1, at: 0)
        receive(3, at: 0)
        receive(20_000, at: 0)
        receive(20_001, at: 0)
        let block = try report()
        #expect(block.cumulativeLost == 1)
        #expect(stream.expected == 5)
        #expect(stream.counters.restarts == 1)
        #expect(nacks(at: 0) == [])
        #expect(takesKeyFrameDemand())
    }

    @Test func `asks for a key frame only where that helps`() {
        stream = ReceiveStream(ssrc: 7, clockRate: 48_000, repair: .packets)
        receive(1)
        receive(1_000)
        #expect(!takesKeyFrameDemand())
    }

    @Test func `asks for nothing when repair was not negotiated`() {
        stream = ReceiveStream(ssrc: 7, clockRate: 90_000, repair: .none)
        receive(1)
        receive(10)
        receive(20_000)
        #expect(stream.deadline == nil)
        #expect(nacks(at: 0) == [])
        #expect(!takesKeyFrameDemand())
    }

    @Test func `drops what was lost before a key frame`() {
        receive(1)
        receive(5, startsKeyFrame: true)
        receive(7)
        #expect(nacks(at: 0) == [6])
        #expect(stream.deadline == at(50))
    }

    @Test func `measures jitter as the RFC does`() throws {
        // Packets 20 ms apart; each second one comes 10 ms late: |D| is 900 ticks from the second packet on.
        var expected: Int64 = 0
        for number in Int64(0)..<50 {
            let late: Int64 = number % 2 == 0 ? 0 : 10
            receive(UInt16(number), timestamp: UInt32(number * 1_800), at: number * 20 + late)
            if number > 0 { expected += 900 - ((expected + 8) >> 4) }
        }
        #expect(try report().jitter == UInt32(expected >> 4))
        #expect(stream.jitter > 800)
    }

    @Test func `does not take a new time line for jitter`() throws {
        receive(1, timestamp: 0, at: 0)
        receive(2, timestamp: 3_000_000_000, at: 20)
        receive(3, timestamp: 3_000_001_800, at: 40)
        #expect(try report().jitter == 0)
    }

    @Test func `measures jitter over the wrap of time stamps`() throws {
        receive(1, timestamp: UInt32.max - 899, at: 0)
        receive(2, timestamp: 900, at: 20)
        #expect(try report().jitter == 0)
    }

    @Test func `echoes the last sender report and how long ago it came`() throws {
        receive(1)
        #expect(try report().lastSenderReport == 0)
        let isGood = stream.receive(senderReport(ntp: 0x1122_3344_5566_7788, rtp: 5), at: at(1_000))
        #expect(isGood)
        let block = try report(at: 3_500)
        #expect(block.lastSenderReport == 0x3344_5566)
        #expect(block.delaySinceLastSenderReport == 0x2_8000)
    }

    @Test(arguments: [
        SenderReport(ssrc: 7, ntpTime: 9 << 32, rtpTimestamp: .max, packetCount: 0, octetCount: 0),
        SenderReport(ssrc: 7, ntpTime: 0, rtpTimestamp: 1, packetCount: 1, octetCount: 1),
        SenderReport(ssrc: 8, ntpTime: 9 << 32, rtpTimestamp: 1, packetCount: 1, octetCount: 1),
    ]) func `ignores sender reports that say nothing`(bogus: SenderReport) throws {
        receive(1)
        let isGood = stream.receive(bogus, at: at(0))
        #expect(!isGood)
        #expect(try report().lastSenderReport == 0)
        #expect(stream.captureTime(ofTimestamp: 1, by: SourceClock()) == nil)
    }

    @Test func `knows when media was captured, before and after the report and over the wrap`() {
        var clock = SourceClock()
        clock.observe(ntp: 100 << 32, at: at(5_000))
        _ = stream.receive(senderReport(ntp: 101 << 32, rtp: 45_000), at: at(6_500))
        #expect(stream.captureTime(ofTimestamp: 45_000, by: clock) == at(6_000))
        #expect(stream.captureTime(ofTimestamp: 90_000, by: clock) == at(6_500))
        #expect(stream.captureTime(ofTimestamp: 0 &- 45_000, by: clock) == at(5_000))
    }

    @Test func `measures what comes in`() {
        for number in Int64(0)..<200 { receive(UInt16(number), at: number * 10) }
        let bitrate = stream.bitrate(at: at(2_000))
        #expect(abs(bitrate - 800_000) < 20_000)
    }

    @Test(arguments: 0..<20) func `survives garbage`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        stream = ReceiveStream(
            ssrc: 7, clockRate: [0, 1, 48_000, .max][Int(seed % 4)], repair: .packetsAndKeyFrames)
        var clock = SourceClock()
        for _ in 0..<500 {
            let now = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            _ = stream.receive(
                sequenceNumber: UInt16(truncatingIfNeeded: random.next()),
                timestamp: UInt32(truncatingIfNeeded: random.next()),
                size: Int(truncatingIfNeeded: random.next()),
                origin: random.next() % 2 == 0 ? .retransmission : .original,
                startsKeyFrame: random.next() % 8 == 0, at: now)
            let ntp = random.next()
            _ = stream.receive(senderReport(ntp: ntp, rtp: UInt32(truncatingIfNeeded: ntp)), at: now)
            clock.observe(ntp: ntp, at: now)
            _ = stream.captureTime(ofTimestamp: UInt32(truncatingIfNeeded: random.next()), by: clock)
            _ = stream.bitrate(at: now)
            var numbers: [UInt16] = []
            stream.nacksDue(
                at: now, rtt: .nanoseconds(Int64(bitPattern: random.next())), into: &numbers)
            #expect(numbers.count <= 300)
            if let block = stream.reportBlock(at: now) {
                #expect(block.ssrc == 7)
                #expect(abs(Int(block.cumulativeLost)) <= 0x80_0000)
            }
            let loss = stream.takeLoss()
            #expect(loss.lost >= 0 && loss.lost <= loss.expected)
        }
    }
}
