import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `A histogram` {
    @Test func `knows every quantile to within two percent`() {
        var random = SeededGenerator(seed: 7)
        var histogram = LogHistogram()
        let values = (0..<20_000).map { _ in
            Int64.random(in: 1...1 << Int64.random(in: 1...36, using: &random), using: &random)
        }
        for value in values { histogram.add(value) }
        let sorted = values.sorted()
        for quantile in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1] {
            let exact = Double(sorted[Int((quantile * 20_000).rounded(.up)) - 1])
            let found = Double(histogram.quantile(quantile) ?? -1)
            #expect(abs(found - exact) <= exact * 0.02 + 0.5)
        }
        let mean = values.map(Double.init).reduce(0, +) / 20_000
        #expect(abs(histogram.mean - mean) < 1)
    }

    @Test func `has nothing to say when empty`() {
        #expect(LogHistogram().quantile(0.5) == nil)
        #expect(LogHistogram().maximum == nil)
        #expect(Quantiles(milliseconds: LogHistogram()) == nil)
    }

    @Test func `counts values out of range at its ends`() {
        var histogram = LogHistogram()
        histogram.add(-5)
        histogram.add(.max)
        #expect(histogram.quantile(0.5) == 0)
        #expect((histogram.maximum ?? 0) > 4_000_000_000_000)
    }

    @Test func `tells what came since an earlier copy`() {
        var histogram = LogHistogram()
        for value in 1...100 { histogram.add(Int64(value)) }
        let earlier = histogram
        for _ in 0..<50 { histogram.add(5_000_000) }
        let interval = histogram.since(earlier)
        #expect(interval.count == 50)
        #expect(abs(Double(interval.quantile(0.01) ?? 0) - 5_000_000) < 100_000)
        var sum = earlier
        sum.add(interval)
        #expect(sum.count == histogram.count)
        #expect(sum.quantile(0.9) == histogram.quantile(0.9))
    }

    private func counting(_ values: [Int64]) -> LogHistogram {
        var result = LogHistogram()
        for value in values { result.add(value) }
        return result
    }

    @Test func `knows small values exactly`() {
        for value in 0..<Int64(128) {
            let one = counting([value])
            #expect(one.quantile(0.5) == value && one.maximum == value)
        }
    }

    /// A value on the edge of a bucket must not fall into the bucket of another doubling.
    @Test(arguments: 7..<42) func `has no gap where its buckets grow`(bits: Int) {
        let edge = Int64(1) << Int64(bits)
        for value in [edge - 1, edge, edge + 1, edge + edge / 2, 2 * edge - 1] where value < 1 << 42 {
            let found = counting([value]).quantile(1) ?? -1
            #expect(abs(found - value) <= value / 64, "\(value) became \(found)")
        }
        let both = counting([edge - 1, edge])
        #expect(both.cumulative.map(\.share) == [0.5, 1])
    }

    @Test func `keeps all that is longer than an hour in one place`() {
        let all = counting([1 << 42, 1 << 50, .max])
        #expect(all.cumulative.count == 1)
        #expect(all.quantile(0) == all.quantile(1))
    }

    @Test func `has the least and the greatest value at its ends`() {
        let values = counting([3, 10, 100, 5_000])
        #expect(values.quantile(0) == 3)
        #expect(values.quantile(0.25) == 3)
        #expect(values.quantile(0.26) == 10)
        #expect(values.quantile(0.75) == 100)
        #expect(values.quantile(1) == values.maximum)
    }

    @Test func `has the mean of the values themselves`() {
        #expect(LogHistogram().mean == 0)
        let values = counting([1_000_001, 3_000_003])
        #expect(values.mean == 2_000_002)
        var more = values
        more.add(8_000_000)
        #expect(more.since(values).mean == 8_000_000)
    }

    /// Its buckets have 32 bits: a run of days may overflow them.
    @Test func `tells what came since an earlier copy even if a bucket overflowed in between`() {
        var total = counting([77])
        for _ in 0..<31 {
            let half = total
            total.add(half)
        }
        #expect(total.count == 1 << 31)
        let earlier = total
        total.add(earlier)
        #expect(total.count == 1 << 32)
        let interval = total.since(earlier)
        #expect(interval.count == 1 << 31)
        #expect(interval.quantile(0.5) == 77 && interval.maximum == 77)
    }

    @Test func `is empty again when nothing came`() {
        let values = counting([5, 6])
        let nothing = values.since(values)
        #expect(nothing.isEmpty && nothing.quantile(0.5) == nil && nothing.maximum == nil)
        #expect(nothing.cumulative.isEmpty && Quantiles(milliseconds: nothing) == nil)
        var sum = values
        sum.add(LogHistogram())
        #expect(sum == values)
    }

    @Test func `is told in milliseconds`() throws {
        let found = try #require(Quantiles(milliseconds: counting([1_000_000])))
        #expect(found.count == 1 && abs(found.p50 - 1) < 0.016)
        #expect(found.p50 == found.p95 && found.p95 == found.p99 && found.p99 == found.maximum)
    }

    @Test func `adds up to one in its cumulative form`() {
        var histogram = LogHistogram()
        for value in stride(from: Int64(0), to: 9_000, by: 7) { histogram.add(value) }
        let points = histogram.cumulative
        #expect(points.last?.share == 1)
        #expect(zip(points, points.dropFirst()).allSatisfy { $0.value < $1.value && $0.share < $1.share })
    }
}

@Suite struct `Quantiles of values` {
    @Test func `are values that occurred`() {
        let quantiles = Quantiles((1...200).map(Double.init).shuffled())
        #expect(quantiles?.p50 == 100)
        #expect(quantiles?.p95 == 190)
        #expect(quantiles?.p99 == 198)
        #expect(quantiles?.maximum == 200)
        #expect(quantiles?.count == 200)
    }

    @Test func `of two values are the lesser up to the half, and the greater beyond`() throws {
        let found = try #require(Quantiles([9, -4]))
        #expect([found.p50, found.p95, found.p99, found.maximum] == [-4, 9, 9, 9])
    }

    /// The rank is the least whole number that is not below the share, as whole numbers have it.
    @Test func `have the rank that the definition says, however many values there are`() {
        for count in 1...2_000 {
            let found = Quantiles((1...count).map(Double.init))
            #expect(found?.p50 == Double((count + 1) / 2))
            #expect(found?.p95 == Double((95 * count + 99) / 100))
            #expect(found?.p99 == Double((99 * count + 99) / 100))
        }
    }

    @Test func `show a rare long time only where it belongs`() throws {
        let found = try #require(Quantiles([Double](repeating: 1, count: 99) + [1_000]))
        #expect([found.p50, found.p95, found.p99, found.maximum] == [1, 1, 1, 1_000])
        let more = try #require(Quantiles([Double](repeating: 1, count: 98) + [1_000, 2_000]))
        #expect([more.p95, more.p99, more.maximum] == [1, 1_000, 2_000])
    }

    @Test func `of a single value are that value`() {
        #expect(Quantiles([3])?.p99 == 3)
        #expect(Quantiles([]) == nil)
    }
}
