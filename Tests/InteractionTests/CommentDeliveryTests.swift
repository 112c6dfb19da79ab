import Base
import TestSupport
import Testing

@testable import Interaction

@Suite struct DeliveryOfComments {
    private var delivery = CommentDelivery(at: .zero)
    private var number = 0

    private mutating func comment(by name: String = "bob") -> StreamComment {
        number += 1
        return StreamComment(
            number: number, key: "k", author: InteractionRig.person(name).id, name: nil, role: .viewer,
            text: "x",
            at: WallTime(milliseconds: 0))
    }

    @Test mutating func `tells a first comment at once, and those that follow together`() {
        #expect(delivery.deadline == nil)
        delivery.append(comment(), isOfHost: false)
        #expect(delivery.deadline == .zero)
        let start = MonotonicTime.zero + .seconds(9)
        #expect(delivery.take(at: start)?.comments.map(\.number) == [1])
        for _ in 0..<3 { delivery.append(comment(), isOfHost: false) }
        #expect(delivery.deadline == start + .milliseconds(100))
        #expect(delivery.take(at: start + .milliseconds(99)) == nil)
        let message = delivery.take(at: start + .milliseconds(100))
        #expect(message?.comments.map(\.number) == [2, 3, 4] && message?.more == 0)
        #expect(delivery.deadline == nil)
    }

    @Test mutating func `leaves out what was deleted meanwhile`() {
        for _ in 0..<3 { delivery.append(comment(), isOfHost: false) }
        delivery.remove(2)
        #expect(delivery.take(at: .zero)?.comments.map(\.number) == [1, 3])
    }

    /// - Returns: when what was told, of so many comments a second over so many seconds.
    private mutating func run(
        perSecond: Int, seconds: Int, hostsEvery: Int = 50
    ) -> (told: [(at: Int, comments: [StreamComment])], more: Int) {
        var told: [(at: Int, comments: [StreamComment])] = []
        var more = 0
        // Half a second more, in which nothing comes.
        for millisecond in 0..<(seconds * 1_000 + 500) {
            let now = MonotonicTime.zero + .milliseconds(millisecond)
            let due =
                millisecond < seconds * 1_000
                ? (millisecond + 1) * perSecond / 1_000 - millisecond * perSecond / 1_000 : 0
            for _ in 0..<due {
                let isOfHost = (number + 1) % hostsEvery == 0
                delivery.append(comment(by: isOfHost ? "ann" : "p\(number % 7)"), isOfHost: isOfHost)
            }
            guard let deadline = delivery.deadline, deadline <= now else { continue }
            guard let message = delivery.take(at: now) else { continue }
            told.append((millisecond, message.comments))
            more += message.more
        }
        return (told, more)
    }

    @Test(arguments: [20, 60, 200, 1_000])
    mutating func `tells at most 50 a second, never drops the host's, and counts the rest`(perSecond: Int) {
        let (told, more) = run(perSecond: perSecond, seconds: 20)
        let all = told.flatMap(\.comments)
        #expect(all.map(\.number) == all.map(\.number).sorted() || perSecond > 40)
        #expect(Set(all.map(\.number)).count == all.count, "none twice")
        #expect(number == all.count + more, "each is told or counted")
        let host = InteractionRig.ann.id
        #expect(all.filter { $0.author == host }.count == number / 50)
        for (start, _) in told {
            let within = told.filter { $0.at >= start && $0.at < start + 1_000 }.flatMap(\.comments)
            #expect(within.filter { $0.author != host }.count <= CommentDelivery.limit)
        }
        if perSecond <= 20 { #expect(more == 0) }
        if perSecond >= 200 { #expect(all.count >= 20 * 38, "no less than there is room for") }
    }

    @Test mutating func `is fair, and soon`() {
        let (told, _) = run(perSecond: 350, seconds: 120, hostsEvery: .max)
        var counts: [ParticipantID: Int] = [:]
        for comment in told.flatMap(\.comments) { counts[comment.author, default: 0] += 1 }
        let mean = Double(counts.values.reduce(0, +)) / 7
        #expect(counts.count == 7)
        for count in counts.values { #expect(abs(Double(count) - mean) < mean / 4, "\(counts)") }
        for (at, comments) in told {
            for comment in comments { #expect(at - comment.number * 1_000 / 350 <= 800) }
        }
    }

    @Test(arguments: [60, 200, 1_000])
    mutating func `has nobody wait while more come than can be told`(perSecond: Int) {
        let (told, _) = run(perSecond: perSecond, seconds: 20, hostsEvery: .max)
        let waits = told.flatMap { at, comments in comments.map { at - ($0.number - 1) * 1_000 / perSecond } }
        #expect(waits.filter { $0 > 101 }.count <= waits.count / 20, "\(waits.max() ?? 0) ms at most")
    }

    @Test mutating func `tells all of a small burst`() {
        let start = MonotonicTime.zero + .seconds(9)
        var numbers: [Int] = []
        delivery.append(comment(), isOfHost: false)
        numbers += delivery.take(at: start)?.comments.map(\.number) ?? []
        for time in [100, 200, 300, 400] {
            if time < 300 { for _ in 0..<10 { delivery.append(comment(), isOfHost: false) } }
            let message = delivery.take(at: start + .milliseconds(time))
            #expect(message?.more ?? 0 == 0)
            numbers += message?.comments.map(\.number) ?? []
        }
        #expect(numbers.sorted() == Array(1...21))
    }
}
