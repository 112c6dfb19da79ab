import Base
import Peer
import TestSupport
import Testing
import Wire

@Suite final class `The loss between two reports of a viewer` {
    var stream = SendStream(ssrc: 5, clockRate: 90_000)
    let clock = WallClock(unixNanoseconds: 1_767_225_600_000_000_000, at: .zero)

    func reception(_ highest: UInt32, _ lost: Int32) throws -> SendStream.Reception {
        let block = ReportBlock(
            ssrc: 5, fractionLost: 0, cumulativeLost: lost, highestSequenceNumber: highest, jitter: 0,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
        _ = stream.receive(block, at: at(0), clock: clock)
        return try #require(stream.reception)
    }

    @Test(
        arguments: [
            (100, 0, 200, 5, 100, 5), (100, 7, 101, 7, 1, 0),
            // Over the end of the extended numbers.
            (0xFFFF_FFF0, 0, 0x10, 3, 32, 3),
            // Late packets and duplicates make up for earlier loss; no more is lost than was sent.
            (100, 10, 200, 4, 100, 0), (100, 0, 110, 50, 10, 10), (100, -5, 200, -2, 100, 3),
            // Nothing new, an older report, and numbers that no viewer has in this time.
            (100, 0, 100, 5, 0, 0), (200, 0, 100, 5, 0, 0), (0, 0, 0x10_0000, 7, 0, 0),
            (0, 0, 0xF_FFFF, 7, 0xF_FFFF, 7), (0, 0, 0x8000_0000, 7, 0, 0),
            // Counts that no viewer has either.
            (0, .max, 10, .min, 10, 1), (0, .min, 10, .max, 10, 0),
        ] as [(UInt32, Int32, UInt32, Int32, Int, Int)])
    func `two reports give a loss only if they fit together`(
        firstHighest: UInt32, firstLost: Int32, secondHighest: UInt32, secondLost: Int32, expected: Int,
        lost: Int
    ) throws {
        let first = try reception(firstHighest, firstLost)
        let second = try reception(secondHighest, secondLost)
        let interval = second.interval(since: first)
        #expect(interval == LossResponse.Interval(expected: expected, lost: lost))
    }
}
