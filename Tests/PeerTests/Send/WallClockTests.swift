import Base
import Peer
import Testing

@Suite struct `A wall clock` {
    @Test func `counts NTP seconds from 1900`() {
        let clock = WallClock(unixNanoseconds: 0, at: .zero)
        #expect(clock.ntp(at: .zero) == 2_208_988_800 << 32)
        let half: UInt64 = 1 << 31
        #expect(clock.ntp(at: at(1_500)) == 2_208_988_801 << 32 | half)
        #expect(clock.ntp(at: at(-500)) == 2_208_988_799 << 32 | half)
    }

    @Test func `goes on from the instant it was told`() {
        let clock = WallClock(unixNanoseconds: 5_000_000_000, at: at(2_000))
        #expect(clock.ntp(at: at(3_000)) == 2_208_988_806 << 32)
        #expect(clock.compactNTP(at: at(3_250)) == UInt32(truncatingIfNeeded: 2_208_988_806 << 16 | 1 << 14))
    }

    @Test func `wraps with the NTP era`() {
        let clock = WallClock(unixNanoseconds: 2_085_978_496_000_000_000, at: .zero)
        #expect(clock.ntp(at: .zero) == 0)
        #expect(clock.ntp(at: at(-1_000)) == 0xFFFF_FFFF << 32)
    }

    @Test func `finds the round-trip time, over the wrap of compact time too`() throws {
        // Compact time wraps every 65,536 s.
        for start in stride(from: Int64(0), to: 65_536_000 * 2, by: 997_000) {
            let clock = WallClock(unixNanoseconds: 0, at: .zero)
            let echoed = clock.compactNTP(at: at(start))
            let rtt = try #require(clock.roundTripTime(echoed: echoed, delay: 65_536, at: at(start + 1_250)))
            #expect(abs(rtt.wholeNanoseconds - 250_000_000) < 40_000)
        }
    }

    @Test func `a slightly negative round-trip time counts as zero`() {
        let clock = WallClock(unixNanoseconds: 0, at: .zero)
        let echoed = clock.compactNTP(at: at(1_000))
        #expect(clock.roundTripTime(echoed: echoed, delay: 65_536, at: at(1_990)) == .zero)
        #expect(clock.roundTripTime(echoed: echoed, delay: 65_536, at: at(1_980)) == nil)
    }

    @Test func `refuses what cannot be a round-trip time`() {
        let clock = WallClock(unixNanoseconds: 0, at: .zero)
        #expect(clock.roundTripTime(echoed: 0, delay: 0, at: at(1_000)) == nil)
        let echoed = clock.compactNTP(at: at(1_000))
        #expect(clock.roundTripTime(echoed: echoed, delay: 0, at: at(31_000)) != nil)
        #expect(clock.roundTripTime(echoed: echoed, delay: 0, at: at(31_010)) == nil)
    }

    @Test(arguments: [Int64.min, -1, 0, 1, .max]) func `survives the ends of time`(nanoseconds: Int64) {
        let clock = WallClock(unixNanoseconds: .max, at: MonotonicTime(nanoseconds: nanoseconds))
        _ = clock.ntp(at: MonotonicTime(nanoseconds: .max))
        _ = clock.ntp(at: MonotonicTime(nanoseconds: .min))
        _ = NTPInterval.nanoseconds(nanoseconds)
        _ = NTPInterval.compact(nanoseconds: nanoseconds)
        for rate: UInt32 in [0, 1, .max] {
            _ = MediaTicks.ticks(nanoseconds: nanoseconds, clockRate: rate)
            _ = MediaTicks.nanoseconds(ticks: nanoseconds, clockRate: rate)
        }
    }

    @Test func `converts intervals both ways`() {
        #expect(NTPInterval.nanoseconds(3 << 31) == 1_500_000_000)
        #expect(NTPInterval.nanoseconds(-(3 << 31)) == -1_500_000_000)
        #expect(NTPInterval.nanoseconds(compact: 0x1_4000) == 1_250_000_000)
        #expect(NTPInterval.compact(nanoseconds: 1_250_000_000) == 0x1_4000)
        #expect(NTPInterval.compact(nanoseconds: -1) == 0)
        #expect(NTPInterval.compact(nanoseconds: .max) > 0xFFFF_0000)
        #expect(MediaTicks.ticks(nanoseconds: -1_500_000_000, clockRate: 48_000) == -72_000)
        #expect(MediaTicks.nanoseconds(ticks: -72_000, clockRate: 48_000) == -1_500_000_000)
    }
}

@Suite struct `A round-trip time estimator` {
    @Test func `takes the first sample as it is`() {
        var estimator = RTTEstimator()
        #expect(estimator.smoothed == nil)
        estimator.add(.milliseconds(80))
        #expect(estimator.smoothed == .milliseconds(80))
        #expect(estimator.variation == .milliseconds(40))
    }

    @Test func `moves an eighth of the way to each further one`() {
        var estimator = RTTEstimator()
        estimator.add(.milliseconds(80))
        estimator.add(.milliseconds(160))
        #expect(estimator.smoothed == .milliseconds(90))
        #expect(estimator.variation == .milliseconds(50))
        estimator.add(.milliseconds(10))
        #expect(estimator.smoothed == .milliseconds(80))
        #expect(estimator.variation == .microseconds(57_500))
        #expect(estimator.latest == .milliseconds(10))
        #expect(estimator.minimum == .milliseconds(10))
    }

    @Test(arguments: [Duration.nanoseconds(-1), .seconds(31)]) func `drops what cannot be`(sample: Duration) {
        var estimator = RTTEstimator()
        let isTaken = estimator.add(sample)
        #expect(!isTaken)
        #expect(estimator.smoothed == nil)
    }
}
