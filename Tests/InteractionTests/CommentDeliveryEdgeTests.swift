import Base
import Testing

@testable import Interaction

/// Bursts, deletions and empty hands in the delivery of comments.
@Suite struct `Delivery of comments at its limits` {
    private var delivery = CommentDelivery(at: .zero)
    private var number = 0

    private mutating func append(_ count: Int, isOfHost: Bool = false) {
        for _ in 0..<count {
            number += 1
            let comment = StreamComment(
                number: number, key: "k", author: InteractionRig.bob.id, name: nil,
                role: isOfHost ? .host : .viewer, text: "x", at: WallTime(milliseconds: 0))
            delivery.append(comment, isOfHost: isOfHost)
        }
    }

    private mutating func take(after milliseconds: Int) -> CommentDelivery.Message? {
        delivery.take(at: MonotonicTime.zero + .milliseconds(milliseconds))
    }

    /// A host with a program that writes is bounded, too: beyond the limit the host has the chance that all have.
    @Test mutating func `takes so many comments of hosts, and others by chance`() throws {
        append(75, isOfHost: true)
        let taken = take(after: 0)
        let message = try #require(taken)
        let numbers = message.comments.map(\.number)
        #expect(numbers.count == 60 && message.more == 15)
        #expect(Array(numbers.prefix(50)) == Array(1...50))
        #expect(numbers == numbers.sorted() && Set(numbers).count == 60)
        // Those comments do not count towards what comes later.
        append(1, isOfHost: true)
        let next = take(after: 100)
        #expect(next?.comments.map(\.number) == [76] && next?.more == 0)
    }

    @Test mutating func `mixes comments of hosts and others in the order of writing`() {
        for index in 0..<8 { append(1, isOfHost: index % 3 == 1) }
        let message = take(after: 0)
        #expect(message?.comments.map(\.number) == Array(1...8))
    }

    @Test mutating func `takes back what waits, wherever it waits`() throws {
        append(10)
        _ = take(after: 0)
        // There is room for some of these; the others wait for the next message.
        append(10)
        let taken = take(after: 100)
        let message = try #require(taken)
        #expect((1..<10).contains(message.comments.count) && message.more == 0)
        #expect(delivery.deadline != nil)
        append(1, isOfHost: true)
        append(1)
        for number in 11...22 { delivery.remove(number) }
        #expect(delivery.deadline == nil)
        let none = take(after: 1_000)
        #expect(none == nil)
        delivery.remove(99)
        append(1)
        let next = take(after: 1_000)
        #expect(next?.comments.map(\.number) == [23] && next?.more == 0)
    }

    /// The number of those left out is news by itself.
    @Test mutating func `says how many were left out when none can be told`() throws {
        delivery.interval = .zero
        append(10)
        _ = take(after: 0)
        append(15)
        let taken = take(after: 0)
        let message = try #require(taken)
        #expect(message.comments.isEmpty && message.more == 5)
        // They are counted once, and those that wait come later.
        let again = take(after: 0)
        #expect(again == nil && delivery.deadline != nil)
        let later = take(after: 250)
        #expect(later?.comments.count == 10 && later?.more == 0)
        #expect(delivery.deadline == nil)
    }

    @Test mutating func `keeps the interval that it is given, but not before the first message`() {
        delivery.interval = .seconds(2)
        append(1)
        #expect(delivery.deadline == .zero)
        let first = take(after: 500)
        #expect(first?.comments.count == 1)
        append(1)
        let due = MonotonicTime.zero + .milliseconds(2_500)
        #expect(delivery.deadline == due)
        let early = take(after: 2_499)
        #expect(early == nil)
        // A shorter interval holds for what waits already.
        delivery.interval = .milliseconds(100)
        let sooner = MonotonicTime.zero + .milliseconds(600)
        #expect(delivery.deadline == sooner)
        let next = take(after: 2_499)
        #expect(next?.comments.map(\.number) == [2])
    }

    @Test mutating func `starts anew with each message what chance it gives`() throws {
        // Far more than there is room for: of each ten, the last have the same chance as the first.
        var early = 0
        var late = 0
        for round in 0..<200 {
            let first = number + 1
            append(100)
            let taken = take(after: round * 1_000)
            let message = try #require(taken)
            for comment in message.comments where comment.number >= first {
                if comment.number < first + 50 { early += 1 } else { late += 1 }
            }
        }
        #expect(early + late == 2_000, "a full burst each second")
        #expect((700...1_300).contains(early), "\(early) of the first half")
    }
}
