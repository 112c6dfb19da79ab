import Base
import Peer
import TestSupport
import Testing

@Suite final class `A REMB estimator` {
    var estimator = REMBEstimator()
    var now: Int64 = 0
    /// Each estimate sent, with the millisecond it left in.
    var sent: [(time: Int64, bitrate: Int)] = []

    /// Lets a publisher send at a rate for some seconds, of which a share is lost.
    func run(seconds: Int64, bitrate: Int, lossPercent: Int = 0) {
        let packetsPerSecond = max(bitrate / 8_000, 25)
        var lossesOwed = 0
        for _ in 0..<seconds * 20 {
            now += 50
            let packets = packetsPerSecond / 20
            lossesOwed += packets * lossPercent
            let lost = min(lossesOwed / 100, packets)
            lossesOwed -= lost * 100
            for _ in 0..<(packets - lost) {
                estimator.receive(size: bitrate / 8 / packetsPerSecond, at: at(now))
            }
            estimator.observe(.init(expected: packets, lost: lost), at: at(now))
            if let estimate = estimator.estimateDue(at: at(now)) { sent.append((now, estimate)) }
        }
    }

    @Test func `says nothing before the first packet, then its start value at once`() {
        #expect(estimator.deadline == nil)
        let nothing = estimator.estimateDue(at: at(5_000))
        #expect(nothing == nil)
        estimator.receive(size: 1_000, at: at(6_000))
        #expect(estimator.deadline == at(6_000))
        let first = estimator.estimateDue(at: at(6_000))
        #expect(first == 1_500_000)
        #expect(estimator.deadline == at(7_000))
    }

    @Test func `reports its estimate every second`() {
        run(seconds: 10, bitrate: 800_000)
        for (earlier, later) in zip(sent, sent.dropFirst()) { #expect(later.time - earlier.time == 1_000) }
        #expect(sent.count == 10)
    }

    @Test func `grows to its maximum while nothing is lost and the publisher follows`() {
        for _ in 0..<20 { run(seconds: 1, bitrate: estimator.bitrate) }
        #expect(estimator.bitrate == 8_000_000)
        for (earlier, later) in zip(sent, sent.dropFirst()) {
            #expect(later.bitrate >= earlier.bitrate)
            #expect(later.bitrate <= earlier.bitrate * 126 / 100)
        }
    }

    @Test func `never grows beyond twice what arrives`() {
        run(seconds: 20, bitrate: 1_000_000)
        #expect(estimator.bitrate >= 1_800_000)
        #expect(estimator.bitrate <= 2_200_000)
    }

    @Test func `keeps its start value for a publisher that sends little`() {
        run(seconds: 10, bitrate: 40_000)
        #expect(estimator.bitrate == 1_500_000)
    }

    @Test func `stays as it is while a little is lost`() {
        run(seconds: 6, bitrate: 2_400_000, lossPercent: 6)
        let before = estimator.bitrate
        run(seconds: 5, bitrate: 2_400_000, lossPercent: 6)
        #expect(estimator.bitrate == before)
    }

    @Test func `falls below what arrives, at once, when much is lost`() throws {
        run(seconds: 5, bitrate: 3_000_000)
        let before = estimator.bitrate
        let count = sent.count
        run(seconds: 1, bitrate: 3_000_000, lossPercent: 20)
        let fall = try #require(sent[count...].first { $0.bitrate < before })
        #expect(fall.time <= 5_400)
        #expect(fall.bitrate < 2_900_000)
    }

    @Test func `falls to its minimum at the worst, and comes back`() {
        run(seconds: 10, bitrate: 1_000_000, lossPercent: 90)
        #expect(estimator.bitrate == 150_000)
        for _ in 0..<15 { run(seconds: 1, bitrate: estimator.bitrate) }
        #expect(estimator.bitrate >= 1_500_000)
    }

    @Test func `does not judge by a handful of packets`() {
        estimator.receive(size: 1_000, at: at(0))
        estimator.observe(.init(expected: 10, lost: 9), at: at(0))
        #expect(estimator.bitrate == 1_500_000)
        estimator.observe(.init(expected: 10, lost: 9), at: at(10))
        #expect(estimator.bitrate == 150_000)
    }

    @Test func `a short burst of loss among many packets does not lower the estimate`() {
        run(seconds: 3, bitrate: 1_200_000)
        let before = estimator.bitrate
        estimator.observe(.init(expected: 30, lost: 0), at: at(now + 210))
        estimator.observe(.init(expected: 30, lost: 20), at: at(now + 220))
        estimator.observe(.init(expected: 300, lost: 0), at: at(now + 420))
        #expect(estimator.bitrate == before)
    }

    @Test(arguments: 0..<10) func `stays within its limits for any input`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let time = MonotonicTime(nanoseconds: Int64(bitPattern: random.next()))
            estimator.receive(size: Int(truncatingIfNeeded: random.next()), at: time)
            let any = { Int(truncatingIfNeeded: random.next()) }
            estimator.observe(.init(expected: any(), lost: any()), at: time)
            _ = estimator.estimateDue(at: time)
            #expect((150_000...8_000_000).contains(estimator.bitrate))
        }
    }
}
