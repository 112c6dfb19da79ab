import Base
import Testing
import TestSupport

@testable import Forwarding

@Suite struct DeadlineQueueTests {
    private func time(_ number: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: number) }

    @Test func `keys come out in the order of their times, each once`() {
        var queue = DeadlineQueue<Int>()
        for key in [5, 3, 9, 1, 7] { queue.schedule(key, at: time(Int64(key))) }
        queue.schedule(9, at: time(2))
        #expect(queue.next == time(1))
        var order: [Int] = []
        while let key = queue.popDue(at: time(100)) { order.append(key) }
        #expect(order == [1, 9, 3, 5, 7])
        #expect(queue.next == nil)
    }

    @Test func `a key stays in the queue until it is due`() {
        var queue = DeadlineQueue<String>()
        queue.schedule("late", at: time(10))
        #expect(queue.popDue(at: time(9)) == nil)
        #expect(queue.popDue(at: time(10)) == "late")
    }

    @Test(arguments: UInt64(0)..<10) func `agrees with a sorted list`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = DeadlineQueue<Int>()
        var model: [Int: Int64] = [:]
        for now in Int64(0)..<500 {
            let key = Int.random(in: 0..<30, using: &random)
            let due = now + Int64.random(in: 0..<50, using: &random)
            queue.schedule(key, at: time(due))
            model[key] = min(model[key] ?? .max, due)
            while let key = queue.popDue(at: time(now)) {
                #expect(model[key] == model.values.min())
                model[key] = nil
            }
            #expect(model.values.allSatisfy { $0 > now })
        }
    }
}
