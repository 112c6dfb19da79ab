import Base
import Peer
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A path to a client by UDP` {
    private let path = OutgoingPath()

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    /// Tells of packets that were sent 10 ms apart, of which each with a true value was lost.
    private func tell(_ losses: [Bool], from start: Int64 = 0, isLate: Bool = false) {
        let outcomes = losses.enumerated().map { index, isLost in
            let sent = start + Int64(index) * 10
            return PacketOutcome(
                sent: time(sent), size: 1_000, arrival: isLost ? nil : (sent + 20) * 1_000_000,
                isLate: isLate)
        }
        path.receive(outcomes, roundTrip: .milliseconds(40), at: time(start + 1_000))
    }

    private func losses(_ lost: Int, of count: Int) -> [Bool] { (0..<count).map { $0 < lost } }

    @Test func `says nothing of loss before sixteen packets`() {
        tell(losses(15, of: 15))
        #expect(path.lossShare == nil && !path.isLossy && !path.losesSome)
        tell([false], from: 200)
        #expect(path.lossShare == 15.0 / 16 && path.isLossy && path.losesSome)
    }

    @Test(arguments: [(1, 20, false, false), (2, 20, true, false), (4, 20, true, false), (5, 20, true, true)])
    func `is lossy from a quarter on, and loses some from a tenth on`(
        lost: Int, count: Int, losesSome: Bool, isLossy: Bool
    ) {
        tell(losses(lost, of: count))
        #expect(path.losesSome == losesSome && path.isLossy == isLossy)
    }

    @Test func `forgets old packets as new ones come`() {
        tell(losses(32, of: 63))
        tell([false], from: 1_000)
        #expect(path.lossShare == 0.5)
        // Halved again with the thirty-second one.
        tell(losses(0, of: 31), from: 2_000)
        #expect(path.lossShare == 16.0 / 63)
        tell([false], from: 3_000)
        #expect(path.lossShare == 0.25)
    }

    @Test func `the loss share leaves out duplicates, outages and packets from before a step down`() {
        tell(losses(20, of: 20), isLate: true)
        #expect(path.lossShare == nil)
        // For 600 ms nothing got through at all.
        tell(losses(0, of: 10) + losses(61, of: 61) + losses(0, of: 10))
        #expect(path.lossShare == 0)
        tell(losses(10, of: 20), from: 2_000)
        #expect(path.isLossy)
        path.forgetLoss(at: time(4_000))
        #expect(path.lossShare == nil && !path.isLossy)
        tell(losses(20, of: 20), from: 3_700)
        #expect(path.lossShare == nil, "they were sent before")
        tell(losses(0, of: 16), from: 4_000)
        #expect(path.lossShare == 0)
    }

    @Test func `goes by a report's share, whatever a client reports`() {
        for (expected, lost, share) in [
            (64, 16, 0.25), (1_000_000, 500_000, 0.5), (20, 20, 1.0), (16, 0, 0.0),
        ] {
            path.receive(LossResponse.Interval(expected: expected, lost: lost), sent: 0, at: time(0))
            #expect(path.lossShare == share)
        }
        path.receive(
            LossResponse.Interval(expected: 64, lost: 64, hasBurst: true), sent: 0, at: time(0))
        #expect(path.lossShare == 0, "a burst may lose packets on any path")
        for (expected, lost) in [(0, 0), (0, 5), (1, 1), (15, 15)] {
            path.receive(LossResponse.Interval(expected: expected, lost: lost), sent: 0, at: time(0))
            #expect(path.lossShare == nil && !path.isLossy)
        }
    }

    @Test func `is not known before anything is said of it, and does not begin twice`() {
        #expect(!path.isKnown && path.deadline == .distantFuture)
        path.followLoss(arrived: 400_000, at: time(0))
        #expect(path.isKnown && path.isReported && path.goesByLossAlone && path.bitrate == 400_000)
        path.followLoss(arrived: 900_000, at: time(10))
        #expect(path.bitrate == 400_000)
        let isNews = path.receive(700_000, of: 0, sent: 0, roundTrip: nil, at: time(1_000))
        #expect(isNews && path.isReported && !path.goesByLossAlone, "the client says more than that")
    }

    @Test func `a path that leaves TCP uses its earlier measurements again`() {
        path.followLoss(arrived: 400_000, at: time(0))
        let address = TransportAddress(ip: .loopback, port: 5, transport: .tcp)
        path.receive(
            StreamBacklog(acknowledged: 0, waiting: 0, roundTrip: .milliseconds(10)), from: address,
            at: time(10))
        #expect(path.tellsOfLoss && !path.isReported && path.bitrate != 400_000)
        path.leaveStream()
        #expect(!path.tellsOfLoss && path.isReported && path.bitrate == 400_000)
    }
}

@Suite struct `A probe that is sent` {
    private func time(_ microseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + microseconds * 1_000)
    }

    /// Sends packets of 1,200 bytes for as long as it may, each time that it is due.
    /// - Returns: when, and how many packets.
    private func send(_ run: inout ProbeRun, until end: Int64) -> [(at: MonotonicTime, packets: Int)] {
        var steps: [(at: MonotonicTime, packets: Int)] = []
        while !run.isOver, run.deadline <= time(end) {
            let now = run.deadline
            var due = run.bytesDue(at: now)
            var packets = 0
            while due > 0 {
                run.note(1_200)
                due -= 1_200
                packets += 1
            }
            steps.append((now, packets))
        }
        return steps
    }

    @Test func `goes at its bit rate, in steps, and ends with its bytes`() {
        // 2.4 Mbit/s are 600 bytes each 2 ms.
        var run = ProbeRun(Probe(number: 1, bitrate: 2_400_000, bytes: 12_000), at: time(0))
        let steps = send(&run, until: 1_000_000)
        let packets = steps.map { $0.packets }
        #expect(packets == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
        #expect(run.isOver && run.sent == 12_000 && run.packets == 10)
        #expect(steps.last?.at == time(36_000))
    }

    @Test func `sends little before it is due, and no burst when it comes late`() {
        var run = ProbeRun(Probe(number: 1, bitrate: 50_000_000, bytes: 1_000_000), at: time(0))
        let first = run.bytesDue(at: time(0))
        #expect(first == 1 && run.deadline == time(2_000))
        let due = [1_999, 2_000, 2_000, 500_000, 60_000_000].map { run.bytesDue(at: time($0)) }
        // 50 Mbit/s are 12,500 bytes each 2 ms.
        #expect(due == [0, 12_501, 0, 16_384, 16_384])
    }

    @Test func `a probe ends even with empty packets and absurd rates`() {
        var run = ProbeRun(Probe(number: 1, bitrate: .max, bytes: 3), at: time(0))
        for _ in 0..<3 { run.note(0) }
        #expect(run.isOver && run.packets == 3)
        run = ProbeRun(Probe(number: 2, bitrate: 0, bytes: 100), at: time(0))
        let due = [0, 10_000, -50_000, 20_000].map { run.bytesDue(at: time($0)) }
        #expect(due == [1, 1, 0, 1])
    }
}

@Suite struct `Sessions that share a path` {
    private var sharing = PathSharing()

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    private mutating func look(
        _ isQueued: Bool, lacks: Bool = false, from start: Int64, through end: Int64, each step: Int64 = 100
    ) {
        for milliseconds in stride(from: start, through: end, by: Int(step)) {
            sharing.look(isQueued: isQueued, lacksPictures: lacks, at: time(milliseconds))
        }
    }

    @Test mutating func `yield when the queue has stood for two seconds, and then after two more`() {
        look(true, from: 0, through: 1_999)
        var yields = [sharing.takeYield()]
        look(true, from: 2_000, through: 2_000)
        yields += [sharing.takeYield(), sharing.takeYield()]
        look(true, from: 2_100, through: 3_900)
        yields.append(sharing.takeYield())
        look(true, from: 4_000, through: 4_000)
        yields.append(sharing.takeYield())
        #expect(yields == [false, true, false, false, true])
    }

    @Test mutating func `count time without a queue against it, long pauses as a second, and none back`() {
        look(true, from: 0, through: 1_500)
        look(false, from: 1_600, through: 2_600)
        look(true, from: 2_700, through: 3_900)
        // 1.5 - 1.1 + 1.3 s.
        var yields = [sharing.takeYield()]
        look(true, from: 60_000, through: 60_000)
        yields.append(sharing.takeYield())
        look(true, from: 0, through: 0)
        look(true, from: 500, through: 500)
        yields.append(sharing.takeYield())
        #expect(yields == [false, true, false])
    }

    @Test mutating func `compete after five seconds without a picture, where the path is fast enough`() {
        look(true, lacks: true, from: 0, through: 4_900)
        sharing.compete(for: 100_000, burstRate: 1_000_000, at: time(4_999))
        #expect(!sharing.isCompeting)
        sharing.compete(for: 100_000, burstRate: nil, at: time(5_000))
        sharing.compete(for: 100_000, burstRate: 150_000, at: time(5_000))
        #expect(!sharing.isCompeting)
        sharing.compete(for: 100_000, burstRate: 150_003, at: time(5_000))
        #expect(sharing.isCompeting)
        // A picture is shown again.
        look(true, from: 5_100, through: 5_100)
        #expect(sharing.isCompeting, "until there is room for it")
        sharing.succeed()
        #expect(!sharing.isCompeting)
    }

    @Test mutating func `stop at once where much is lost, and where some is, when others had time`() {
        var now: Int64 = 0
        var waits: [Int64] = []
        for isMuch in [true, false, true] {
            let begun = now
            while !sharing.isCompeting {
                now += 100
                sharing.look(isQueued: true, lacksPictures: true, at: time(now))
                sharing.compete(for: 100_000, burstRate: 1_000_000, at: time(now))
            }
            waits.append(now - begun)
            sharing.look(isQueued: true, lacksPictures: false, at: time(now))
            sharing.noteLoss(isMuch: false, isSome: true, at: time(now + 2_499))
            #expect(sharing.isCompeting)
            now += 2_500
            sharing.noteLoss(isMuch: isMuch, isSome: true, at: time(now))
            #expect(!sharing.isCompeting)
        }
        #expect(waits == [5_100, 10_100, 20_100])
    }
}
