import Base
import Peer
import TestSupport
import Testing

@Suite final class `A rate meter` {
    var meter = RateMeter()

    func bytes(at milliseconds: Int64) -> Int { meter.bytes(at: at(milliseconds)) }

    func bitrate(at milliseconds: Int64) -> Int { meter.bitrate(at: at(milliseconds)) }

    @Test func `begins with nothing`() {
        #expect(bytes(at: 0) == 0)
        #expect(bitrate(at: 0) == 0)
    }

    @Test func `forgets after about a second`() {
        meter.add(500, at: at(0))
        #expect(bytes(at: 1_000) == 500)
        #expect(bytes(at: 1_080) == 0)
        #expect(bitrate(at: 5_000) == 0)
    }

    @Test func `is right soon after its start and long after`() {
        for time in Int64(0)..<10_000 {
            meter.add(125, at: at(time))
            guard time >= 200 else { continue }
            #expect(abs(bitrate(at: time) - 1_000_000) < 20_000)
        }
    }

    @Test func `one packet does not count as a high rate`() {
        meter.add(1_250, at: at(0))
        #expect(bitrate(at: 0) == 100_000)
    }

    @Test func `a time before the last one counts as the last one`() {
        meter.add(100, at: at(5_000))
        meter.add(100, at: at(10))
        #expect(bytes(at: 10) == 200)
        #expect(bytes(at: 5_500) == 200)
    }

    @Test(arguments: 0..<10) func `agrees with a list of all packets`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var packets: [(time: Int64, size: Int)] = []
        var now: Int64 = Int64.random(in: -5_000_000_000...5_000_000_000, using: &random)
        for _ in 0..<1_000 {
            let pause = Int.random(in: 0..<200, using: &random) == 0
            now += Int64.random(in: 0...(pause ? 3_000_000_000 : 10_000_000), using: &random)
            let size = Int.random(in: 0...1_500, using: &random)
            meter.add(size, at: MonotonicTime(nanoseconds: now))
            packets.append((now, size))
            let start = ((now >> 26) - 15) << 26
            let expected = packets.reversed().prefix { $0.time >= start }.reduce(0) { $0 + $1.size }
            #expect(meter.bytes(at: MonotonicTime(nanoseconds: now)) == expected)
        }
    }

    @Test func `survives absurd times and sizes`() {
        for time in [Int64.max, .min, 0, .max] {
            meter.add(.max, at: MonotonicTime(nanoseconds: time))
            meter.add(-1, at: MonotonicTime(nanoseconds: time))
            #expect(meter.bitrate(at: MonotonicTime(nanoseconds: time)) >= 0)
        }
    }
}
