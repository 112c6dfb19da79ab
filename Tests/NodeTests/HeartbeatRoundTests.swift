import Base
import TestSupport
import Testing

@testable import Node

@Suite struct HeartbeatRoundTests {
    private static let step = HeartbeatRound.interval / HeartbeatRound.turns

    @Test func `gives ten thousand their turns evenly`() {
        var round = HeartbeatRound(at: .zero)
        for number in 1...10_000 { round.add(UInt64(number)) }
        var heard: [UInt64] = []
        for turn in 1...HeartbeatRound.turns {
            let due = round.due(at: .zero + Self.step * turn)
            #expect((400...600).contains(due.count))
            heard += due
        }
        #expect(heard.sorted() == Array(1...10_000))
    }

    @Test func `wakes nobody up for a few more often than one would`() throws {
        var round = HeartbeatRound(at: .zero)
        #expect(round.deadline == nil)
        for number in 1...60 { round.add(UInt64(number)) }
        for interval in 1...3 {
            let deadline = try #require(round.deadline)
            #expect(deadline == MonotonicTime.zero + HeartbeatRound.interval * interval)
            #expect(round.due(at: deadline - .nanoseconds(1)).isEmpty)
            #expect(round.due(at: deadline).count == 60)
            #expect(round.due(at: deadline).isEmpty)
        }
        round.removeAll()
        #expect(round.deadline == nil)
    }

    @Test func `after a long pause gives everybody one turn`() {
        var round = HeartbeatRound(at: .zero)
        for number in 1...5_000 { round.add(UInt64(number)) }
        let due = round.due(at: .zero + .seconds(3_607))
        #expect(due.sorted() == Array(1...5_000))
        #expect(round.due(at: .zero + .seconds(3_607)).isEmpty)
    }

    @Test(arguments: 0..<20)
    func `lets nobody wait longer than an interval, whoever comes and goes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let start = MonotonicTime(nanoseconds: Int64.random(in: 0...1_000_000_000_000, using: &random))
        var round = HeartbeatRound(at: start)
        var (now, heardAt, next) = (start, [UInt64: MonotonicTime](), UInt64(1))
        for _ in 0..<500 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                for _ in 0..<Int.random(in: 1...100, using: &random) {
                    round.add(next)
                    heardAt[next] = now
                    next += 1
                }
            case 1:
                for number in heardAt.keys.shuffled(using: &random).prefix(40) {
                    round.remove(number)
                    heardAt[number] = nil
                }
            default: break
            }
            // As a timer does, which is never early.
            now = max(now, round.deadline ?? now + .milliseconds(100))
            for number in round.due(at: now) {
                #expect(heardAt[number] != nil)
                heardAt[number] = now
            }
            #expect(heardAt.values.allSatisfy { now - $0 <= HeartbeatRound.interval })
        }
    }
}
