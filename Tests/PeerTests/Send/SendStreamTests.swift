import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite final class `A send stream` {
    var stream = SendStream(ssrc: 5, clockRate: 90_000)
    /// 2026-01-01 00:00 UTC at virtual time zero.
    let clock = WallClock(unixNanoseconds: 1_767_225_600_000_000_000, at: .zero)

    func send(_ timestamp: UInt32, captured: MonotonicTime? = nil, at milliseconds: Int64) {
        stream.sent(payloadSize: 1_000, timestamp: timestamp, captured: captured, at: at(milliseconds))
    }

    func report(at milliseconds: Int64) throws -> SenderReport {
        try #require(stream.senderReport(at: at(milliseconds), clock: clock))
    }

    func receive(_ block: ReportBlock, at milliseconds: Int64) -> Duration? {
        stream.receive(block, at: at(milliseconds), clock: clock)
    }

    @Test func `has no report before the first packet`() {
        #expect(stream.senderReport(at: at(0), clock: clock) == nil)
    }

    @Test func `reports what it sent`() throws {
        send(0, at: 0)
        send(0, at: 1)
        send(3_000, at: 33)
        let report = try report(at: 40)
        #expect(report.ssrc == 5)
        #expect(report.packetCount == 3)
        #expect(report.octetCount == 3_000)
        #expect(report.ntpTime == clock.ntp(at: at(40)))
        #expect(report.reports == [])
    }

    @Test func `extrapolates its time stamp to the time of the report`() throws {
        send(1_000, at: 100)
        #expect(try report(at: 100).rtpTimestamp == 1_000)
        #expect(try report(at: 150).rtpTimestamp == 5_500)
    }

    @Test func `extrapolates over the wrap of time stamps`() throws {
        send(UInt32.max - 8_999, at: 200)
        #expect(try report(at: 300).rtpTimestamp == 0)
    }

    @Test func `measures from the first packet of a picture`() throws {
        send(1_000, at: 100)
        send(1_000, at: 110)
        #expect(try report(at: 110).rtpTimestamp == 1_900)
    }

    @Test func `measures from the time of capture if that is known`() throws {
        send(1_000, captured: at(60), at: 100)
        #expect(try report(at: 100).rtpTimestamp == 4_600)
    }

    @Test(arguments: [Int64(101), -9_901]) func `does not believe an impossible time of capture`(time: Int64)
        throws
    {
        send(1_000, captured: at(time), at: 100)
        #expect(try report(at: 100).rtpTimestamp == 1_000)
    }

    @Test func `keeps its time line when pictures come out of order, but not for ever`() throws {
        send(90_000, at: 1_000)
        send(87_000, at: 1_010)
        #expect(try report(at: 1_010).rtpTimestamp == 90_900)
        send(50_000, at: 20_000)
        #expect(try report(at: 20_000).rtpTimestamp == 50_000)
    }

    @Test func `learns round-trip time and reception from the viewer's report`() throws {
        send(0, at: 0)
        let report = try report(at: 1_000)
        let block = ReportBlock(
            ssrc: 5, fractionLost: 64, cumulativeLost: 9, highestSequenceNumber: 77, jitter: 900,
            // The middle 32 bits of the NTP time (RFC 3550 §6.4.1).
            lastSenderReport: UInt32(truncatingIfNeeded: report.ntpTime >> 16),
            delaySinceLastSenderReport: 0x8000)
        let rtt = try #require(receive(block, at: 1_580))
        #expect(abs(rtt.wholeNanoseconds - 80_000_000) < 50_000)
        let reception = try #require(stream.reception)
        #expect(reception.fractionLost == 64)
        #expect(reception.cumulativeLost == 9)
        #expect(reception.highestSequenceNumber == 77)
        #expect(reception.jitter == .milliseconds(10))
        #expect(reception.at == at(1_580))
    }

    @Test func `learns no round-trip time where nothing is echoed, and nothing of other streams`() {
        var block = ReportBlock(
            ssrc: 5, fractionLost: 1, cumulativeLost: 0, highestSequenceNumber: 0, jitter: 0,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
        #expect(receive(block, at: 0) == nil)
        #expect(stream.reception?.fractionLost == 1)
        block.ssrc = 6
        block.fractionLost = 2
        #expect(receive(block, at: 0) == nil)
        #expect(stream.reception?.fractionLost == 1)
    }

    @Test(arguments: 0..<10) func `survives garbage`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        stream = SendStream(ssrc: 5, clockRate: [0, 1, 90_000, .max][Int(seed % 4)])
        for _ in 0..<1_000 {
            let now = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            let word = { UInt32(truncatingIfNeeded: random.next()) }
            stream.sent(
                payloadSize: Int(truncatingIfNeeded: random.next()), timestamp: word(),
                captured: MonotonicTime(nanoseconds: Int64(bitPattern: random.next())), at: now)
            let report = stream.senderReport(at: now, clock: clock)
            #expect(report?.ssrc == 5)
            let block = ReportBlock(
                ssrc: 5, fractionLost: UInt8(truncatingIfNeeded: random.next()),
                cumulativeLost: Int32(bitPattern: word()), highestSequenceNumber: word(), jitter: word(),
                lastSenderReport: word(), delaySinceLastSenderReport: word())
            if let rtt = stream.receive(block, at: now, clock: clock) {
                #expect(rtt >= .zero && rtt <= RTTEstimator.maximum)
            }
        }
    }
}
