import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A walk over a key frame` {
    private typealias Step = FrameWalk.Step

    private func mark(_ number: Int64, epoch: UInt32 = 1) -> TapMark {
        TapMark(epoch: epoch, sequenceNumber: number)
    }

    /// A frame of so many packets, of which the last has the marker.
    private func frame(from start: Int64, count: Int64, timestamp: UInt32 = 9) -> [Int64: Step] {
        var packets: [Int64: Step] = [:]
        for number in start..<(start + count) {
            packets[number] = Step(timestamp: timestamp, marker: number == start + count - 1)
        }
        return packets
    }

    /// Each packet behind it asks where it ends: as many looks as packets, not the product.
    @Test(arguments: [1_000, 2_047, 2_048, 4_000] as [Int64])
    func `looks at no packet twice of a frame that does not end`(count: Int64) {
        var packets = frame(from: 100, count: count)
        packets[100 + count - 1] = nil
        var walk = FrameWalk()
        var looks = 0
        for _ in 0..<200 {
            let end = walk.end(of: mark(100)) { number in
                looks += 1
                return packets[number]
            }
            #expect(end == nil)
        }
        #expect(looks <= 2_048 + 200)
    }

    @Test func `ends before a packet of another time, or with a marker`() {
        var packets = frame(from: 5, count: 3)
        var walk = FrameWalk()
        #expect(walk.end(of: mark(5)) { packets[$0] } == 7)
        packets[7] = Step(timestamp: 9, marker: false)
        packets[8] = Step(timestamp: 10, marker: true)
        walk = FrameWalk()
        #expect(walk.end(of: mark(5)) { packets[$0] } == 7)
    }

    @Test func `begins anew with another frame`() {
        var packets = frame(from: 5, count: 30)
        packets[20] = nil
        var walk = FrameWalk()
        #expect(walk.end(of: mark(5)) { packets[$0] } == nil)
        packets.merge(frame(from: 50, count: 10, timestamp: 11)) { $1 }
        #expect(walk.end(of: mark(50)) { packets[$0] } == 59)
        // A source that began anew may count other packets by the same numbers.
        let other = frame(from: 50, count: 4, timestamp: 12)
        #expect(walk.end(of: mark(50, epoch: 2)) { other[$0] } == 53)
    }

    @Test func `takes no frame of more packets than one may have`() {
        for count in [2_048, 2_049] as [Int64] {
            let packets = frame(from: 1, count: count)
            var walk = FrameWalk()
            #expect(walk.end(of: mark(1)) { packets[$0] } == (count == 2_048 ? 2_048 : nil))
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `finds what one from the beginning would, in whatever order packets come`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let count = Int64.random(in: 1...40, using: &random)
        let all = frame(from: 7, count: count)
        var packets: [Int64: Step] = [:]
        var walk = FrameWalk()
        for number in all.keys.sorted().shuffled(using: &random) {
            packets[number] = all[number]
            var fresh = FrameWalk()
            let expected = fresh.end(of: mark(7)) { packets[$0] }
            #expect(walk.end(of: mark(7)) { packets[$0] } == expected)
        }
        #expect(walk.end(of: mark(7)) { packets[$0] } == 7 + count - 1)
    }
}
