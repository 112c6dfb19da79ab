import Base
import TestSupport
import Testing

@testable import Transcoder

@Suite struct `An input's clock` {
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    @Test func `goes by the fastest packet until the sender tells`() {
        var clock = InputClock(rate: 90_000)
        clock.note(0, epoch: 1, arrival: start + .milliseconds(80), captured: nil)
        clock.note(9_000, epoch: 1, arrival: start + .milliseconds(120), captured: nil)
        #expect(clock.time(of: clock.ticks(of: 9_000)) == start + .milliseconds(120))
        #expect(!clock.isCertain)
        clock.note(
            18_000, epoch: 1, arrival: start + .milliseconds(300), captured: start + .milliseconds(200))
        #expect(clock.isCertain)
        #expect(clock.time(of: clock.ticks(of: 9_000)) == start + .milliseconds(100))
    }

    @Test func `follows a sender that drifts without a leap`() {
        var clock = InputClock(rate: 48_000)
        var last = start
        for packet in 0..<3_000 {
            // 200 ppm fast.
            let captured = start + .nanoseconds(Int64(packet) * 19_996_000)
            let timestamp = UInt32(packet * 960)
            clock.note(timestamp, epoch: 1, arrival: captured + .milliseconds(30), captured: captured)
            let time = clock.time(of: clock.ticks(of: timestamp))
            #expect(abs((time - captured).wholeNanoseconds) < 10_000_000)
            if packet > 0 { #expect((18_000_000...21_000_000).contains((time - last).wholeNanoseconds)) }
            last = time
        }
    }

    @Test func `believes no sender who is hours away`() {
        var clock = InputClock(rate: 90_000)
        var random = SeededGenerator(seed: 3)
        for step in 0..<2_000 {
            let arrival = start + .milliseconds(Int64(step) * 10)
            let timestamp = UInt32.random(in: .min ... .max, using: &random)
            let captured =
                step % 3 == 0
                ? MonotonicTime(nanoseconds: Int64.random(in: .min ... .max, using: &random)) : nil
            clock.note(timestamp, epoch: UInt32(step / 100), arrival: arrival, captured: captured)
            let time = clock.time(of: clock.ticks(of: timestamp))
            #expect(abs((time - arrival).wholeNanoseconds) <= 10_000_000_000)
        }
    }

    @Test func `counts on over the wrap of time stamps`() {
        var clock = InputClock(rate: 90_000)
        clock.note(0xFFFF_FF00, epoch: 1, arrival: start, captured: start)
        clock.note(0x0001_5E90, epoch: 1, arrival: start + .seconds(1), captured: nil)
        #expect(clock.ticks(of: 0x0001_5E90) == 0x0001_5F90)
        #expect(clock.ticks(of: 0xFFFF_FF00) == 0)
    }
}
