import Peer
import TestSupport
import Testing

@Suite final class `A sequence window` {
    var window = SequenceWindow()

    @discardableResult
    func insert(_ number: UInt16, isRetransmission: Bool = false) -> SequenceWindow.Place {
        window.insert(number, isRetransmission: isRetransmission)
    }

    @Test func `lets the first number stand for itself`() {
        #expect(insert(65_000) == .ahead(65_000, missing: 0))
        #expect(window.highest == 65_000)
        #expect(window.lowest == 65_000)
    }

    @Test func `counts the numbers left out`() {
        insert(10)
        #expect(insert(11) == .ahead(11, missing: 0))
        #expect(insert(15) == .ahead(15, missing: 3))
    }

    @Test func `goes on above 65535`() {
        insert(65_534)
        #expect(insert(1) == .ahead(65_537, missing: 2))
        #expect(insert(65_535) == .late(65_535))
        #expect(insert(0) == .late(65_536))
        #expect(insert(0) == .duplicate(65_536))
    }

    @Test func `knows duplicates as far back as its capacity`() {
        insert(0)
        for number in UInt16(1)...3_000 { insert(number) }
        let oldest = UInt16(3_000 - SequenceWindow.capacity + 1)
        #expect(insert(oldest) == .duplicate(Int64(oldest)))
        #expect(insert(oldest - 1) == .tooOld)
    }

    @Test func `forgets what it saw a round earlier at the same place`() {
        insert(0)
        insert(100)
        insert(2_047)
        #expect(insert(2_149) == .ahead(2_149, missing: 101))
        #expect(insert(2_148) == .late(2_148))
    }

    @Test func `takes numbers from before the first one as part of the stream`() {
        insert(100)
        #expect(insert(98) == .late(98))
        #expect(window.lowest == 98)
    }

    @Test func `goes below zero when the very first packets come out of order`() {
        insert(1)
        #expect(insert(65_535) == .late(-1))
    }

    @Test func `believes a jump forward at once and counts no loss`() {
        insert(10)
        #expect(insert(10 + 3_001) == .ahead(3_011, missing: 3_000))
        #expect(insert(3_011 + 3_002) == .jumped(6_013))
        #expect(window.lowest == 6_013)
    }

    @Test func `believes a restart when the next packet confirms it`() {
        insert(40_000)
        #expect(insert(20_000) == .tooOld)
        #expect(insert(20_002) == .tooOld)
        #expect(insert(20_003) == .jumped(65_536 + 20_003))
        #expect(insert(20_004) == .ahead(65_536 + 20_004, missing: 0))
    }

    @Test func `forgets a suspected restart when the stream goes on`() {
        insert(40_000)
        insert(20_000)
        insert(40_001)
        #expect(insert(20_001) == .tooOld)
    }

    @Test func `never restarts or jumps for a retransmission`() {
        insert(40_000)
        for number in UInt16(20_000)..<20_010 {
            #expect(insert(number, isRetransmission: true) == .tooOld)
        }
        #expect(insert(40_000 + 3_001, isRetransmission: true) == .tooOld)
        #expect(insert(40_003, isRetransmission: true) == .ahead(40_003, missing: 2))
    }

    /// Whatever comes, an accepted number has the low bits on the wire, and none is accepted twice.
    @Test(arguments: 0..<20) func `holds its promises for any numbers`(seed: UInt64) {
        var window = SequenceWindow()
        var random = SeededGenerator(seed: seed)
        var accepted: Set<Int64> = []
        var number: UInt16 = 0
        for _ in 0..<2_000 {
            number =
                switch Int.random(in: 0..<20, using: &random) {
                case 0: UInt16.random(in: 0...UInt16.max, using: &random)
                case 1..<6: number &- UInt16.random(in: 0..<50, using: &random)
                default: number &+ UInt16.random(in: 0..<4, using: &random)
                }
            let highest = window.highest ?? .min
            switch window.insert(number, isRetransmission: Bool.random(using: &random)) {
            case .ahead(let index, let missing):
                #expect(accepted.insert(index).inserted)
                #expect(index > highest)
                #expect(missing == 0 || index - Int64(missing) - 1 == highest)
                #expect(UInt16(truncatingIfNeeded: index) == number)
            case .jumped(let index):
                #expect(accepted.insert(index).inserted)
                #expect(index > highest)
                #expect(UInt16(truncatingIfNeeded: index) == number)
            case .late(let index):
                #expect(accepted.insert(index).inserted)
                #expect(index < highest)
                #expect(UInt16(truncatingIfNeeded: index) == number)
            case .duplicate(let index):
                #expect(accepted.contains(index))
                #expect(UInt16(truncatingIfNeeded: index) == number)
            case .tooOld: break
            }
        }
    }
}
