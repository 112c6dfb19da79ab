import Base
import Testing

@testable import Forwarding

@Suite struct AudioRedundancyTests {
    private func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1_000_000_000))
    }

    @Test func `redundancy grows with the share of packets lost`() {
        var redundancy = AudioRedundancy()
        redundancy.note(lost: 0, of: 500, at: at(0))
        #expect(redundancy.depth == 0)
        // One lost packet of fifty says little.
        redundancy.note(lost: 1, of: 50, at: at(1))
        #expect(redundancy.depth == 0)
        redundancy.note(lost: 2, of: 50, at: at(2))
        #expect(redundancy.depth == 1)
        redundancy.note(lost: 20, of: 200, at: at(3))
        #expect(redundancy.depth == 2)
    }

    @Test func `ends only after a calm time`() {
        var redundancy = AudioRedundancy()
        redundancy.note(lost: 50, of: 200, at: at(0))
        #expect(redundancy.depth == 2)
        for second in 1...10 {
            redundancy.note(lost: 0, of: 200, at: at(Double(second)))
            #expect(redundancy.depth == 2, "\(second)")
        }
        redundancy.note(lost: 0, of: 200, at: at(11))
        #expect(redundancy.depth == 0)
    }

    @Test func `no sequence number breaks redundancy`() {
        var redundancy = AudioRedundancy()
        for (lost, told) in [(0, 0), (5, -1), (Int.max, 1), (Int.min, Int.max), (Int.max, Int.max), (-7, 3)] {
            redundancy.note(lost: lost, of: told, at: at(1))
            #expect((0...AudioRedundancy.maximumDepth).contains(redundancy.depth))
        }
    }

    @Test func `each packet is repeated with the redundancy that it was sent with`() {
        var redundancy = AudioRedundancy()
        let (none, one, both) = (Distances(upTo: 0), Distances(upTo: 1), Distances(upTo: 2))
        #expect(redundancy.distances(of: 7) == none)
        redundancy.note(one, by: 10)
        redundancy.note(both, by: 14)
        #expect([9, 10, 12, 14, 15].map { redundancy.distances(of: $0) } == [none, one, none, both, none])
        // Of packets from long before nothing is known.
        redundancy.note(one, by: 266)
        redundancy.note(one, by: 1_000)
        let known = [9, 10, 14, 744, 745, 1_000].map { redundancy.distances(of: $0) }
        #expect(known == [none, nil, both, nil, none, one])
        // A very late packet does not replace what is known.
        redundancy.note(both, by: 744)
        #expect(redundancy.distances(of: 744) == nil)
        #expect(redundancy.distances(of: 1_000) == one)
    }
}
