import Base
import Peer
import TestSupport
import Testing

@Suite final class `A NACK generator` {
    var generator = NACKGenerator()

    func due(at milliseconds: Int64, rtt: Int64 = 100) -> [UInt16] {
        var numbers: [UInt16] = []
        generator.due(at: at(milliseconds), rtt: .milliseconds(rtt), into: &numbers)
        return numbers
    }

    func arrived(_ index: Int64) -> Bool { generator.arrived(index) }

    func takeKeyFrameDemand() -> Bool { generator.takeKeyFrameDemand() }

    @Test func `asks at once, then after one round trip, then less and less often`() {
        generator.missing(7..<8, at: at(0))
        #expect(generator.deadline == at(0))
        var asked: [Int64] = []
        for time in Int64(0)...1_100 where due(at: time) == [7] { asked.append(time) }
        #expect(asked == [0, 100, 225, 382, 578, 823])
    }

    @Test func `asks ten times at most`() {
        generator.missing(7..<8, at: at(0))
        var asked: [Int64] = []
        for time in Int64(0)...1_100 where due(at: time, rtt: 1) == [7] { asked.append(time) }
        #expect(asked.count == 10)
        #expect(asked.prefix(3) == [0, 20, 45])
        #expect(generator.outstandingCount == 0)
    }

    @Test func `gives a packet up after a second and then wants a key frame, once`() {
        generator.missing(7..<8, at: at(0))
        for time in Int64(0)...999 { _ = due(at: time, rtt: 400) }
        #expect(!takeKeyFrameDemand())
        #expect(generator.deadline == at(1_000))
        #expect(due(at: 1_000, rtt: 400) == [])
        #expect(takeKeyFrameDemand())
        #expect(!takeKeyFrameDemand())
        #expect(generator.deadline == nil)
        #expect(generator.abandonedCount == 1)
    }

    @Test func `stops asking for what arrived`() {
        generator.missing(7..<10, at: at(0))
        #expect(!arrived(8))
        #expect(due(at: 0) == [7, 9])
        #expect(arrived(9))
        #expect(!arrived(9))
        #expect(due(at: 100) == [7])
    }

    @Test func `waits for packets out of order if told to`() {
        var limits = NACKGenerator.Limits()
        limits.reorderingTolerance = .milliseconds(5)
        generator = NACKGenerator(limits: limits)
        generator.missing(7..<8, at: at(0))
        #expect(generator.deadline == at(5))
        #expect(due(at: 4) == [])
        #expect(due(at: 5) == [7])
    }

    @Test func `drops what a key frame makes useless`() {
        generator.missing(7..<10, at: at(0))
        generator.missing(12..<14, at: at(0))
        generator.keyFrameStarted(at: 12)
        #expect(due(at: 0) == [12, 13])
        generator.keyFrameStarted(at: 20)
        #expect(generator.deadline == nil)
    }

    @Test func `keeps asking for packets inside and after the key frame`() {
        generator.missing(7..<8, at: at(0))
        generator.keyFrameStarted(at: 5)
        #expect(due(at: 0) == [7])
    }

    @Test func `wants a key frame instead of too large a gap`() {
        generator.missing(1..<302, at: at(0))
        #expect(generator.outstandingCount == 0)
        #expect(generator.deadline == nil)
        #expect(takeKeyFrameDemand())
    }

    @Test func `wants a key frame when too much is missing in all`() {
        generator.missing(1..<201, at: at(0))
        generator.missing(301..<401, at: at(0))
        #expect(generator.outstandingCount == 300)
        #expect(!takeKeyFrameDemand())
        generator.missing(500..<501, at: at(0))
        #expect(generator.outstandingCount == 0)
        #expect(takeKeyFrameDemand())
    }

    @Test func `wants no key frame any more when one came`() {
        generator.missing(1..<302, at: at(0))
        generator.keyFrameStarted(at: 310)
        #expect(!takeKeyFrameDemand())
    }

    @Test func `uses 16 bits on the wire whatever the index`() {
        generator.missing(65_535..<65_538, at: at(0))
        generator.missing(Int64.max - 2..<Int64.max - 1, at: at(0))
        #expect(due(at: 0) == [65_535, 0, 1, 65_533])
    }

    @Test func `survives absurd round-trip times`() {
        generator.missing(7..<8, at: at(0))
        var numbers: [UInt16] = []
        generator.due(at: at(0), rtt: .seconds(Int64.max / 2), into: &numbers)
        generator.due(at: at(1), rtt: .seconds(-5), into: &numbers)
        #expect(numbers == [7])
        #expect(generator.deadline == at(1_000))
    }
}
