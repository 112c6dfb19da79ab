import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A replay` {
    private final class Source {}

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    private func replay(bitrate: Int = 1_500_000, at milliseconds: Int64 = 0) -> Replay {
        let edge = GOPCache.Edge(sequenceNumber: 900, timestamp: 90_000, captured: nil, arrival: time(0))
        return Replay(from: 1, to: edge, bitrate: bitrate, at: time(milliseconds))
    }

    /// Bytes that leave at each wake-up, in packets of 1,200.
    private func sent(by replay: inout Replay, upTo end: Int64) -> [Int] {
        var bytes: [Int] = []
        while replay.deadline <= time(end) {
            replay.refill(at: replay.deadline)
            var step = 0
            while replay.mayGoOn {
                replay.spend(1_200)
                step += 1_200
            }
            bytes.append(step)
        }
        return bytes
    }

    @Test func `begins with a burst at once and goes on in even steps`() {
        var replay = replay(at: 7)
        #expect(replay.deadline == time(7))
        let steps = sent(by: &replay, upTo: 1_000)
        #expect((Replay.firstBurst...Replay.firstBurst + 1_200).contains(steps[0]))
        #expect(steps.dropFirst().allSatisfy { $0 <= 12_500 + 1_200 })
        let rate = steps.dropFirst().reduce(0, +)
        #expect((2_300_000...2_500_000).contains(rate), "\(rate) bytes in a second")
    }

    @Test func `does not make up for a wake-up that comes late with a burst`() {
        var replay = replay()
        _ = sent(by: &replay, upTo: 100)
        replay.refill(at: time(900))
        var step = 0
        while replay.mayGoOn {
            replay.spend(1_200)
            step += 1_200
        }
        #expect(step <= Replay.largestStep + 1_200)
    }

    @Test func `is halved by losses, once each 50 ms, and stays faster than its source`() {
        var replay = replay(bitrate: 4_000_000)
        #expect(replay.rate == Replay.usualRate)
        replay.noteLoss(of: 1, at: time(10))
        replay.noteLoss(of: 1, at: time(30))
        #expect(replay.rate == Replay.usualRate / 2)
        for step in Int64(1)...10 { replay.noteLoss(of: 1, at: time(step * 100)) }
        #expect(replay.rate == 1_000_000)
    }

    @Test(arguments: [(10, 1_000_000), (30, 625_000)])
    func `goes on little faster than its source where a quarter is lost at twice of that`(
        lost: Int, rate: Int
    ) {
        var replay = replay(bitrate: 4_000_000)
        for step in Int64(1)...2 { replay.noteLoss(of: 30, at: time(step * 100)) }
        #expect(replay.rate == 1_000_000)
        for _ in 0..<100 { replay.spend(1_200) }
        replay.noteLoss(of: lost, at: time(400))
        #expect(replay.rate == rate)
        var next = self.replay(bitrate: 4_000_000)
        next.inherit(replay)
        #expect(next.rate == rate)
    }

    @Test
    func `is not admitted twice in half a second, nor from one key frame beyond eight megabits a second`() {
        var gate = ReplayGate()
        let source = Source()
        let id = ObjectIdentifier(source)
        func admit(_ start: Int64, at milliseconds: Int64, rtt: Duration? = nil) -> Bool {
            gate.admit(start, of: id, rtt: rtt, at: time(milliseconds))
        }
        #expect(admit(1, at: 0))
        #expect(!admit(1, at: 499))
        #expect(!admit(2, at: 499))
        #expect(!admit(1, at: 500, rtt: .milliseconds(800)))
        #expect(admit(1, at: 500))
        gate.spend(1_500_000)
        gate.spend(500_000)
        #expect(!admit(1, at: 2_499))
        #expect(admit(1, at: 2_500))
        #expect(gate.isInVain)
        gate.spend(20_000_000)
        #expect(!admit(1, at: 22_499))
        #expect(admit(2, at: 3_000))
        #expect(admit(2, at: 3_500))
        #expect(!gate.isInVain)
    }

    @Test(arguments: UInt64(0)..<50) func `shows time that only goes forward and lands on the live edge`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        var now: Int64 = 0
        var last: UInt32?
        var sequence: Int64?
        for _ in 0..<6 {
            // A source that is somewhere in its group of pictures.
            let source = Source()
            let start = Int64.random(in: 0...100_000, using: &random)
            var timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
            let frames = Int.random(in: 1...240, using: &random)
            var stamps: [UInt32] = []
            for _ in 0..<(frames + 30) {
                stamps.append(timestamp)
                timestamp &+= UInt32.random(in: 1_500...6_000, using: &random)
            }
            let edge = RTPTimeline<Source>.Edge(
                sequence: start + Int64(frames - 1), timestamp: stamps[frames - 1])
            timeline.begin(
                source, at: start, timestamp: stamps[0], pictures: .init(), edge: edge, now: time(now))
            let segment = try #require(timeline.current)
            let live = segment.outgoing(timestamp: stamps[frames - 1], of: edge.sequence)
            for (index, stamp) in stamps.enumerated() {
                let number = start + Int64(index)
                let outgoing = segment.outgoing(timestamp: stamp, of: number)
                if let last { #expect(Int32(bitPattern: outgoing &- last) > 0) }
                if index < frames {
                    // Never ahead of the live edge, and no further behind than a fraction of a second.
                    let behind = live &- outgoing
                    #expect(behind <= UInt32(frames) * 6_000 / 32)
                } else {
                    #expect(outgoing &- live == stamp &- stamps[frames - 1])
                }
                last = outgoing
                let next = try #require(segment.outgoing(number))
                if let sequence { #expect(next == sequence + 1) }
                sequence = next
                timeline.sent(next, timestamp: outgoing, at: time(now))
                if index == frames - 1 { timeline.catchUp() }
                now += 1
            }
            now += Int64.random(in: 0...500, using: &random)
        }
    }

    @Test func `moves the past together as the time that passed demands, and gives back what it took`() throws
    {
        var random = SeededGenerator(seed: 3)
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let source = Source()
        timeline.begin(source, at: 1, timestamp: 0, pictures: .init(), now: time(0))
        let first = try #require(timeline.current).outgoing(timestamp: 0, of: 1)
        timeline.sent(try #require(timeline.current?.outgoing(1)), timestamp: first, at: time(0))
        // 900 ticks have passed: a 32nd of 320,000 would be too much, a 512th is not.
        timeline.begin(
            source, at: 1, timestamp: 0, pictures: .init(), edge: .init(sequence: 200, timestamp: 320_000),
            now: time(10))
        let replayed = try #require(timeline.current)
        let edge = replayed.outgoing(timestamp: 320_000, of: 200)
        #expect(edge == first &+ 900)
        #expect(replayed.outgoing(timestamp: 0, of: 1) == first &+ 900 &- 625)
        timeline.sent(try #require(replayed.outgoing(200)), timestamp: edge, at: time(10))
        // Nothing has passed: a 1,024th, and that much ahead.
        timeline.begin(
            source, at: 1, timestamp: 0, pictures: .init(), edge: .init(sequence: 200, timestamp: 320_000),
            now: time(10))
        let again = try #require(timeline.current)
        #expect(again.outgoing(timestamp: 320_000, of: 200) == edge &+ 313)
        timeline.sent(try #require(again.outgoing(200)), timestamp: edge &+ 313, at: time(10))
        // A second later a switch finds the time line where the clock says.
        timeline.begin(source, at: 900, timestamp: 77, pictures: .init(), now: time(1_010))
        #expect(try #require(timeline.current).outgoing(timestamp: 77, of: 900) == first &+ 900 &+ 90_000)
    }

    @Test func `hints at haste for what was sent before it caught up, whenever it is sent`() throws {
        var random = SeededGenerator(seed: 4)
        var timeline = RTPTimeline<Source>(clockRate: 90_000, using: &random)
        let source = Source()
        timeline.begin(
            source, at: 10, timestamp: 0, pictures: .init(), edge: .init(sequence: 12, timestamp: 6_000),
            now: time(0))
        let first = try #require(timeline.current?.outgoing(10))
        #expect(timeline.current?.playout(of: first + 1_000) == .atOnce)
        for number in first..<(first + 5) { timeline.sent(number, timestamp: 0, at: time(1)) }
        timeline.catchUp()
        let segment = try #require(timeline.current)
        #expect(segment.playout(of: first + 4) == .atOnce)
        #expect(segment.playout(of: first + 5) == .asUsual)
        #expect(segment.playout(of: first + 516) == .asUsual)
        #expect(segment.playout(of: first + 517) == .asPublished)
        timeline.begin(source, at: 50, timestamp: 0, pictures: .init(), now: time(2))
        #expect(timeline.current?.playout(of: first + 5) == .asPublished)
    }
}
