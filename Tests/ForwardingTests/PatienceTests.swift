import Base
import Testing

@testable import Forwarding

@Suite struct `The patience of packets` {
    private var patience = Patience()
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)

    /// Sends so many packets a second for a second.
    private mutating func send(_ rate: Int) {
        for _ in 0..<100 {
            now = now.advanced(byNanoseconds: 10_000_000)
            patience.add(rate / 100, at: now)
        }
    }

    @Test mutating func `is none while the worker is idle`() {
        #expect(patience.longestWait(at: now) == 0)
        send(Patience.idleRate / 2)
        #expect(patience.longestWait(at: now) == 0)
    }

    @Test mutating func `grows with the load up to a bound`() {
        var last: Int64 = 0
        for rate in [20_000, 28_000, 36_000] {
            send(rate)
            let wait = patience.longestWait(at: now)
            #expect(wait > last)
            last = wait
        }
        send(Patience.busyRate * 2)
        #expect(patience.longestWait(at: now) == Patience.longest)
        send(1_000_000)
        #expect(patience.longestWait(at: now) == Patience.longest)
    }

    @Test mutating func `ends with the load`() {
        send(100_000)
        now = now.advanced(byNanoseconds: 150_000_000)
        #expect(patience.longestWait(at: now) == 0)
    }

    @Test mutating func `survives a clock that stands still or goes back`() {
        send(100_000)
        let wait = patience.longestWait(at: now)
        #expect(patience.longestWait(at: now) == wait)
        #expect(patience.longestWait(at: MonotonicTime(nanoseconds: .min)) == 0)
        patience.add(1_000, at: MonotonicTime(nanoseconds: .max))
        #expect(patience.longestWait(at: MonotonicTime(nanoseconds: .max)) == 0)
    }
}
