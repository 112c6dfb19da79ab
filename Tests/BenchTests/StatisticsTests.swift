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

    @Test func `of a single value are that value`() {
        #expect(Quantiles([3])?.p99 == 3)
        #expect(Quantiles([]) == nil)
    }
}
