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

    @Test mutating func `packets do not wait while the worker is idle`() {
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
        #expect(patience.longestWait(at: now) == Patience.usual)
        send((Patience.heavyRate + Patience.fullRate) / 2)
        #expect(patience.longestWait(at: now) > Patience.usual)
        #expect(patience.longestWait(at: now) < Patience.longest)
        send(1_000_000)
        #expect(patience.longestWait(at: now) == Patience.longest)
    }

    /// Sends so many packets in each of many windows.
    private mutating func fill(windowsWith packets: Int) {
        for _ in 0..<20 {
            now = MonotonicTime(nanoseconds: ((now.nanoseconds >> 26) + 1) << 26)
            patience.add(packets, at: now)
        }
    }

    /// The average is rounded down to whole packets, so it is one below what is sent.
    @Test mutating func `waiting begins and reaches its usual length at the named rates`() {
        // 15,000 and 45,000 packets a second are 1,006.6 and 3,019.9 in a window.
        fill(windowsWith: 1_000)
        #expect(patience.longestWait(at: now) == 0)
        fill(windowsWith: 1_030)
        #expect(patience.longestWait(at: now) > 0)
        fill(windowsWith: 3_000)
        #expect(patience.longestWait(at: now) < Patience.usual)
        fill(windowsWith: 3_030)
        #expect(patience.longestWait(at: now) == Patience.usual)
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

@Suite struct `The packets of a frame` {
    private static let wait = Patience.usual
    private var span = FrameSpan()
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)

    /// Lets frames come in bursts 5 ms apart, of two packets each, but for the last one.
    /// - Returns: when the last of them began.
    @discardableResult
    private mutating func receive(frames: Int, bursts: Int, ends: Bool = true) -> MonotonicTime {
        var start = now
        for frame in 0..<frames {
            start = now
            for burst in 0..<bursts {
                let isLast = burst == bursts - 1
                span.note(marker: isLast && (ends || frame < frames - 1), at: now)
                if !isLast { now = now + .milliseconds(5) }
            }
            guard ends || frame < frames - 1 else { break }
            now = start + .milliseconds(33)
        }
        return start
    }

    @Test mutating func `wait as long as others where they come in time`() {
        receive(frames: 20, bursts: 2)
        span.note(marker: false, at: now)
        #expect(span.dueTime(since: now, longestWait: Self.wait) == now.advanced(byNanoseconds: Self.wait))
    }

    @Test mutating func `leave burst by burst so that only the first message is short`() {
        receive(frames: 20, bursts: 3)
        let start = receive(frames: 1, bursts: 1, ends: false)
        let due = span.dueTime(since: start, longestWait: Self.wait)
        #expect(due == start.advanced(byNanoseconds: FrameSpan.gap))
        // The second message waits for the third burst.
        let second = start + .milliseconds(5)
        span.note(marker: false, at: second)
        #expect(
            span.dueTime(since: second, longestWait: Self.wait) == second.advanced(byNanoseconds: Self.wait))
    }

    @Test mutating func `that trickle in keep a burst open, but not for longer than packets wait`() {
        receive(frames: 20, bursts: 3)
        let start = now
        for step in 0..<8 {
            let at = start + .milliseconds(step)
            span.note(marker: false, at: at)
            let due = span.dueTime(since: start, longestWait: Self.wait)
            #expect(
                due
                    == min(
                        at.advanced(byNanoseconds: FrameSpan.gap), start.advanced(byNanoseconds: Self.wait)))
        }
    }

    @Test mutating func `leave after a key frame as they did before`() {
        receive(frames: 20, bursts: 3)
        receive(frames: 1, bursts: 6)
        let start = receive(frames: 1, bursts: 1, ends: false)
        let due = span.dueTime(since: start, longestWait: Self.wait)
        #expect(due == start.advanced(byNanoseconds: FrameSpan.gap))
    }

    @Test mutating func `of four bursts leave two by two`() {
        receive(frames: 20, bursts: 4)
        let start = receive(frames: 1, bursts: 1, ends: false)
        #expect(
            span.dueTime(since: start, longestWait: Self.wait) == start.advanced(byNanoseconds: Self.wait))
    }

    @Test mutating func `leave at once while the worker is idle`() {
        receive(frames: 20, bursts: 3)
        let start = receive(frames: 1, bursts: 1, ends: false)
        #expect(span.dueTime(since: start, longestWait: 0) == start)
    }

    @Test mutating func `survive a source that pauses, and a clock that goes back`() {
        receive(frames: 3, bursts: 3, ends: false)
        now = now + .seconds(3_600)
        span.note(marker: true, at: now)
        #expect(span.usual <= 100_000_000)
        now = MonotonicTime(nanoseconds: 0)
        span.note(marker: false, at: now)
        span.note(marker: true, at: now)
        #expect(span.usual >= 0)
    }
}
