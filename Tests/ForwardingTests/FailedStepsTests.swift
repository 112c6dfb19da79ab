import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `Steps that failed` {
    private var steps = FailedSteps(shortest: .seconds(6), longest: .seconds(20))

    private func time(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test mutating func `are tried later each time`() {
        #expect(steps.ceiling(at: time(0)) == .max && steps.latestHold == nil)
        for (start, hold) in [(0, 6), (10, 12), (30, 20), (60, 20)] as [(Int64, Int64)] {
            steps.fail(with: 1_000_000, at: time(start))
            #expect(steps.latestHold == .seconds(hold))
            #expect(steps.ceiling(at: time(start + hold - 1)) == 800_000)
            #expect(steps.isHolding(at: time(start + hold - 1)) && !steps.isHolding(at: time(start + hold)))
            #expect(steps.ceiling(at: time(start + hold)) == .max)
        }
    }

    /// A picture's bit rate is never the same twice.
    @Test mutating func `steps of about the same rate count as one`() {
        steps.fail(with: 1_000_000, at: time(0))
        steps.fail(with: 1_200_000, at: time(1))
        #expect(steps.latestHold == .seconds(12) && steps.ceiling(at: time(2)) == 800_000)
        steps.fail(with: 2_000_000, at: time(2))
        #expect(steps.latestHold == .seconds(6), "that is another one")
        #expect(steps.ceiling(at: time(7)) == 800_000 && steps.ceiling(at: time(12)) == 800_000)
        #expect(steps.ceiling(at: time(13)) == .max)
    }

    @Test mutating func `extending a failed step holds it for the same time again`() {
        steps.fail(with: 1_000_000, at: time(0))
        steps.extend(at: time(5))
        #expect(steps.ceiling(at: time(10)) == 800_000 && steps.ceiling(at: time(11)) == .max)
        steps.fail(with: 1_000_000, at: time(12))
        #expect(steps.latestHold == .seconds(12), "that was no failure")
    }

    @Test mutating func `are forgotten where the path has become twice as fast`() {
        steps.fail(with: 1_000_000, burstRate: 2_000_000, at: time(0))
        steps.fail(with: 2_000_000, at: time(0))
        steps.forgetSlower(than: 4_000_000)
        #expect(steps.ceiling(at: time(1)) == 800_000)
        steps.forgetSlower(than: 4_001_000)
        #expect(steps.ceiling(at: time(1)) == 1_600_000, "of the other it is not known how fast the path was")
    }

    @Test mutating func `are forgotten with the path, and when there are many`() {
        for power in 0..<6 { steps.fail(with: 100_000 << power, at: time(0)) }
        #expect(steps.ceiling(at: time(1)) == 320_000, "the four latest are kept")
        steps.forget()
        #expect(steps.ceiling(at: time(1)) == .max && steps.latestHold == nil)
        #expect(!steps.isHolding(at: time(1)))
    }
}
