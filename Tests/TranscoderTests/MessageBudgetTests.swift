import Base
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
