import Base
import Peer
import TestSupport
import Testing

@Suite final class `The budget of a retransmission gate` {
    var gate = RetransmissionGate()

    func admit(
        _ sequence: Int64, size: Int = 1_000, share: Int = 100, ceiling: Int = .max,
        at milliseconds: Int64 = 0
    ) -> RetransmissionGate.Verdict {
        gate.admit(
            sequence, size: size, rtt: .milliseconds(100), share: share, ceiling: ceiling,
            at: at(milliseconds))
    }

    /// How many of the packets 1 to 100 are admitted, one after another.
    func admitted(share: Int = 100, ceiling: Int = .max, at milliseconds: Int64 = 0) -> Int {
        (Int64(1)...100).count { admit($0, share: share, ceiling: ceiling, at: milliseconds) == .admitted }
    }

    /// Sends a hundred packets of no bytes: only the floor of 32 kB remains.
    func sendNothing() { gate.sent(from: 1, through: 100, keyFrame: nil, size: 0, at: at(0)) }

    @Test(
        arguments: [
            (100, Int.max, 32), (200, .max, 32), (50, .max, 16), (1, .max, 0), (0, .max, 0), (-100, .max, 0),
            (.min, .max, 0), (100, 2_500, 2), (100, 2_000, 2), (100, 1_999, 1), (100, 0, 0), (100, -1, 0),
            (50, 20_000, 16), (50, 3_000, 3),
        ] as [(Int, Int, Int)])
    func `is its share of the floor, and never above the ceiling`(share: Int, ceiling: Int, packets: Int) {
        sendNothing()
        #expect(admitted(share: share, ceiling: ceiling) == packets)
    }

    @Test func `comes back within a second or little more`() {
        sendNothing()
        #expect(admitted() == 32)
        #expect(admit(100, at: 900) == .overBudget)
        #expect(admitted(at: 1_100) == 32)
    }

    @Test func `is for packets of any size, the smallest too`() {
        sendNothing()
        #expect(admit(1, size: 32_001) == .overBudget)
        #expect(admit(1, size: 32_000) == .admitted)
        #expect(admit(2, size: 1) == .overBudget)
        #expect(admit(3, size: 0) == .admitted)
    }

    /// Two packets of which only one can be remembered.
    @Test func `is not spent faster where packets share a place in memory`() {
        gate.sent(from: 1, through: 600, keyFrame: nil, size: 600_000, at: at(0))
        #expect(admit(10, at: 0) == .admitted)
        #expect(admit(522, at: 50) == .tooSoon)
        #expect(admit(522, at: 100) == .admitted)
        #expect(admit(10, at: 150) == .tooSoon)
        #expect(admit(10, at: 200) == .admitted)
    }

    /// The first packets of all may have come out of order, before number 0.
    @Test func `holds for numbers below zero`() {
        gate.sent(from: -5, through: 2, keyFrame: nil, size: 8_000, at: at(0))
        #expect(admit(-6) == .unknown)
        #expect(admit(-5) == .admitted)
        #expect(admit(-5, at: 99) == .tooSoon)
        #expect(admit(-5, at: 100) == .admitted)
        #expect(admit(2) == .admitted)
    }

    @Test func `is spent on nothing before the key frame within what was sent together`() {
        let start = RetransmissionGate.KeyFrameStart(sequence: 4, timestamp: 9)
        gate.sent(from: 1, through: 10, keyFrame: start, size: 10_000, at: at(0))
        #expect(admit(3) == .beforeKeyFrame)
        #expect(admit(4) == .admitted)
        // An earlier key frame that comes late changes nothing.
        gate.sent(2, size: 1_000, startsKeyFrame: true, timestamp: 3, at: at(1))
        #expect(admit(3, at: 1) == .beforeKeyFrame)
        // The head of the same frame does.
        gate.sent(3, size: 1_000, startsKeyFrame: true, timestamp: 9, at: at(2))
        #expect(admit(3, at: 2) == .admitted)
        #expect(admit(2, at: 2) == .beforeKeyFrame)
    }
}
