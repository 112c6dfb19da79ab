import Base
import Glibc
import TestSupport
import Testing

@Suite struct `A point in civil time` {
    /// The same, by the calendar of the C library.
    private static func known(_ milliseconds: Int64) -> String {
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(width - digits.count, 0)) + digits
        }
        let fraction = Int(((milliseconds % 1_000) + 1_000) % 1_000)
        var seconds = time_t((milliseconds - Int64(fraction)) / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let date = "\(padded(Int(parts.tm_year) + 1_900, 4))-\(padded(Int(parts.tm_mon) + 1, 2))"
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded(Int($0), 2) }
        let day = padded(Int(parts.tm_mday), 2)
        return "\(date)-\(day)T\(time.joined(separator: ":")).\(padded(fraction, 3))Z"
    }

    private static let first: Int64 = -62_167_219_200_000
    private static let last: Int64 = 253_402_300_799_999

    @Test func `is written as the calendar has it, from year 0 to 9999`() {
        var random = SeededGenerator(seed: 3_339)
        let some = (0..<3_000).map { _ in Int64.random(in: Self.first...Self.last, using: &random) }
        for time in [Self.first, Self.last, -1, 0, 1, -86_400_000, -86_400_001, 951_782_399_999] + some {
            #expect(WallTime(milliseconds: time).text == Self.known(time), "\(time)")
        }
    }

    /// The days around each end of February, where calendars go wrong.
    @Test(arguments: [1_600, 1_700, 1_900, 1_970, 1_972, 2_000, 2_024, 2_100, 2_400])
    func `knows which years have a leap day`(year: Int) {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (CInt(year - 1_900), 1, 27)
        let start = Int64(timegm(&parts)) * 1_000
        for day in 0..<4 as Range<Int64> {
            for offset in [0, 86_399_999] as [Int64] {
                let time = start + day * 86_400_000 + offset
                #expect(WallTime(milliseconds: time).text == Self.known(time))
            }
        }
    }

    @Test func `is shown as the first or the last of those years where it lies outside`() {
        for time in [Int64.min, Self.first - 1] {
            #expect(WallTime(milliseconds: time).text == "0000-01-01T00:00:00.000Z")
        }
        for time in [Int64.max, Self.last + 1, WallTime.latest.milliseconds] {
            #expect(WallTime(milliseconds: time).text == "9999-12-31T23:59:59.999Z")
        }
    }

    @Test func `moves by seconds, and stays at its ends`() {
        let start = WallTime(milliseconds: 1_500)
        #expect(start.advanced(bySeconds: 2) == WallTime(milliseconds: 3_500))
        #expect(start.advanced(bySeconds: -2) == WallTime(milliseconds: -500))
        #expect(start.advanced(bySeconds: .max).milliseconds == .max)
        #expect(start.advanced(bySeconds: .min).milliseconds == .min)
        #expect(WallTime(milliseconds: .max).advanced(bySeconds: 1).milliseconds == .max)
        #expect(WallTime(milliseconds: .min).advanced(bySeconds: -1).milliseconds == .min)
        #expect(WallTime(milliseconds: .max - 999).advanced(bySeconds: 1).milliseconds == .max)
    }

    @Test func `has a time on the other clock, whatever it is`() {
        let moment = Moment(elapsed: MonotonicTime(nanoseconds: 5_000), wall: WallTime(milliseconds: 1_000))
        #expect(moment.elapsed(at: WallTime(milliseconds: 1_000)) == moment.elapsed)
        #expect(moment.elapsed(at: WallTime(milliseconds: 1_002)).nanoseconds == 2_005_000)
        #expect(moment.elapsed(at: WallTime(milliseconds: 998)).nanoseconds == -1_995_000)
        #expect(moment.elapsed(at: WallTime(milliseconds: .max)) == .distantFuture)
        #expect(moment.elapsed(at: .latest) == .distantFuture)
        // What lies too far back to be said is over.
        #expect(moment.elapsed(at: WallTime(milliseconds: .min)) == moment.elapsed)
        let early = Moment(elapsed: .zero, wall: WallTime(milliseconds: .min))
        #expect(early.elapsed(at: WallTime(milliseconds: .max)) == .distantFuture)
    }
}
