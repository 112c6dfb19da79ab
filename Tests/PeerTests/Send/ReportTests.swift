import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite struct `A report scheduler` {
    @Test(arguments: 0..<20) func `sends about one report a second, never in step with others`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var scheduler = ReportScheduler(at: at(0), using: &random)
        var times: [Int64] = []
        #expect(scheduler.deadline <= at(250))
        for time in Int64(0)...60_000 {
            let isDue = scheduler.isDue(at: at(time), using: &random)
            if isDue { times.append(time) }
        }
        let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect((50...75).contains(times.count))
        #expect(gaps.allSatisfy { (500...1_501).contains($0) })
        #expect(Set(gaps).count > 30)
    }

    @Test func `the next report can be hurried, once`() {
        var random = SeededGenerator(seed: 1)
        var scheduler = ReportScheduler(at: at(0), using: &random)
        _ = scheduler.isDue(at: at(300), using: &random)
        scheduler.expedite(at: at(301))
        #expect(scheduler.deadline == at(301))
        let isDue = scheduler.isDue(at: at(301), using: &random)
        #expect(isDue)
        #expect(scheduler.deadline >= at(801))
        let isDueAgain = scheduler.isDue(at: at(301), using: &random)
        #expect(!isDueAgain)
    }

    @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.max)])
    func `survives an absurd interval`(interval: Duration) {
        var random = SeededGenerator(seed: 1)
        var scheduler = ReportScheduler(interval: interval, at: at(0), using: &random)
        let isDue = scheduler.isDue(at: at(100_000), using: &random)
        #expect(isDue)
        #expect(scheduler.deadline > at(100_000))
    }
}

@Suite final class `A reference time exchange` {
    var ours = ReferenceTimeExchange(localSSRC: 1)
    let clock = WallClock(unixNanoseconds: 1_767_225_600_000_000_000, at: .zero)

    func receive(_ ssrc: UInt32, _ blocks: [ExtendedReport.Block], at milliseconds: Int64) -> [Duration] {
        ours.receive(ExtendedReport(ssrc: ssrc, blocks: blocks), at: at(milliseconds), clock: clock)
    }

    func blocks(at milliseconds: Int64, asks: Bool = false) -> [ExtendedReport.Block] {
        ours.blocks(at: at(milliseconds), clock: clock, asks: asks)
    }

    @Test func `answers what a viewer asks, once`() {
        #expect(blocks(at: 0) == [])
        #expect(receive(9, [.receiverReferenceTime(0x1122_3344_5566_7788)], at: 100) == [])
        #expect(
            blocks(at: 600) == [
                .delaySinceLastReceiverReport([
                    .init(ssrc: 9, lastReceiverReference: 0x3344_5566, delay: 0x8000)
                ])
            ])
        #expect(blocks(at: 700) == [])
    }

    @Test func `answers only the last question of each viewer, and of eight at most`() throws {
        for ssrc in UInt32(0)..<12 {
            _ = receive(ssrc, [.receiverReferenceTime(1 << 32)], at: 0)
            _ = receive(ssrc, [.receiverReferenceTime(2 << 32)], at: 0)
        }
        guard case .delaySinceLastReceiverReport(let answers)? = blocks(at: 0).first else {
            Issue.record("no answer")
            return
        }
        #expect(answers.map(\.ssrc) == Array(4..<12))
        #expect(answers.allSatisfy { $0.lastReceiverReference == 2 << 16 })
    }

    @Test func `measures the way to a publisher and back`() throws {
        var theirs = ReferenceTimeExchange(localSSRC: 2)
        let asked = blocks(at: 1_000, asks: true)
        #expect(asked == [.receiverReferenceTime(clock.ntp(at: at(1_000)))])
        let theirClock = WallClock(unixNanoseconds: 12_345, at: .zero)
        _ = theirs.receive(ExtendedReport(ssrc: 1, blocks: asked), at: at(1_040), clock: theirClock)
        let answer = theirs.blocks(at: at(1_300), clock: theirClock, asks: false)
        let samples = receive(2, answer, at: 1_350)
        #expect(samples.count == 1)
        let sample = try #require(samples.first)
        #expect(abs(sample.wholeNanoseconds - 90_000_000) < 50_000)
    }

    @Test func `does not measure answers to others, nor answers to nothing`() {
        let other = ExtendedReport.DelaySinceLast(ssrc: 3, lastReceiverReference: 5, delay: 0)
        let nothing = ExtendedReport.DelaySinceLast(ssrc: 1, lastReceiverReference: 0, delay: 0)
        #expect(receive(2, [.delaySinceLastReceiverReport([other])], at: 0) == [])
        #expect(receive(2, [.delaySinceLastReceiverReport([nothing]), .unknown(type: 9)], at: 0) == [])
    }
}

@Suite struct `A control packer` {
    let packer = ControlPacker(localSSRC: 1, canonicalName: "cname-of-16-byte", reducedSize: true)

    static func block(_ ssrc: UInt32) -> ReportBlock {
        ReportBlock(
            ssrc: ssrc, fractionLost: 0, cumulativeLost: 0, highestSequenceNumber: 0, jitter: 0,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
    }

    static func sender(_ ssrc: UInt32) -> SenderReport {
        SenderReport(ssrc: ssrc, ntpTime: 1, rtpTimestamp: 2, packetCount: 3, octetCount: 4)
    }

    static func parse(_ datagram: [UInt8]) throws -> [RTCPPacket] {
        try RTCPPacket.parseCompound(datagram.span)
    }

    /// What stands in the reports of one datagram; checks that it is a valid compound.
    static func read(_ datagram: [UInt8]) throws -> (senders: [UInt32], blocks: [UInt32], extended: Int) {
        #expect(datagram.count <= ControlPacker.maximumLength)
        var read: (senders: [UInt32], blocks: [UInt32], extended: Int) = ([], [], 0)
        var sources: [UInt32] = []
        var described: [UInt32] = []
        let packets = try parse(datagram)
        for (place, packet) in packets.enumerated() {
            switch packet {
            case .senderReport(let report):
                read.senders.append(report.ssrc)
                read.blocks += report.reports.map(\.ssrc)
                sources.append(report.ssrc)
            case .receiverReport(let report):
                #expect(place == 0)
                read.blocks += report.reports.map(\.ssrc)
                sources.append(report.ssrc)
            case .sourceDescription(let description):
                described += description.chunks.map(\.ssrc)
                #expect(description.chunks.allSatisfy { $0.canonicalName == "cname-of-16-byte" })
            case .extendedReport: read.extended += 1
            default:
                // Feedback stands behind the reports.
                #expect(place > 1)
            }
        }
        if case .extendedReport? = packets.first { Issue.record("a compound begins with a report") }
        #expect(described == sources)
        return read
    }

    @Test func `shows that we live when there is nothing to say`() throws {
        let datagrams = packer.reports(senders: [], receptions: [])
        #expect(datagrams.count == 1)
        let read = try Self.read(datagrams[0])
        #expect(read.senders == [] && read.blocks == [] && read.extended == 0)
    }

    @Test func `puts reception reports into the sender report of one who sends`() throws {
        let datagrams = packer.reports(
            senders: [Self.sender(5), Self.sender(6)], receptions: [Self.block(7)],
            extended: [.receiverReferenceTime(1)])
        #expect(datagrams.count == 1)
        let read = try Self.read(datagrams[0])
        #expect(read.senders == [5, 6])
        #expect(read.blocks == [7])
        #expect(read.extended == 1)
    }

    @Test(arguments: [(0, 0), (1, 0), (0, 31), (0, 32), (3, 17), (60, 0), (100, 100), (1, 200)])
    func `reports everything once, in datagrams that fit`(senders: Int, blocks: Int) throws {
        let datagrams = packer.reports(
            senders: (0..<senders).map { Self.sender(UInt32(100 + $0)) },
            receptions: (0..<blocks).map { Self.block(UInt32(1_000 + $0)) },
            extended: [.receiverReferenceTime(1)])
        var all: (senders: [UInt32], blocks: [UInt32], extended: Int) = ([], [], 0)
        for datagram in datagrams {
            let read = try Self.read(datagram)
            all.senders += read.senders
            all.blocks += read.blocks
            all.extended += read.extended
        }
        #expect(all.senders == (0..<senders).map { UInt32(100 + $0) })
        #expect(all.blocks == (0..<blocks).map { UInt32(1_000 + $0) })
        #expect(all.extended == 1)
        #expect(datagrams.count <= 1 + senders / 16 + blocks / 16)
    }

    @Test func `sends feedback by itself where the peer takes that`() throws {
        let datagrams = packer.feedback([
            .pictureLossIndication(PictureLossIndication(senderSSRC: 1, mediaSSRC: 2))
        ])
        #expect(datagrams.map(\.count) == [12])
    }

    @Test func `sends feedback behind a report where the peer wants that`() throws {
        let packer = ControlPacker(localSSRC: 1, canonicalName: "cname-of-16-byte", reducedSize: false)
        let datagrams = packer.feedback([
            .pictureLossIndication(PictureLossIndication(senderSSRC: 1, mediaSSRC: 2))
        ])
        #expect(datagrams.count == 1)
        #expect(try Self.read(datagrams[0]).blocks == [])
        #expect(try Self.parse(datagrams[0]).count == 3)
    }

    @Test func `sends nothing when there is no feedback`() {
        #expect(packer.feedback([]) == [])
        #expect(
            ControlPacker(localSSRC: 1, canonicalName: "c", reducedSize: false).feedback([]) == [])
    }

    @Test(arguments: [true, false]) func `spreads much feedback over datagrams that fit`(reducedSize: Bool)
        throws
    {
        let packer = ControlPacker(localSSRC: 1, canonicalName: "cname-of-16-byte", reducedSize: reducedSize)
        let packets = (0..<100).map { number in
            RTCPPacket.nack(
                NegativeAcknowledgement(
                    senderSSRC: 1, mediaSSRC: UInt32(number), lost: Array(stride(from: 0, to: 400, by: 20))))
        }
        let datagrams = packer.feedback(packets)
        var sent: [RTCPPacket] = []
        for datagram in datagrams {
            #expect(datagram.count <= ControlPacker.maximumLength)
            sent += try Self.parse(datagram).filter {
                if case .nack = $0 { true } else { false }
            }
        }
        #expect(sent == packets)
        #expect(datagrams.count <= 10)
    }
}
