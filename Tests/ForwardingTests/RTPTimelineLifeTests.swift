import Base
import TestSupport
import Testing

@testable import Forwarding

/// One receiver's numbers and times, whatever sources do.
@Suite struct `A time line of many sources` {
    private final class Source {}

    private struct Sent {
        let number: Int64
        let source: Source
        let sequence: Int64
    }

    private var random = SeededGenerator(seed: 13)

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    /// A number is never used twice, and what is asked for again is what was sent.
    @Test(arguments: UInt64(0)..<10) mutating func `each number is used once, and leads back to its source`(
        seed: UInt64
    ) throws {
        random = SeededGenerator(seed: seed)
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        var sent: [Sent] = []
        var now: Int64 = 1_000
        // Segments from the place in `sent` on at which each begins.
        var begun: [Int] = []
        for _ in 0..<60 {
            let source = Source()
            var sequence = Int64.random(in: 0...200_000, using: &random)
            var timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
            now += Int64.random(in: 0...3_000, using: &random)
            let expected = timeline.nextSequence
            timeline.begin(source, at: sequence, timestamp: timestamp, pictures: .init(), now: time(now))
            begun.append(sent.count)
            #expect(timeline.current?.outgoing(sequence) == expected, "there is no gap between two sources")
            for _ in 0..<Int.random(in: 0...1_500, using: &random) {
                // What the source lost leaves a gap of the same size.
                if Int.random(in: 0..<50, using: &random) == 0 { sequence += 2 }
                guard let segment = timeline.current, let number = segment.outgoing(sequence) else {
                    Issue.record("nothing is being sent")
                    return
                }
                let stamp = segment.outgoing(timestamp: timestamp, of: sequence)
                guard timeline.sent(number, timestamp: stamp, at: time(now)) else {
                    Issue.record("\(number) is not the newest")
                    return
                }
                sent.append(Sent(number: number, source: source, sequence: sequence))
                if Int.random(in: 0..<500, using: &random) == 0 {
                    timeline.closeGap(through: sequence + 20_000, pictures: .init())
                    begun.append(sent.count)
                    sequence += 20_000
                    #expect(timeline.current?.outgoing(sequence + 1) == number + 1)
                }
                sequence += 1
                timestamp &+= 3_000
                if sequence % 8 == 0 { now += 33 }
            }
            // Those of the six latest segments, and no more than half of all numbers back.
            let first = begun.suffix(6).first ?? 0
            for each in sent.suffix(from: first).suffix(20_000).enumerated() where each.offset % 97 == 0 {
                let found = timeline.origin(of: UInt16(truncatingIfNeeded: each.element.number))
                let isRight =
                    found?.segment.source === each.element.source
                    && found?.sequence == each.element.sequence && found?.outgoing == each.element.number
                #expect(isRight, "\(each.element.number)")
            }
            let next = UInt16(truncatingIfNeeded: timeline.nextSequence)
            #expect(timeline.origin(of: next) == nil && timeline.origin(of: next &+ 5) == nil)
        }
        #expect(Set(sent.map(\.number)).count == sent.count && sent.count > 20_000)
        #expect(timeline.segments.count == 6)
    }

    /// Six hours and 38 minutes are half a turn of the clock: more would be a step back.
    @Test(
        arguments: [
            (0, 1), (1, 90), (6 * 3_600_000, 1_944_000_000), (6 * 3_600_000 + 2_000_000, 2_124_000_000),
            (7 * 3_600_000, 2_147_483_647), (14 * 3_600_000, 2_147_483_647), (2_600_000_000, 2_147_483_647),
        ] as [(Int64, Int32)])
    mutating func `goes forward, however long nothing was sent`(pause: Int64, step: Int32) throws {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let sources = (0..<3).map { _ in Source() }
        timeline.begin(sources[0], at: 1, timestamp: 5, pictures: .init(), now: time(0))
        let first = try #require(timeline.current)
        let stamp = first.outgoing(timestamp: 5, of: 1)
        timeline.sent(try #require(first.outgoing(1)), timestamp: stamp, at: time(0))
        timeline.begin(sources[1], at: 70, timestamp: 900_000, pictures: .init(), now: time(pause))
        let second = try #require(timeline.current)
        let later = second.outgoing(timestamp: 900_000, of: 70)
        #expect(Int32(bitPattern: later &- stamp) == step)
        timeline.sent(try #require(second.outgoing(70)), timestamp: later, at: time(pause))
        // From here on it goes by the clock again.
        timeline.begin(sources[2], at: 3, timestamp: 8, pictures: .init(), now: time(pause + 1_000))
        let third = try #require(timeline.current).outgoing(timestamp: 8, of: 3)
        #expect(third == later &+ 90_000)
    }

    /// A source that sends nothing for more than half a turn of the clock, as a screen that nobody touches, goes on
    /// with a timestamp that seems to lie behind.
    @Test(arguments: [3_600_000, 7 * 3_600_000, 10 * 3_600_000, 13 * 3_600_000, 14 * 3_600_000] as [Int64])
    mutating func `goes by the clock again after a source has paused for hours`(pause: Int64) throws {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let sources = (0..<2).map { _ in Source() }
        timeline.begin(sources[0], at: 1, timestamp: 5, pictures: .init(), now: time(0))
        let first = try #require(timeline.current)
        let stamp = first.outgoing(timestamp: 5, of: 1)
        timeline.sent(try #require(first.outgoing(1)), timestamp: stamp, at: time(0))
        let ticks = UInt32(truncatingIfNeeded: pause * 90)
        let resumed = first.outgoing(timestamp: 5 &+ ticks, of: 2)
        timeline.sent(try #require(first.outgoing(2)), timestamp: resumed, at: time(pause))
        timeline.begin(sources[1], at: 70, timestamp: 9, pictures: .init(), now: time(pause + 1_000))
        let next = try #require(timeline.current).outgoing(timestamp: 9, of: 70)
        #expect(next == resumed &+ 90_000)
    }

    /// During a replay, the source's live edge must lie ahead of the time line.
    @Test mutating func `goes forward with a replay after many hours, and lands on the edge`() throws {
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let sources = (0..<2).map { _ in Source() }
        timeline.begin(sources[0], at: 1, timestamp: 5, pictures: .init(), now: time(0))
        let first = try #require(timeline.current)
        let stamp = first.outgoing(timestamp: 5, of: 1)
        timeline.sent(try #require(first.outgoing(1)), timestamp: stamp, at: time(0))
        let edge = RTPTimeline<Source>.Edge(sequence: 100, timestamp: 297_000)
        let hours = time(20 * 3_600_000)
        timeline.begin(
            sources[1], at: 1, timestamp: 0, pictures: .init(), edge: edge, now: hours)
        let second = try #require(timeline.current)
        var last = stamp
        for frame in Int64(1)...110 {
            let next = second.outgoing(timestamp: UInt32(frame - 1) * 3_000, of: frame)
            #expect(Int32(bitPattern: next &- last) > 0, "frame \(frame)")
            timeline.sent(try #require(second.outgoing(frame)), timestamp: next, at: hours)
            last = next
        }
    }

    /// A server whose machine sleeps, or whose clock is that of a test.
    @Test mutating func `goes forward by a tick where time stands still or goes back`() throws {
        var timeline = RTPTimeline<Source>(clockRate: 48_000, using: &random)
        var last: UInt32?
        for milliseconds in [9_000, 9_000, 8_000, 0, -5_000, 9_000] as [Int64] {
            timeline.begin(Source(), at: 1, timestamp: 77, pictures: .init(), now: time(milliseconds))
            let segment = try #require(timeline.current)
            let stamp = segment.outgoing(timestamp: 77, of: 1)
            if let last, milliseconds != 9_000 { #expect(stamp == last &+ 1) }
            if let last { #expect(Int32(bitPattern: stamp &- last) > 0) }
            timeline.sent(try #require(segment.outgoing(1)), timestamp: stamp, at: time(milliseconds))
            last = stamp
        }
    }
}

@Suite struct `The time at which a packet was sent` {
    @Test func `has 24 bits: six of seconds, and eighteen of a second's fraction`() {
        let second: Int64 = 1_000_000_000
        for (nanoseconds, value) in [
            (0, 0), (1, 0), (3_815, 1), (second / 2, 1 << 17), (second - 1, 0x3FFFF), (second, 1 << 18),
            (63 * second + second - 1, 0xFF_FFFF), (64 * second, 0), (65 * second + second / 4, 0x5_0000),
            (-5, 0), (.min, 0),
        ] as [(Int64, UInt32)] {
            #expect(AbsoluteSendTime.value(at: MonotonicTime(nanoseconds: nanoseconds)) == value)
        }
    }

    @Test(arguments: UInt64(0)..<5) func `the send time grows with time and fits 24 bits`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var now = Int64.random(in: 0...(.max / 2), using: &random)
        for _ in 0..<2_000 {
            let step = Int64.random(in: 3_815...31_000_000_000, using: &random)
            let before = AbsoluteSendTime.value(at: MonotonicTime(nanoseconds: now))
            let after = AbsoluteSendTime.value(at: MonotonicTime(nanoseconds: now + step))
            #expect(before < 1 << 24 && after < 1 << 24)
            let difference = (after &- before) & 0xFF_FFFF
            #expect(difference > 0 && difference <= UInt32(step << 18 / 1_000_000_000) + 1)
            now += step
        }
    }
}
