import Base
import Testing

@testable import SCTP

@Suite struct `The timeline of timers` {
    private let timeline = SCTPTimeline()

    private func elapsed(_ microseconds: Int64) -> UInt32 {
        timeline.elapsedMilliseconds(to: .zero + .microseconds(microseconds))
    }

    @Test func `begins with its first use, whenever that is`() {
        #expect(elapsed(500_000_000) == 0)
        #expect(elapsed(500_010_000) == 10)
    }

    @Test func `passes in whole ticks, and loses nothing between them`() {
        #expect(elapsed(0) == 0)
        #expect(elapsed(9_999) == 0)
        #expect(elapsed(10_999) == 10)
        // 999 µs were left over.
        #expect(elapsed(19_999) == 0)
        #expect(elapsed(20_000) == 10)
        #expect(elapsed(20_000) == 0)
        #expect(elapsed(1_034_567) == 1_014)
    }

    /// Several associations on several threads tell it their time, and one of them may have looked earlier.
    @Test func `does not run back, and counts no time twice`() {
        #expect(elapsed(0) == 0)
        #expect(elapsed(50_000) == 50)
        #expect(elapsed(20_000) == 0)
        #expect(elapsed(49_000) == 0)
        #expect(elapsed(60_000) == 10)
    }

    @Test func `adds up to the time that has passed, however often it is asked`() {
        var sum: UInt32 = 0
        for number in 0...3_861 as ClosedRange<Int64> { sum += elapsed(777 * number) }
        // The last question comes at 2,999,997 µs, and less than a tick is left over.
        #expect(sum <= 2_999 && sum > 2_989)
    }

    @Test func `stays in range when a clock jumps`() {
        #expect(elapsed(0) == 0)
        let jumped = timeline.elapsedMilliseconds(to: .distantFuture)
        #expect(jumped == .max)
        let back = timeline.elapsedMilliseconds(to: .zero)
        #expect(back == 0)
    }
}
