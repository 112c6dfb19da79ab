import Base
import TestSupport
import Testing

@testable import Transcoder

@Suite struct `What a transcoder says` {
    private func at(_ milliseconds: Int) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    @Test func `may come in bursts of three seconds, and then as fast as the rate`() {
        var budget = Budget(rate: 100, at: .zero)
        #expect((0..<400).count { _ in budget.spend(1) } == 300)
        for step in 1...100 {
            budget.refill(rate: 100, at: at(step * 100))
            #expect((0..<50).count { _ in budget.spend(1) } == 10)
        }
        // However long the pause was.
        budget.refill(rate: 100, at: at(10_000_000))
        #expect((0..<400).count { _ in budget.spend(1) } == 300)
    }

    @Test func `loses nothing by being looked at often`() {
        var budget = Budget(rate: 1, at: .zero)
        _ = budget.spend(3)
        for millisecond in 1...4_000 { budget.refill(rate: 1_000, at: at(millisecond)) }
        #expect(!budget.spend(3_001) && budget.spend(3_000))
    }

    /// Or no line would be logged any more while a process is busy.
    @Test(arguments: [1, 11, 20, 1_500])
    func `comes back at a low rate, too, however often it is looked at`(rate: Int) {
        var budget = Budget(rate: rate, at: .zero)
        let whole = budget.spend(3 * rate)
        for millisecond in 1...2_000 { budget.refill(rate: rate, at: at(millisecond)) }
        // Of a thousand tokens two may be lost by rounding.
        let most = budget.spend(2 * rate - rate / 500 - 1)
        let more = budget.spend(rate / 500 + 2)
        #expect(whole && most && !more)
    }

    @Test(arguments: [1, 7, 1_500, 65_537, 8 << 20])
    func `is never more than the rate, and hardly less`(rate: Int) {
        var random = SeededGenerator(seed: UInt64(rate))
        var budget = Budget(rate: rate, at: .zero)
        let unit = max(rate / 1_000, 1)
        var (microseconds, spent) = (0, 0)
        while microseconds < 20_000_000 {
            microseconds += Int.random(in: 1...30_000, using: &random)
            budget.refill(rate: rate, at: .zero + .microseconds(microseconds))
            while budget.spend(unit) { spent += unit }
        }
        let earned = 3 * rate + rate * microseconds / 1_000_000
        #expect(spent <= earned)
        #expect(spent >= earned - earned / 500 - unit - 1, "\(spent) of \(earned)")
    }

    @Test func `may be more with each job, at once`() {
        var budget = MessageBudget(MessageLimits(), at: .zero)
        budget.advance(to: .zero, jobs: 2)
        #expect((0..<100_000).count { _ in budget.takeMessage() } == 66_000)
        #expect(budget.takeDatagram((4 + 2 * 20) * 3 << 20) && !budget.takeDatagram(1))
        budget.advance(to: at(1_000), jobs: 0)
        #expect((0..<100_000).count { _ in budget.takeMessage() } == 2_000)
    }

    @Test func `is cut into lines, and long ones into pieces`() {
        var lines = ErrorLines()
        #expect(lines.receive(Array("one\n\ntw".utf8)) == ["one"])
        #expect(lines.receive(Array("o\nthree".utf8)) == ["two"])
        #expect(lines.flush() == ["three"] && lines.flush().isEmpty)
        let pieces = lines.receive([UInt8](repeating: 0x61, count: 1_200))
        #expect(pieces.map(\.utf8.count) == [500, 500])
        #expect(lines.flush().first?.utf8.count == 200)
    }
}
