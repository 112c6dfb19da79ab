import Base
import Testing

@testable import Net

@Suite struct `A gauge of load` {
    private var gauge = LoadGauge(at: .zero)
    private var datagrams: UInt64 = 0

    /// Lets datagrams come, and looks at the end of a window.
    /// - Returns: whether that is load.
    private mutating func window(_ number: Int64, _ count: UInt64) -> Bool {
        datagrams += count
        gauge.note(datagrams: datagrams, at: MonotonicTime(nanoseconds: number * 50_000_000))
        return gauge.isUnderLoad
    }

    @Test mutating func `tells of more than 20,000 datagrams a second`() {
        #expect(!gauge.isUnderLoad)
        #expect(!window(1, 1_000))
        #expect(window(2, 1_001))
    }

    @Test mutating func `looks at whole windows only`() {
        gauge.note(datagrams: 5_000, at: MonotonicTime(nanoseconds: 49_999_999))
        #expect(!gauge.isUnderLoad)
        gauge.note(datagrams: 5_000, at: MonotonicTime(nanoseconds: 50_000_000))
        #expect(gauge.isUnderLoad)
    }

    @Test mutating func `takes load for over after a second without it`() {
        #expect(window(1, 5_000))
        for number in 2..<21 { #expect(window(Int64(number), 1_000)) }
        #expect(!window(21, 1_000))
        #expect(window(22, 5_000))
    }

    /// Fifteen frames a second leave windows without any.
    @Test mutating func `takes bursts for one load`() {
        #expect(window(1, 2_000))
        for number in 2..<100 { #expect(window(Int64(number), number.isMultiple(of: 4) ? 0 : 1_500)) }
    }
}
