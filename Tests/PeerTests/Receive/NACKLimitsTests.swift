import Base
import Peer
import TestSupport
import Testing

@Suite final class `A NACK generator at its limits` {
    var generator = NACKGenerator()

    func due(at milliseconds: Int64, rtt: Int64 = 100) -> [UInt16] {
        var numbers: [UInt16] = []
        generator.due(at: at(milliseconds), rtt: .milliseconds(rtt), into: &numbers)
        return numbers
    }

    func arrived(_ index: Int64) -> Bool { generator.arrived(index) }

    func takeKeyFrameDemand() -> Bool { generator.takeKeyFrameDemand() }

    @Test func `gives up the older of two packets and keeps asking for the newer one`() {
        generator.missing(1..<2, at: at(0))
        #expect(due(at: 0, rtt: 400) == [1])
        #expect(due(at: 400, rtt: 400) == [1])
        generator.missing(5..<6, at: at(500))
        #expect(due(at: 500, rtt: 400) == [5])
        #expect(due(at: 900, rtt: 400) == [1, 5])
        #expect(!takeKeyFrameDemand())
        #expect(due(at: 1_000, rtt: 400) == [])
        #expect(takeKeyFrameDemand())
        #expect(generator.outstandingCount == 1 && generator.abandonedCount == 1)
        #expect(generator.deadline == at(1_400))
        #expect(due(at: 1_400, rtt: 400) == [5])
        // The end of its second comes before a further request.
        #expect(generator.deadline == at(1_500))
        #expect(due(at: 1_500, rtt: 400) == [])
        #expect(generator.outstandingCount == 0 && generator.abandonedCount == 2)
        #expect(takeKeyFrameDemand())
    }

    @Test func `counts the time to the next request from when the last one left`() {
        generator.missing(7..<8, at: at(0))
        #expect(due(at: 70) == [7])
        #expect(due(at: 169) == [])
        #expect(due(at: 170) == [7])
    }

    @Test func `gives a packet up when a further request would be due, not before`() {
        var limits = NACKGenerator.Limits()
        limits.maximumTries = 2
        limits.maximumAge = .seconds(10)
        generator = NACKGenerator(limits: limits)
        generator.missing(7..<8, at: at(0))
        #expect(due(at: 0) == [7])
        #expect(due(at: 100) == [7])
        #expect(due(at: 224) == [])
        #expect(generator.outstandingCount == 1)
        // Until then it may still arrive.
        #expect(!takeKeyFrameDemand())
        #expect(due(at: 225) == [])
        #expect(generator.outstandingCount == 0)
        #expect(takeKeyFrameDemand())
        #expect(!arrived(7))
    }

    @Test func `takes exactly as many as it may, again and again`() {
        var limits = NACKGenerator.Limits()
        limits.maximumOutstanding = 3
        generator = NACKGenerator(limits: limits)
        generator.missing(1..<4, at: at(0))
        generator.missing(5..<5, at: at(0))
        #expect(generator.outstandingCount == 3)
        #expect(!takeKeyFrameDemand())
        generator.missing(5..<6, at: at(0))
        #expect(generator.outstandingCount == 0 && generator.abandonedCount == 4)
        #expect(takeKeyFrameDemand())
        #expect(due(at: 0) == [])
        generator.missing(7..<10, at: at(1))
        #expect(generator.outstandingCount == 3)
        #expect(due(at: 1) == [7, 8, 9])
        // One that arrived leaves room for another.
        #expect(arrived(8))
        generator.missing(12..<13, at: at(2))
        #expect(due(at: 2) == [12])
    }

    @Test func `counts all that it gives up at once`() {
        generator.missing(1..<11, at: at(0))
        generator.missing(20..<400, at: at(0))
        #expect(generator.abandonedCount == 390)
        generator.missing(400..<403, at: at(0))
        generator.restart()
        #expect(generator.abandonedCount == 393)
        #expect(generator.deadline == nil && generator.outstandingCount == 0)
    }

    @Test func `wants a key frame after a restart, even if nothing was missing`() {
        generator.restart()
        #expect(generator.abandonedCount == 0)
        #expect(takeKeyFrameDemand())
        #expect(!takeKeyFrameDemand())
    }

    @Test func `has no deadline once the last packet came`() {
        generator.missing(1..<3, at: at(0))
        #expect(due(at: 0) == [1, 2])
        #expect(generator.deadline == at(100))
        #expect(arrived(1))
        #expect(!arrived(3))
        #expect(generator.deadline == at(100))
        #expect(arrived(2))
        #expect(generator.deadline == nil)
        #expect(due(at: 100) == [])
    }

    @Test func `keeps the part of a gap that belongs to a key frame`() {
        generator.missing(5..<10, at: at(0))
        generator.keyFrameStarted(at: 7)
        #expect(generator.outstandingCount == 3)
        #expect(due(at: 0) == [7, 8, 9])
        // A packet that nobody needs any more does not count as given up.
        #expect(generator.abandonedCount == 0)
        #expect(!takeKeyFrameDemand())
    }

    @Test func `wants a key frame after the newest loss, not one that came late from before it`() {
        generator.missing(5..<6, at: at(0))
        generator.missing(10..<400, at: at(0))
        generator.keyFrameStarted(at: 5)
        #expect(generator.hasLoss(after: 5) && generator.hasLoss(after: 398))
        #expect(!generator.hasLoss(after: 399))
        #expect(takeKeyFrameDemand())
        // The loss is known until a key frame follows it.
        #expect(generator.hasLoss(after: 5))
        generator.keyFrameStarted(at: 400)
        #expect(!generator.hasLoss(after: 5))
        generator.missing(401..<402, at: at(0))
        #expect(due(at: 1_000) == [])
        generator.keyFrameStarted(at: 400)
        #expect(generator.hasLoss(after: 400))
        generator.keyFrameStarted(at: 402)
        #expect(!takeKeyFrameDemand())
        // Numbers before a jump say nothing about those after it.
        generator.missing(403..<404, at: at(1_000))
        #expect(due(at: 2_000) == [])
        #expect(generator.hasLoss(after: 402))
        generator.restart()
        #expect(!generator.hasLoss(after: 402))
    }

    @Test func `asks at once for a new gap while an older one waits for its turn`() {
        generator.missing(1..<2, at: at(0))
        #expect(due(at: 0) == [1])
        #expect(generator.deadline == at(100))
        generator.missing(9..<10, at: at(30))
        #expect(generator.deadline == at(30))
        #expect(due(at: 30) == [9])
        #expect(generator.deadline == at(100))
        #expect(due(at: 100) == [1])
        #expect(due(at: 130) == [9])
    }
}
