import Base
import TestSupport
import Testing

@testable import Interaction
@testable import Node

private func instant(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct `The budget of a participant's changes` {
    private typealias Allowance = CommandBudget.Allowance

    private let bob: ParticipantID
    private let cleo: ParticipantID
    private var budget = CommandBudget()

    init() throws {
        bob = try #require(ParticipantID("bob"))
        cleo = try #require(ParticipantID("cleo"))
    }

    private mutating func charge(
        _ id: ParticipantID, _ allowance: Allowance, times: Int, at now: MonotonicTime
    ) {
        for _ in 0..<times { budget.charge(id, allowance, at: now) }
    }

    @Test mutating func `is each one's own, and allows so many changes in a row`() {
        charge(bob, .viewer, times: 9, at: instant(0))
        let last = budget.wait(of: bob, .viewer, at: instant(0))
        #expect(last == nil)
        charge(bob, .viewer, times: 1, at: instant(0))
        let spent = budget.wait(of: bob, .viewer, at: instant(0))
        #expect(spent == 2)
        let other = budget.wait(of: cleo, .viewer, at: instant(0))
        #expect(other == nil)
        // On stage the same person may do more.
        let onStage = budget.wait(of: bob, .speaker, at: instant(0))
        #expect(onStage == 1)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    mutating func `allows the next change when it says, and no second earlier`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let allowances: [Allowance] = [.viewer, .speaker, .host]
        let chosen = allowances.randomElement(using: &random)
        let allowance = try #require(chosen)
        var now: Int64 = 0
        for _ in 0..<200 {
            // Quarters of a second, which a `Double` holds exactly.
            now += 250 * Int64.random(in: 0...12, using: &random)
            guard let wait = budget.wait(of: bob, allowance, at: instant(now)) else {
                budget.charge(bob, allowance, at: instant(now))
                continue
            }
            #expect(wait >= 1)
            let early = budget.wait(of: bob, allowance, at: instant(now + Int64(wait - 1) * 1_000))
            #expect(early != nil)
            let inTime = budget.wait(of: bob, allowance, at: instant(now + Int64(wait) * 1_000))
            #expect(inTime == nil)
            // What is never refused counts as well.
            if Bool.random(using: &random) { budget.charge(bob, allowance, at: instant(now)) }
        }
    }

    @Test mutating func `a participant owes at most one burst, however many changes cannot be refused`() {
        charge(bob, .viewer, times: 1_000, at: instant(0))
        // Ten that are owed, and one more, at one in two seconds.
        let wait = budget.wait(of: bob, .viewer, at: instant(0))
        #expect(wait == 22)
        let full = budget.wait(of: bob, .viewer, at: instant(22_000))
        #expect(full == nil)
    }

    @Test mutating func `is not filled by a clock that stands or goes back`() {
        charge(bob, .viewer, times: 10, at: instant(50_000))
        for time in [50_000, 49_000, 0] as [Int64] {
            let wait = budget.wait(of: bob, .viewer, at: instant(time))
            #expect(wait == 2)
        }
    }

    /// Who can have that many names would not be stopped by a limit for each.
    @Test mutating func `budgets of a limited number of participants are kept`() throws {
        for number in 0..<10_000 {
            charge(try #require(ParticipantID("p\(number)")), .viewer, times: 1, at: instant(1_000))
        }
        charge(bob, .viewer, times: 100, at: instant(2_000))
        let unlimited = budget.wait(of: bob, .viewer, at: instant(2_000))
        #expect(unlimited == nil)
        // Those that are known are limited still.
        let known = try #require(ParticipantID("p1"))
        charge(known, .viewer, times: 100, at: instant(2_000))
        let limited = budget.wait(of: known, .viewer, at: instant(2_000))
        #expect(limited == 22)
        charge(bob, .viewer, times: 100, at: instant(41_000))
        let later = budget.wait(of: bob, .viewer, at: instant(41_000))
        #expect(later == 22)
        // What is owed was not forgiven when the others were forgotten: of eleven, four were earned by then.
        let owed = budget.wait(of: known, .viewer, at: instant(10_000))
        #expect(owed == 14)
    }
}

@Suite struct `News of gifts` {
    private let bob: ParticipantID
    private var news = GiftNews()

    init() throws { bob = try #require(ParticipantID("bob")) }

    private mutating func give(_ numbers: ClosedRange<Int>) {
        for number in numbers {
            news.append(
                Gift(
                    number: number, key: "k\(number)", giver: bob, name: "Bob", kind: "rose", count: 1,
                    price: 100, currency: "EUR", combo: 1, at: WallTime(milliseconds: 1)))
        }
    }

    /// The numbers of the gifts in each message that is due.
    private mutating func take(at milliseconds: Int64) -> [[Int]] {
        news.take(GiftTotals(), at: instant(milliseconds)).map { message in
            guard case .array(let gifts)? = message["gifts"] else { return [] }
            return gifts.compactMap { gift in
                if case .number(let number)? = gift["number"] { Int(number) } else { nil }
            }
        }
    }

    @Test mutating func `come at once, and then ten times a second`() {
        #expect(news.deadline == nil)
        give(1...1)
        #expect(news.deadline == MonotonicTime.zero)
        let first = take(at: 5_000)
        #expect(first == [[1]])
        #expect(news.deadline == nil)
        give(2...3)
        #expect(news.deadline == instant(5_100))
        let early = take(at: 5_099)
        #expect(early.isEmpty)
        // What waits is not lost, and a look does not put it off.
        give(4...4)
        #expect(news.deadline == instant(5_100))
        let second = take(at: 5_100)
        #expect(second == [[2, 3, 4]])
    }

    @Test mutating func `gifts that fill a message are sent at once`() {
        give(1...1)
        _ = take(at: 1_000)
        give(2...100)
        #expect(news.deadline == instant(1_100))
        give(101...101)
        #expect(news.deadline == MonotonicTime.zero)
        let full = take(at: 1_001)
        #expect(full == [Array(2...101)])
    }

    @Test(arguments: [1, 99, 100, 101, 200, 250])
    mutating func `are all told, in order, a hundred in a message`(count: Int) {
        give(1...count)
        let messages = take(at: 0)
        #expect(messages.flatMap(\.self) == Array(1...count))
        #expect(messages.dropLast().map(\.count) == Array(repeating: 100, count: (count - 1) / 100))
        let none = take(at: 10_000)
        #expect(none.isEmpty)
    }
}
