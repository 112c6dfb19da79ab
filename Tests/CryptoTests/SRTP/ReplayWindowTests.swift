import TestSupport
import Testing

@testable import Crypto

/// - Source: RFC 3711 §3.3.1, §3.3.2, Appendix A.
@Suite struct `A replay window` {
    /// The index that Appendix A guesses, in its own words; nil if it lies before the first packet of all.
    private static func guess(_ number: UInt16, highest: UInt64) -> UInt64? {
        let (seq, last, roc) = (Int64(number), Int64(highest & 0xFFFF), Int64(highest >> 16))
        let v: Int64
        if last < 32_768 {
            v = seq - last > 32_768 ? roc - 1 : roc
        } else {
            v = last - 32_768 > seq ? roc + 1 : roc
        }
        return v < 0 ? nil : UInt64(v) << 16 | UInt64(number)
    }

    @Test func `guesses the index as the RFC does`() {
        var random = SeededGenerator(seed: 3_711)
        let edges: [UInt16] = [0, 1, 32_766, 32_767, 32_768, 32_769, 65_534, 65_535]
        for _ in 0..<20_000 {
            var window = ReplayWindow()
            let last = edges.randomElement(using: &random) ?? 0
            let offset = UInt16.random(in: 0...3, using: &random)
            let roc = UInt64.random(in: 0...2, using: &random)
            let highest = roc << 16 | UInt64(last)
            window.accept(highest)
            // Around half the circle, around the highest, or anywhere.
            let number =
                switch Int.random(in: 0...2, using: &random) {
                case 0: last &+ 32_766 &+ offset
                case 1: last &- 2 &+ offset
                default: UInt16.random(in: 0...UInt16.max, using: &random)
                }
            let expected = Self.guess(number, highest: highest) ?? UInt64(number)
            #expect(window.index(of: number) == expected, "\(number) after \(highest)")
        }
        #expect(ReplayWindow().index(of: 65_535) == 65_535)
    }

    /// Compared with a set of all that was accepted.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `takes each index once, and none that is too old`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var window = ReplayWindow()
        var accepted: Set<UInt64> = []
        var highest = UInt64.random(in: 0...5_000, using: &random)
        let spread: Int64 = [2, 100, 1_100, 5_000][Int(seed % 4)]
        for round in 0..<4_000 {
            let step = Int64.random(in: -spread...spread, using: &random)
            let index = UInt64(max(Int64(highest) + step, 0))
            let isNew = accepted.isEmpty || index > highest
            let isOld = !isNew && highest - index >= ReplayWindow.capacity
            let mayCome = isNew || !isOld && !accepted.contains(index)
            #expect(window.admits(index) == mayCome, "\(index) after \(highest)")
            // What is not authentic is asked for, and changes nothing.
            guard mayCome, round % 3 > 0 else { continue }
            window.accept(index)
            accepted.insert(index)
            highest = isNew ? index : highest
            #expect(window.highest == highest)
            #expect(!window.admits(index))
        }
    }
}

@Suite struct `The replay windows of a peer` {
    @Test func `are those of the sources that it used last`() {
        var random = SeededGenerator(seed: 64)
        var table = ReplayTable()
        // The sources known, the one that was silent for the longest time first.
        var known: [UInt32] = []
        var highest: [UInt32: UInt64] = [:]
        for _ in 0..<20_000 {
            let ssrc = UInt32.random(in: 0..<80, using: &random)
            let number = UInt16.random(in: 0...200, using: &random)
            if !known.contains(ssrc) { highest[ssrc] = nil }
            let index = table.index(of: number, ssrc: ssrc)
            #expect(index == UInt64(number))
            let isAdmitted = table.admits(index, ssrc: ssrc)
            guard let last = highest[ssrc] else {
                #expect(isAdmitted)
                let isFull = known.count == ReplayTable.limit
                let expected: UInt32? = isFull ? known.removeFirst() : nil
                let forgotten = table.accept(index, ssrc: ssrc)
                #expect(forgotten == expected)
                known.append(ssrc)
                highest[ssrc] = index
                #expect(table.count == known.count)
                continue
            }
            guard index > last else { continue }
            #expect(isAdmitted)
            let forgotten = table.accept(index, ssrc: ssrc)
            #expect(forgotten == nil)
            highest[ssrc] = index
            known.removeAll { $0 == ssrc }
            known.append(ssrc)
        }
        #expect(known.count == ReplayTable.limit)
    }
}
