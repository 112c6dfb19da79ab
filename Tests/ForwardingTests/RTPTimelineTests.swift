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
    }

    /// Replays the last four seconds of one source after the other, as a viewer who swipes there and back gets them.
    /// - Returns: by how many milliseconds the edge's time stamp runs ahead of the time that passed, each time.
    private mutating func leads(switching times: [Int64], sendingAll: Bool) throws -> [Double] {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        var leads: [Double] = []
        var origin: UInt32?
        for (index, at) in times.enumerated() {
            let edge = RTPTimeline<Source>.Edge(sequence: 120, timestamp: 360_000)
            timeline.begin(
                index.isMultiple(of: 2) ? first : second, at: 0, timestamp: 0, pictures: .init(), edge: edge,
                now: time(at))
            let segment = try #require(timeline.current)
            let edgeStamp = segment.outgoing(timestamp: 360_000, of: 120)
            var previous: UInt32?
            for frame in Int64(0)...(sendingAll ? 120 : 60) {
                let stamp = segment.outgoing(timestamp: UInt32(frame) * 3_000, of: frame)
                if let previous {
                    #expect(Int32(bitPattern: stamp &- previous) > 0, "frame \(frame) has no time")
                }
                previous = stamp
                timeline.sent(try #require(segment.outgoing(frame)), timestamp: stamp, at: time(at + 1))
            }
            if origin == nil { origin = edgeStamp &- UInt32(at * 90) }
            let passed = Int32(bitPattern: edgeStamp &- (origin ?? 0)) - Int32(at * 90)
            leads.append(Double(passed) / 90)
        }
        return leads
    }

    @Test(arguments: [true, false])
    mutating func `does not run ahead of the time that passes when replays follow each other fast`(
        sendingAll: Bool
    ) throws {
        let swipes = (0..<100).map { Int64($0) * 60 }
        let leads = try leads(switching: swipes, sendingAll: sendingAll)
        #expect(leads.allSatisfy { abs($0) <= 5 }, "\(leads)")
    }

    /// Half a turn of the clock after the edge, 6 h 38 min at 90 kHz, the edge seems to lie ahead again.
    @Test mutating func `does not go back when a source that began with a replay is left hours later`()
        throws
    {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let edge = RTPTimeline<Source>.Edge(sequence: 120, timestamp: 360_000)
        timeline.begin(first, at: 0, timestamp: 0, pictures: .init(), edge: edge, now: time(0))
        let segment = try #require(timeline.current)
        // The source's clock is fast by 100 ppm.
        let ticksAnHour: UInt32 = 3_600 * 90_009
        var stamp: UInt32 = 0
        for hour in 0...7 as ClosedRange<UInt32> {
            let number = 120 + Int64(hour) * 108_000
            stamp = segment.outgoing(timestamp: 360_000 + hour * ticksAnHour, of: number)
            let outgoing = try #require(segment.outgoing(number))
            timeline.sent(outgoing, timestamp: stamp, at: time(Int64(hour) * 3_600_000))
        }
        timeline.begin(second, at: 1, timestamp: 0, pictures: .init(), now: time(7 * 3_600_000 + 40))
        let next = try #require(timeline.current).outgoing(timestamp: 0, of: 1)
        #expect(Int32(bitPattern: next &- stamp) == 40 * 90)
    }

    @Test mutating func `several replays at one moment give back how far they ran ahead`() throws {
        let leads = try leads(switching: [0, 0, 0, 0, 1_000, 2_000], sendingAll: true)
        #expect(try #require(leads.max()) <= 15, "\(leads)")
        #expect(abs(try #require(leads.last)) <= 1, "\(leads)")
    }
}
