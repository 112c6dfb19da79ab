import Base
import Testing

@testable import Transcoder

@Suite struct `Corrections of an input's clock` {
    private static let start = MonotonicTime(nanoseconds: 20_000_000_000)
    private var clock = InputClock(rate: 48_000)

    /// Brings a packet of 20 ms.
    /// - Parameters:
    ///   - number: from 0, which was captured at the start.
    ///   - error: how much later its sender says that it was captured, in nanoseconds.
    /// - Returns: when the clock says that the first one was captured, in nanoseconds after the start.
    private mutating func bring(_ number: Int, error: Int64, epoch: UInt32 = 1) -> Int64 {
        let captured = (Self.start + .milliseconds(number * 20)).advanced(byNanoseconds: error)
        clock.note(
            UInt32(number * 960), epoch: epoch, arrival: captured + .milliseconds(30), captured: captured)
        return first
    }

    /// When the clock says that the first packet was captured, in nanoseconds after the start.
    private var first: Int64 { clock.time(of: clock.ticks(of: 0)).nanoseconds(since: Self.start) }

    @Test mutating func `are of half a millisecond for more than five, in both directions`() {
        let found = [
            bring(0, error: 0), bring(1, error: 5_000_000), bring(2, error: 5_000_001),
            bring(3, error: 5_500_001), bring(4, error: -4_000_000), bring(5, error: -4_000_001),
        ]
        #expect(found == [0, 0, 500_000, 1_000_000, 1_000_000, 500_000])
    }

    @Test mutating func `are whole for more than half a second, in both directions`() {
        let later = [bring(0, error: 0), bring(1, error: 500_000_000), bring(2, error: 500_500_001)]
        #expect(later == [0, 500_000, 500_500_001])
        let earlier = [bring(3, error: 500_001), bring(4, error: -1_000_000)]
        #expect(earlier == [500_000_001, -1_000_000])
    }

    @Test mutating func `come of packets alone that say when they were captured, once one does`() {
        _ = bring(0, error: 0)
        // It came sooner than any before.
        clock.note(960, epoch: 1, arrival: Self.start + .milliseconds(1), captured: nil)
        #expect(first == 0 && clock.isCertain)
        // Whoever is said to be of ten seconds ago is believed, and nobody else.
        clock.note(
            1_920, epoch: 1, arrival: Self.start + .milliseconds(40) + .seconds(10),
            captured: Self.start + .milliseconds(46))
        #expect(first == 500_000)
        clock.note(
            2_880, epoch: 1, arrival: Self.start + .milliseconds(60) + .seconds(5),
            captured: Self.start - .seconds(5))
        #expect(first == 500_000)
    }

    @Test mutating func `do not come of what is behind, of which the ticks go on`() {
        _ = bring(5, error: 0)
        _ = bring(2, error: 0)
        _ = bring(6, error: 0)
        let ticks = [2, 5, 6].map { clock.ticks(of: UInt32($0 * 960)) }
        #expect(ticks == [-2_880, 0, 960] && first == 0)
    }

    @Test mutating func `are none with another source, whose clock is another one`() {
        let early = clock.isNew(1)
        _ = bring(0, error: 0)
        let others = [clock.isNew(1), clock.isNew(2)]
        #expect(!early && others == [false, true])
        let other = bring(0, error: 70_000_000, epoch: 2)
        #expect(other == 70_000_000)
        // As where an input takes the place of another one, with the same epoch.
        clock.forget()
        let again = clock.isNew(2)
        clock.note(777_777, epoch: 2, arrival: Self.start + .seconds(5), captured: nil)
        #expect(!again && !clock.isCertain)
        #expect(clock.ticks(of: 777_777) == 0 && clock.time(of: 0) == Self.start + .seconds(5))
    }
}
