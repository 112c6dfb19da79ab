import Base
import Testing

@testable import Interaction

/// What a stream forgets: by age, by number, and because there is no more room.
@Suite struct `Limits of an audience` {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann
    private let bob = InteractionRig.bob
    private let mod = InteractionRig.mod

    // MARK: Comments

    @Test mutating func `forget old comments with all that repeats their words`() throws {
        let first = try rig.write("one")
        try rig.apply(.pin(first.number), from: ann)
        rig.wait(.seconds(10))
        let second = try rig.write("two")
        let changes = rig.machine.forgetComments(before: rig.now.wall)
        #expect(changes == [.expired(before: rig.now.wall)])
        let record = rig.machine.record
        #expect(record.comments == [second] && record.pinned == nil)
        #expect(record.audit.count == 1 && record.audit.first?.text == nil)
        #expect(record.audit.first?.comment == first.number, "that something was pinned is remembered")
        // Numbers go on, and are found in spite of the gap before them.
        #expect(record.comment(1) == nil && record.comment(2) == second)
        let third = try rig.write("three", from: mod)
        #expect(third.number == 3 && rig.machine.record.comment(3) == third)
        // There is nothing left to forget.
        let again = rig.machine.forgetComments(before: rig.now.wall)
        #expect(again.isEmpty)
    }

    @Test mutating func `keep numbers going when all comments are forgotten`() throws {
        for text in ["one", "two", "three"] { try rig.write(text) }
        rig.wait(.seconds(1))
        let changes = rig.machine.forgetComments(before: rig.now.wall)
        #expect(changes.count == 1 && rig.machine.record.comments.isEmpty)
        for number in 0...4 { #expect(rig.machine.record.comment(number) == nil) }
        let page = rig.machine.record.page(limit: 9)
        #expect(page.comments.isEmpty && !page.isMore)
        let next = try rig.write("four")
        #expect(next.number == 4 && rig.machine.record.comment(4) == next)
        #expect(rig.machine.record.comment(3) == nil && rig.machine.record.comment(5) == nil)
    }

    @Test mutating func `forget comments that are kept elsewhere only when told of them`() throws {
        try rig.write("new")
        let before = rig.machine.record
        let time = rig.now.wall.advanced(bySeconds: -60)
        let none = rig.machine.forgetComments(before: time)
        let some = rig.machine.forgetComments(before: time, hasOlder: true)
        #expect(none.isEmpty && some == [.expired(before: time)])
        #expect(rig.machine.record == before, "those that are here are younger")
    }

    @Test mutating func `leave a card's title where comments are forgotten`() throws {
        let card = StreamCard(title: "Lamp", link: "https://a.example", picture: nil, data: nil)
        try rig.apply(.showCard(card), from: ann)
        rig.wait(.seconds(10))
        let changes = rig.machine.forgetComments(before: rig.now.wall)
        #expect(changes.isEmpty)
        #expect(rig.machine.record.audit.first?.text == "Lamp" && rig.machine.record.card == card)
    }

    /// The pinned copy outlives the comment in the record, and is still its author's to delete.
    @Test mutating func `keep a pinned comment that has left the record, until it is deleted`() throws {
        let pinned = try rig.write("pinned")
        try rig.apply(.pin(pinned.number), from: ann)
        for _ in 0..<Interaction.commentLimit * 5 / 4 {
            rig.wait(.seconds(1))
            try rig.write("more", from: mod)
        }
        #expect(rig.machine.record.comment(pinned.number) == nil)
        #expect(rig.machine.record.pinned == pinned)
        #expect(throws: Interaction.Refusal.unknownComment) { try rig.apply(.delete(pinned.number)) }
        #expect(throws: Interaction.Refusal.notModerator) {
            try rig.apply(.deleteArchived(pinned), from: InteractionRig.person("cid"))
        }
        #expect(rig.machine.record.pinned == pinned)
        let outcome = try rig.apply(.deleteArchived(pinned))
        #expect(outcome.changes == [.deleted(pinned.number)], "one's own comment is one's own matter")
        #expect(rig.machine.record.pinned == nil)
    }

    @Test mutating func `let nobody delete of old comments what they may not delete of new ones`() throws {
        let ofHost = try rig.write("host", from: ann)
        let ofViewer = try rig.write("viewer")
        #expect(throws: Interaction.Refusal.notModerator) {
            try rig.apply(.deleteArchived(ofHost), from: mod)
        }
        try rig.apply(.deleteArchived(ofViewer), from: mod)
        let entry = rig.machine.record.audit.last
        #expect(entry?.action == .deleted && entry?.by == mod.id && entry?.participant == bob.id)
        #expect(entry?.text == "viewer")
    }

    @Test mutating func `bound pages on both sides`() throws {
        for number in 1...9 {
            rig.wait(.seconds(1))
            try rig.write("\(number)")
        }
        try rig.apply(.delete(5))
        let record = rig.machine.record
        let both = record.page(before: 7, after: 3, limit: 9)
        #expect(both.comments.map(\.number) == [4, 6] && !both.isMore)
        let first = record.page(before: 7, after: 3, limit: 1)
        #expect(first.comments.map(\.number) == [4] && first.isMore)
        let last = record.page(before: 7, limit: 2)
        #expect(last.comments.map(\.number) == [4, 6] && last.isMore)
        // A page that is just full says whether more follows, not whether it is full.
        let exact = record.page(after: 7, limit: 2)
        #expect(exact.comments.map(\.number) == [8, 9] && !exact.isMore)
        let none = record.page(before: 1, limit: 9)
        #expect(none.comments.isEmpty && !none.isMore)
    }

    // MARK: Silence

    @Test mutating func `make room for the silenced when the time of others is over`() throws {
        for number in 0..<Interaction.silenceLimit {
            rig.wait(.milliseconds(200))
            let id = InteractionRig.person("p\(number)").id
            let seconds = number < 2 ? 300 : 3_000
            try rig.apply(.silence(id, seconds: seconds, isShadow: number % 2 == 1), from: ann)
        }
        let late = InteractionRig.person("late").id
        for isShadow in [false, true] {
            #expect(throws: Interaction.Refusal.tooManySilenced) {
                try rig.apply(.silence(late, seconds: 60, isShadow: isShadow), from: ann)
            }
        }
        // Somebody who is silenced already takes no place.
        let known = InteractionRig.person("p5").id
        try rig.apply(.silence(known, seconds: 3_000), from: ann)
        #expect(rig.machine.record.shadowed[known] == nil && rig.machine.record.silenced[known] != nil)
        rig.wait(.seconds(300))
        let outcome = try rig.apply(.silence(late, seconds: 60), from: ann)
        let until = rig.now.wall.advanced(bySeconds: 60)
        let (first, second) = (InteractionRig.person("p0").id, InteractionRig.person("p1").id)
        let expected: [InteractionChange] = [
            .unsilenced(first), .unsilenced(second), .silenced(late, until: until),
        ]
        #expect(Array(outcome.changes.prefix(3)) == expected)
        let silenced = rig.machine.record.silenced.count + rig.machine.record.shadowed.count
        #expect(silenced == Interaction.silenceLimit - 1)
        #expect(rig.machine.record.audit.last?.action == .silenced, "what ended by itself is not an action")
    }

    @Test(arguments: [0, -1, 2_592_001, Int.max, Int.min])
    mutating func `refuse a silence of such a time`(seconds: Int) throws {
        #expect(throws: Interaction.Refusal.invalid("seconds")) {
            try rig.apply(.silence(bob.id, seconds: seconds), from: ann)
        }
        #expect(rig.machine.record.silenced.isEmpty)
    }

    // MARK: Polls

    @Test func `take so many votes and no more, and keep those that were taken`() throws {
        let now = WallTime(milliseconds: 1_800_000_000_000)
        var poll = try Poll(Poll.Draft(question: "Tea?", options: ["Yes", "No"]), number: 1, at: now)
        let known = InteractionRig.person("v7").id
        let late = InteractionRig.person("late").id
        for number in 0..<Poll.voterLimit {
            let id = InteractionRig.person("v\(number)").id
            if number == Poll.voterLimit - 1 { #expect(poll.refusal(of: [0], by: late, at: now) == nil) }
            poll.count([number % 2], of: id)
        }
        #expect(poll.refusal(of: [0], by: late, at: now) == .pollFull)
        // What is wrong with the request comes before what is wrong with the poll.
        #expect(poll.refusal(of: [0, 1], by: late, at: now) == .invalid("options"))
        #expect(poll.refusal(of: [0], by: known, at: now) == .alreadyVoted)
        #expect(poll.counts == [10_000, 10_000] && poll.voters == 20_000)
        poll.close(at: now)
        #expect(poll.refusal(of: [0], by: late, at: now) == .pollClosed)
        #expect(poll.counts == [10_000, 10_000] && poll.vote(of: known) == nil)
    }

    @Test mutating func `close a poll without an end when its stream ends`() throws {
        try rig.apply(.openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No"])), from: ann)
        rig.wait(.seconds(100_000))
        let early = rig.machine.closePoll(at: rig.now.wall)
        #expect(early.isEmpty && rig.machine.pollDeadline == nil)
        let last = rig.machine.closePoll(at: rig.now.wall, isLast: true)
        #expect(last == [.pollClosed(rig.now.wall)])
        let again = rig.machine.closePoll(at: rig.now.wall, isLast: true)
        #expect(again.isEmpty)
    }

    // MARK: Gifts and taps

    @Test mutating func `end the oldest of too many combos`() throws {
        try rig.edit { $0.gifts = InteractionRig.catalogue }
        for number in 0...200 { try rig.give(InteractionRig.gift("a\(number)", from: "g\(number)")) }
        let oldest = try rig.give(InteractionRig.gift("b0", from: "g0"))
        #expect(oldest.combo == 1)
        let middle = try rig.give(InteractionRig.gift("b150", from: "g150"))
        let latest = try rig.give(InteractionRig.gift("b200", from: "g200"))
        #expect(middle.combo == 2 && latest.combo == 2)
    }

    @Test mutating func `forget early gifts but not their sums, and say so`() throws {
        try rig.edit { $0.gifts = InteractionRig.catalogue }
        let limit = GiftTotals.recentLimit + GiftTotals.recentLimit / 4
        for number in 1..<limit { try rig.give(InteractionRig.gift("k\(number)")) }
        #expect(!rig.machine.record.gifts.hasForgotten && rig.machine.record.gifts.gift("k1") != nil)
        try rig.give(InteractionRig.gift("k\(limit)"))
        let gifts = rig.machine.record.gifts
        #expect(gifts.hasForgotten && gifts.recent.count == GiftTotals.recentLimit)
        #expect(gifts.gift("k1") == nil && gifts.gift("k\(limit)")?.number == limit)
        #expect(gifts.count == limit && gifts.value == limit * 100)
        #expect(gifts.recent.first?.number == limit - GiftTotals.recentLimit + 1)
    }

    @Test mutating func `keep the taps of a reaction that is taken away in the count of all`() throws {
        try rig.edit { $0.reactions = ["fire", "heart"] }
        try rig.apply(.react(["fire": 25, "heart": 5]))
        try rig.edit { $0.reactions = ["heart"] }
        #expect(rig.machine.counter.totals == ["heart": 5] && rig.machine.counter.taps == 30)
        // It begins anew when it comes back.
        try rig.edit { $0.reactions = ["heart", "fire"] }
        rig.wait(.seconds(10))
        try rig.apply(.react(["fire": 2]))
        #expect(rig.machine.counter.totals == ["heart": 5, "fire": 2] && rig.machine.counter.taps == 32)
        let told = rig.machine.tellReactions(at: rig.now.elapsed)
        #expect(told?["fire"] == ReactionCounter.Count(total: 2, rate: 2))
        _ = rig.machine.saveReactions(at: rig.now.elapsed, isLast: true)
        let restored = Interaction(restoring: rig.machine.record).counter
        #expect(restored.totals == ["heart": 5, "fire": 2] && restored.taps == 32)
    }

    @Test func `keep counts within the largest integer`() {
        var counter = ReactionCounter(totals: ["fire": .max, "heart": 7], former: 3)
        #expect(counter.taps == Int.max)
        counter.keep(["heart"])
        #expect(counter.taps == Int.max && counter.totals == ["heart": 7])
        #expect(counter.deadline == nil, "that a kind is gone is no news of the others")
    }

    /// The rate is of the last moments, however long it was quiet before.
    @Test mutating func `measure a rate over the last second after a quiet hour`() throws {
        try rig.apply(.react(["heart": 5]))
        _ = rig.machine.tellReactions(at: rig.now.elapsed)
        rig.wait(.seconds(3_600))
        let quiet = rig.machine.tellReactions(at: rig.now.elapsed)
        #expect(quiet == ["heart": .init(total: 5, rate: 0)])
        rig.wait(.seconds(3_600))
        try rig.apply(.react(["heart": 7]))
        let told = rig.machine.tellReactions(at: rig.now.elapsed)
        #expect(told == ["heart": .init(total: 12, rate: 7)])
    }
}
