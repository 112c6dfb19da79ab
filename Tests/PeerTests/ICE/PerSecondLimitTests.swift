import Base
import Testing

@testable import Peer

@Suite struct `A limit of events a second` {
    private var limit = PerSecondLimit(2)

    private mutating func takes(_ milliseconds: Int64...) -> [Bool] {
        var taken: [Bool] = []
        for time in milliseconds { taken.append(limit.take(at: at(time))) }
        return taken
    }

    @Test mutating func `counts from the first event, whatever the clock says`() {
        let first = takes(900, 1_000, 1_500, 1_899)
        #expect(first == [true, true, false, false])
        #expect(limit.next == at(1_900))
        let second = takes(1_900, 1_901, 2_899, 2_900)
        #expect(second == [true, true, false, true])
    }

    @Test mutating func `is not prolonged by what it refuses`() {
        _ = takes(0, 0)
        for time in stride(from: Int64(100), to: 1_000, by: 100) {
            let taken = takes(time)
            #expect(taken == [false])
        }
        let taken = takes(1_000)
        #expect(taken == [true])
    }

    @Test mutating func `says when another event may happen`() {
        #expect(limit.next == .zero)
        _ = takes(500)
        #expect(limit.next == .zero)
        _ = takes(700)
        #expect(limit.next == at(1_500))
        // Long after, it is open again at the first event.
        let late = takes(60_000)
        #expect(late == [true])
        #expect(limit.next == .zero)
    }

    @Test mutating func `begins anew with the first event after a pause, not in step with the old ones`() {
        _ = takes(0)
        let late = takes(1_700, 1_800, 2_100, 2_699, 2_700)
        #expect(late == [true, true, false, false, true])
    }

    @Test mutating func `a limit of zero lets nothing happen`() {
        limit = PerSecondLimit(0)
        let taken = takes(0, 500, 1_000, 10_000)
        #expect(taken == [false, false, false, false])
    }
}
