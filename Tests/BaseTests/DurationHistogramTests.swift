import Base
import Testing

@Suite struct `A histogram of durations` {
    @Test func `counts each duration in every bucket whose bound it does not exceed`() {
        var histogram = DurationHistogram(.packets)
        histogram.add(10_000)
        histogram.add(10_001)
        histogram.add(999_000_000, times: 5)
        let buckets = histogram.cumulative
        #expect(buckets.count == DurationHistogram.bucketCount)
        #expect(buckets.map(\.count) == [1, 2] + Array(repeating: 2, count: 13) + [7])
        #expect(buckets.first?.seconds == 1e-5)
        #expect(buckets.last?.seconds == 1)
        #expect(histogram.count == 7)
        #expect(histogram.nanoseconds == 20_001 + 5 * 999_000_000)
    }

    @Test func `counts what is beyond its bounds in none of them`() {
        var histogram = DurationHistogram(.joins)
        histogram.add(30_000_000_001)
        #expect(histogram.cumulative.allSatisfy { $0.count == 0 })
        #expect(histogram.count == 1)
    }

    @Test func `takes durations below nothing for nothing, and none for none`() {
        var histogram = DurationHistogram(.joins)
        histogram.add(-5)
        histogram.add(.min, times: 2)
        histogram.add(.max)
        histogram.add(7, times: 0)
        #expect(histogram.count == 4)
        #expect(histogram.cumulative.first?.count == 3)
    }

    @Test(arguments: [DurationHistogram.Scale.packets, .joins])
    func `has bounds that grow`(_ scale: DurationHistogram.Scale) {
        let bounds = DurationHistogram(scale).cumulative.map(\.seconds)
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `adds up`() {
        var first = DurationHistogram(.packets)
        var second = first
        for duration in stride(from: Int64(1_000), to: 900_000, by: 7_919) { first.add(duration) }
        for duration in stride(from: Int64(900_000), to: 90_000_000, by: 791_919) { second.add(duration) }
        var all = first
        all.add(second)
        #expect(all != first)
        #expect(all.count == first.count + second.count)
        #expect(all.nanoseconds == first.nanoseconds + second.nanoseconds)
        let sums = zip(first.cumulative, second.cumulative).map { $0.count + $1.count }
        #expect(all.cumulative.map(\.count) == sums)
    }
}
