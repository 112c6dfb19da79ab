import Base
import Peer
import TestSupport
import Testing

@Suite struct `A source clock` {
    /// NTP of so many milliseconds, close enough for tests that look at milliseconds.
    static func ntp(_ milliseconds: Int64) -> UInt64 {
        UInt64(milliseconds) * (1 << 32) / 1_000
    }

    @Test func `knows nothing before the first report`() {
        #expect(SourceClock().time(ofNTP: 1 << 32) == nil)
    }

    @Test func `keeps the shortest delay it saw`() throws {
        var clock = SourceClock()
        clock.observe(ntp: Self.ntp(10_000), at: at(1_080))
        clock.observe(ntp: Self.ntp(11_000), at: at(2_020))
        let time = try #require(clock.time(ofNTP: Self.ntp(11_000)))
        #expect(abs(time.nanoseconds(since: at(2_020))) < 1_000)
        clock.observe(ntp: Self.ntp(12_000), at: at(3_084))
        let later = try #require(clock.time(ofNTP: Self.ntp(12_000)))
        #expect(abs(later.nanoseconds(since: at(3_021))) < 10_000)
    }

    @Test func `follows a clock that runs slow`() throws {
        var clock = SourceClock()
        for second in Int64(0)..<1_000 {
            // 100 parts in a million slow: 100 ms in 1,000 s.
            clock.observe(ntp: Self.ntp(second * 1_000), at: at(second * 1_000 + second / 10))
        }
        let time = try #require(clock.time(ofNTP: Self.ntp(999_000)))
        #expect(abs(time.nanoseconds(since: at(999_099))) < 10_000_000)
    }

    @Test func `follows a clock that was set`() {
        var clock = SourceClock()
        clock.observe(ntp: Self.ntp(10_000), at: at(1_000))
        clock.observe(ntp: Self.ntp(3_000_000), at: at(2_000))
        #expect(clock.time(ofNTP: Self.ntp(3_000_000)) == at(2_000))
        clock.observe(ntp: Self.ntp(5_000), at: at(3_000))
        #expect(clock.time(ofNTP: Self.ntp(5_000)) == at(3_000))
    }

    @Test func `goes on over the end of an NTP era`() {
        var clock = SourceClock()
        clock.observe(ntp: .max << 32, at: at(1_000))
        #expect(clock.time(ofNTP: 1 << 32) == at(3_000))
    }
}
