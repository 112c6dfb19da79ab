import Base
import Peer
import TestSupport
import Testing

@Suite final class `A retransmission gate` {
    var gate = RetransmissionGate()

    func send(_ sequences: ClosedRange<Int64>, at milliseconds: Int64 = 0) {
        for sequence in sequences {
            gate.sent(sequence, size: 1_000, startsKeyFrame: false, at: at(milliseconds))
        }
    }

    func admit(
        _ sequence: Int64, size: Int = 1_000, rtt: Duration? = .milliseconds(100), at milliseconds: Int64 = 0
    ) -> RetransmissionGate.Verdict {
        gate.admit(sequence, size: size, rtt: rtt, at: at(milliseconds))
    }

    @Test func `admits what was sent and nothing else`() {
        #expect(admit(10) == .unknown)
        send(10...20)
        #expect(admit(9) == .unknown)
        #expect(admit(10) == .admitted)
        #expect(admit(20) == .admitted)
        #expect(admit(21) == .unknown)
    }

    @Test func `answers each packet once per round trip`() {
        send(10...20)
        #expect(admit(15, at: 0) == .admitted)
        #expect(admit(15, at: 99) == .tooSoon)
        #expect(admit(16, at: 99) == .admitted)
        #expect(admit(15, at: 100) == .admitted)
        #expect(admit(15, at: 199) == .tooSoon)
    }

    @Test func `repeats less where less may be repeated`() {
        // Of the floor of 32 kB a tenth.
        gate.sent(from: 1, through: 100, keyFrame: nil, size: 0, at: at(0))
        let verdicts = (1...20).map {
            gate.admit($0, size: 1_000, rtt: nil, share: 10, at: at(0))
        }
        #expect(verdicts.count { $0 == .admitted } == 3)
        #expect(verdicts.last == .overBudget)
    }

    @Test(arguments: [nil, Duration.zero, .milliseconds(-5), .microseconds(50)])
    func `keeps a least interval for peers without a round-trip time`(rtt: Duration?) {
        send(10...20)
        #expect(admit(15, rtt: rtt, at: 0) == .admitted)
        #expect(admit(15, rtt: rtt, at: 9) == .tooSoon)
        #expect(admit(15, rtt: rtt, at: 10) == .admitted)
    }

    @Test func `refuses what lies before the last key frame`() {
        send(10...20)
        gate.sent(21, size: 1_000, startsKeyFrame: true, at: at(0))
        send(22...30)
        #expect(admit(20) == .beforeKeyFrame)
        #expect(admit(21) == .admitted)
        #expect(admit(22) == .admitted)
    }

    /// H.264: the parameter sets, and the picture behind them; each may be what a viewer misses.
    @Test func `takes the first of the packets at the head of one key frame, in whatever order they leave`() {
        for order in [[21, 22, 23], [22, 21, 23], [23, 22, 21]] as [[Int64]] {
            gate = RetransmissionGate()
            send(10...20)
            gate.sent(17, size: 1_000, startsKeyFrame: true, timestamp: 3, at: at(0))
            for number in order {
                gate.sent(number, size: 1_000, startsKeyFrame: true, timestamp: 6, at: at(0))
            }
            #expect(admit(20) == .beforeKeyFrame)
            for number in order { #expect(admit(number) == .admitted) }
        }
    }

    @Test func `remembers a key frame however long ago it was sent`() {
        gate.sent(100, size: 100, startsKeyFrame: true, at: at(0))
        gate.sent(200_000, size: 100, startsKeyFrame: false, at: at(1))
        #expect(admit(199_000, at: 1) == .admitted)
        #expect(admit(100, at: 1) == .admitted)
        #expect(admit(99, at: 1) == .unknown)
    }

    @Test func `repeats no more than its floor to a viewer that is sent little`() {
        send(1...100, at: 0)
        var admitted = 0
        // A second and more later, so that nothing counts as sent.
        for sequence in Int64(1)...100 where admit(sequence, at: 2_000) == .admitted { admitted += 1 }
        #expect(admitted == 32)
        #expect(admit(99, at: 2_000) == .overBudget)
        #expect(admit(99, at: 3_100) == .admitted)
    }

    @Test func `repeats at most half of what was sent, and its floor`() {
        send(1...400, at: 0)
        var admitted = 0
        for sequence in Int64(1)...400 where admit(sequence, at: 500) == .admitted { admitted += 1 }
        #expect(admitted == 232)
    }

    @Test func `counts a refused packet neither as answered nor as spent`() {
        send(1...10, at: 0)
        #expect(admit(1, size: 1_000_000, at: 0) == .overBudget)
        #expect(admit(1, size: 1_000, at: 0) == .admitted)
    }

    @Test(arguments: 0..<20) func `bounds what any viewer can make it send`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var now: Int64 = 0
        var next = Int64.random(in: 1...100_000, using: &random)
        let rtt = Int64.random(in: 1...300, using: &random)
        var keyFrame: Int64 = .min
        var sentBytes: [(time: Int64, size: Int)] = []
        var repeatedBytes: [(time: Int64, size: Int)] = []
        var lastAnswer: [Int64: Int64] = [:]
        for _ in 0..<3_000 {
            now += Int64.random(in: 0...8, using: &random)
            let size = Int.random(in: 100...1_200, using: &random)
            let isKey = Int.random(in: 0..<300, using: &random) == 0
            gate.sent(next, size: size, startsKeyFrame: isKey, at: at(now))
            sentBytes.append((now, size))
            if isKey { keyFrame = next }
            next += 1
            for _ in 0..<3 {
                let asked = next - Int64.random(in: -2...700, using: &random)
                let size = Int.random(in: 100...1_200, using: &random)
                guard admit(asked, size: size, rtt: .milliseconds(rtt), at: now) == .admitted else {
                    continue
                }
                #expect(asked >= keyFrame && asked < next)
                #expect(now - (lastAnswer[asked] ?? -10_000) >= max(rtt, 10))
                lastAnswer[asked] = now
                repeatedBytes.append((now, size))
            }
        }
        // Over any second, with the slack of the meters' buckets.
        for start in stride(from: Int64(0), to: now, by: 250) {
            func sum(_ list: [(time: Int64, size: Int)], _ range: ClosedRange<Int64>) -> Int {
                list.filter { range.contains($0.time) }.reduce(0) { $0 + $1.size }
            }
            let repeated = sum(repeatedBytes, start...(start + 1_000))
            #expect(repeated <= 32_000 + sum(sentBytes, (start - 1_100)...(start + 1_000)) / 2)
        }
        #expect(repeatedBytes.count > 100)
    }
}
