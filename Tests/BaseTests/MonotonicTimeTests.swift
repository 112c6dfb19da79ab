import Base
import Testing

@Suite struct MonotonicTimes {
    private let start = MonotonicTime(nanoseconds: 1_000)
    private let earliest = MonotonicTime(nanoseconds: .min)

    @Test func `are ordered`() {
        #expect(earliest < .zero)
        #expect(.zero < start)
        #expect(start < .distantFuture)
        #expect(
            [.distantFuture, start, earliest, .zero].sorted() == [earliest, .zero, start, .distantFuture])
    }

    @Test func `move by intervals`() {
        #expect(start + .microseconds(1) == MonotonicTime(nanoseconds: 2_000))
        #expect(start - .microseconds(2) == MonotonicTime(nanoseconds: -1_000))
        #expect(start.advanced(byNanoseconds: -1) == MonotonicTime(nanoseconds: 999))
        #expect((start + .seconds(3)) - start == .seconds(3))
        #expect(start - (start + .milliseconds(7)) == .milliseconds(-7))
        #expect((start + .milliseconds(7)).nanoseconds(since: start) == 7_000_000)
    }

    @Test func `stay at their ends instead of overflowing`() {
        #expect(MonotonicTime.distantFuture + .nanoseconds(1) == .distantFuture)
        #expect(MonotonicTime.distantFuture.advanced(byNanoseconds: .max) == .distantFuture)
        #expect(earliest - .nanoseconds(1) == earliest)
        #expect(earliest.advanced(byNanoseconds: .min) == earliest)
        #expect(MonotonicTime.distantFuture - .seconds(Int64.max) < .distantFuture)
        #expect(start + .seconds(Int64.max) > start)
        #expect(start - .seconds(Int64.min) > start)
        #expect(start + .seconds(Int64.min) < start)
    }

    @Test func `differ by at most what an interval holds`() {
        #expect(MonotonicTime.distantFuture.nanoseconds(since: earliest) == .max)
        #expect(earliest.nanoseconds(since: .distantFuture) == .min)
        #expect(earliest.nanoseconds(since: .zero) == .min)
        #expect(MonotonicTime.zero.nanoseconds(since: earliest) == .max)
        #expect(earliest.nanoseconds(since: earliest) == 0)
        #expect(MonotonicTime.distantFuture - earliest == .nanoseconds(Int64.max))
    }
}

@Suite struct WholeNanoseconds {
    @Test(
        arguments: [
            (Duration.zero, 0), (.nanoseconds(1), 1), (.seconds(-2), -2_000_000_000),
            (.milliseconds(1_500), 1_500_000_000),
            (.nanoseconds(-7), -7), (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0),
        ] as [(Duration, Int64)])
    func `are what an interval has`(interval: Duration, expected: Int64) {
        #expect(interval.wholeNanoseconds == expected)
    }

    @Test func `are clamped to what can still be added and negated`() {
        let most = Duration.seconds(Int64.max).wholeNanoseconds
        let least = Duration.seconds(Int64.min).wholeNanoseconds
        #expect(most > 146 * 365 * 86_400 * 1_000_000_000)
        #expect(least == -most)
        #expect(most.addingReportingOverflow(most).overflow == false)
    }
}
