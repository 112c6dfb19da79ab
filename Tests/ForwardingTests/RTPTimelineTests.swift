import Base
import Testing
import TestSupport

@testable import Forwarding

@Suite struct RTPTimelineTests {
    private final class Source {}

    private var random = SeededGenerator(seed: 1)
    private let first = Source()
    private let second = Source()

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test mutating func `continues sequence numbers without a gap over a switch`() throws {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        timeline.begin(first, at: 70_000, timestamp: 5, pictures: .init(), now: time(0))
        let start = try #require(timeline.current?.outgoing(70_000))
        #expect((1...0x7FFF).contains(start))
        for number in Int64(70_000)...70_009 {
            timeline.sent(try #require(timeline.current?.outgoing(number)), timestamp: 5, at: time(0))
        }
        timeline.begin(second, at: 3, timestamp: 9, pictures: .init(), now: time(10))
        #expect(timeline.current?.outgoing(3) == start + 10)
        #expect(timeline.current?.outgoing(2) == nil)
    }

    @Test mutating func `moves time stamps forward by the time that passed`() throws {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        timeline.begin(first, at: 1, timestamp: 0xFFFF_FFF0, pictures: .init(), now: time(0))
        let segment = try #require(timeline.current)
        let stamp = 0xFFFF_FFF0 &+ segment.timestampOffset
        timeline.sent(segment.sequenceOffset + 1, timestamp: stamp, at: time(0))
        timeline.begin(second, at: 1, timestamp: 1_000, pictures: .init(), now: time(500))
        #expect(try #require(timeline.current).timestampOffset &+ 1_000 == stamp &+ 45_000)
    }

    @Test mutating func `never goes back, even if no time passed`() throws {
        var timeline = RTPTimeline<Source>(clockRate: 48_000, using: &random)
        timeline.begin(first, at: 1, timestamp: 0, pictures: .init(), now: time(9))
        let segment = try #require(timeline.current)
        timeline.sent(segment.sequenceOffset + 1, timestamp: segment.timestampOffset, at: time(9))
        timeline.begin(second, at: 1, timestamp: 0, pictures: .init(), now: time(8))
        #expect(try #require(timeline.current).timestampOffset == segment.timestampOffset &+ 1)
    }

    @Test mutating func `finds where a sent packet came from, also before the switch and over the wrap`()
        throws
    {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        timeline.begin(first, at: 500, timestamp: 0, pictures: .init(), now: time(0))
        let start = try #require(timeline.current?.outgoing(500))
        timeline.sent(start + 69_999, timestamp: 0, at: time(1))
        timeline.begin(second, at: 9_000, timestamp: 0, pictures: .init(), now: time(2))
        timeline.sent(start + 70_004, timestamp: 0, at: time(3))
        let before = try #require(timeline.origin(of: UInt16(truncatingIfNeeded: start + 69_990)))
        #expect(before.segment.source === first && before.sequence == 500 + 69_990)
        let after = try #require(timeline.origin(of: UInt16(truncatingIfNeeded: start + 70_002)))
        #expect(after.segment.source === second && after.sequence == 9_002)
        #expect(timeline.origin(of: UInt16(truncatingIfNeeded: start + 70_005)) == nil)
        timeline.forgetHistory()
        #expect(timeline.origin(of: UInt16(truncatingIfNeeded: start + 69_990)) == nil)
    }
}
