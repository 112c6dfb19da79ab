import Peer
import TestSupport
import Testing

@Suite struct `Numbers that left` {
    private var departed = DepartedNumbers()

    @Test mutating func `numbers that were sent are told from those that never were`() {
        for number: Int64 in [100, 101, 104, 105, 103] { departed.note(number) }
        #expect(departed.missing(of: 6, through: 105) == 1)
        #expect(departed.missing(of: 2, through: 105) == 0)
        #expect(departed.missing(of: 1, through: 102) == 1)
        departed.note(102)
        #expect(departed.missing(of: 6, through: 105) == 0)
    }

    @Test mutating func `nothing is missing before the first and after the last number`() {
        #expect(departed.missing(of: 10, through: 5) == 0)
        departed.note(70_000)
        #expect(departed.missing(of: 1_000, through: 4_464) == 0, "nothing was to leave before")
        #expect(departed.missing(of: 10, through: 4_465) == 0, "it did not leave yet")
        #expect(departed.missing(of: .max, through: 0) == 0)
        #expect(departed.missing(of: -1, through: 0) == 0)
    }

    @Test mutating func `numbers are forgotten after some thousands, and after a leap`() {
        departed.note(1)
        departed.note(3)
        for number: Int64 in 4..<4_096 { departed.note(number) }
        #expect(departed.missing(of: 4_096, through: 4_095) == 1)
        for number: Int64 in 4_096..<4_200 { departed.note(number) }
        #expect(departed.missing(of: 9_000, through: 4_199) == 0)
        departed.note(20_000)
        #expect(departed.missing(of: 5_000, through: 20_000) == DepartedNumbers.limit - 1)
        departed.note(4_200)
        #expect(departed.missing(of: 5_000, through: 20_000) == DepartedNumbers.limit - 1)
    }

    @Test mutating func `the numbers agree with a plain set`() {
        var random = SeededGenerator(seed: 1)
        var left: Set<Int64> = []
        var next: Int64 = 65_000
        departed.note(next)
        left.insert(next)
        for _ in 0..<2_000 {
            next += Int64.random(in: 1...3, using: &random)
            let late = max(next - Int64.random(in: 0...50, using: &random), 65_000)
            for number in [next, late] {
                departed.note(number)
                left.insert(number)
            }
            let count = Int.random(in: 1...500, using: &random)
            let start = max(next - Int64(count) + 1, 65_000)
            #expect(
                departed.missing(of: count, through: UInt16(truncatingIfNeeded: next))
                    == (start...next).count { !left.contains($0) })
        }
    }
}
