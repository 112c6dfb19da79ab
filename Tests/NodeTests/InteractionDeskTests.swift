import Base
import Foundation
import Interaction
import Stage
import Testing

@testable import Node

/// What all followers are told of an audience, by itself: each change is durable at once.
@Suite struct `The news of an audience` {
    private var desk: InteractionDesk
    private let ann: Interaction.Person
    private let shop: Interaction.Person

    init() throws {
        desk = InteractionDesk(restoring: InteractionRecord(), at: Self.moment(0))
        ann = Interaction.Person(id: HostRig.ann.id, name: "Ann", role: .host, isModerator: true)
        shop = Interaction.Person(
            id: HostRig.bob.id, name: nil, role: .viewer, isModerator: false, isShop: true)
    }

    private static func moment(_ milliseconds: Int64) -> Moment {
        Moment(
            elapsed: .zero + .milliseconds(milliseconds),
            wall: WallTime(milliseconds: 1_000_000 + milliseconds))
    }

    private func viewer(_ number: Int) throws -> Interaction.Person {
        let id = try #require(ParticipantID("v\(number)"))
        return Interaction.Person(id: id, name: nil, role: .viewer, isModerator: false)
    }

    private mutating func perform(
        _ command: Interaction.Command, from person: Interaction.Person, at milliseconds: Int64 = 0
    ) throws {
        let outcome = try desk.apply(command, from: person, at: Self.moment(milliseconds))
        desk.conclude(outcome.changes, desk.machine.record)
    }

    private mutating func write(
        _ text: String, from person: Interaction.Person, at milliseconds: Int64 = 0
    ) throws {
        let key = "k\(milliseconds)-\(text.count)"
        try perform(.comment(key: key, text: text), from: person, at: milliseconds)
    }

    private static func message(_ text: String) throws -> JSON {
        try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    /// The numbers of comments or gifts.
    private static func numbers(_ list: JSON?) -> [JSON] {
        guard case .array(let members) = list else { return [] }
        return members.compactMap { $0["number"] }
    }

    /// The messages that are due, to so many followers.
    private mutating func news(at milliseconds: Int64, for followers: Int = 0) throws -> [JSON] {
        try desk.takeNews(for: followers, at: Self.moment(milliseconds)).map(Self.message)
    }

    private func deadline(at milliseconds: Int64) -> MonotonicTime? {
        desk.deadline(at: Self.moment(milliseconds), isLive: false)
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime { Self.moment(milliseconds).elapsed }

    // MARK: How often

    /// 16 µs for each follower, of whom many are told at once.
    @Test(arguments: [(0, 100), (6_250, 100), (10_000, 160), (31_250, 500), (99_999, 500)] as [(Int, Int64)])
    mutating func `has comments together, more seldom the more there are to tell`(
        followers: Int, wait: Int64
    ) throws {
        try write("one", from: viewer(1))
        let first = try news(at: 0, for: followers)
        #expect(first.flatMap { WatchedHostRig.texts($0) } == ["one"])
        try write("two", from: viewer(2), at: 1)
        try write("three", from: viewer(3), at: 2)
        #expect(deadline(at: 2) == time(wait))
        let early = try news(at: wait - 1, for: followers)
        let due = try news(at: wait, for: followers)
        #expect(early.isEmpty && due.flatMap { WatchedHostRig.texts($0) } == ["two", "three"])
        #expect(deadline(at: wait) == nil)
    }

    @Test mutating func `has votes twice a second, and the end of a poll at once`() throws {
        try perform(.openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No"])), from: ann)
        var told = try news(at: 0)
        #expect(told.map { $0["poll"]?["voters"] } == [.number(0)])
        for number in 1...3 {
            let milliseconds = Int64(number) * 10
            try perform(.vote(1, options: [0]), from: viewer(number), at: milliseconds)
            told += try news(at: milliseconds)
        }
        #expect(told.count == 2 && told.last?["poll"]?["voters"] == .number(1))
        #expect(deadline(at: 30) == time(510))
        told += try news(at: 509)
        #expect(told.count == 2)
        told += try news(at: 510)
        #expect(told.count == 3 && told.last?["poll"]?["voters"] == .number(3))
        try perform(.vote(1, options: [1]), from: viewer(4), at: 520)
        try perform(.closePoll(1), from: ann, at: 530)
        let end = try news(at: 530)
        #expect(end.first?["poll"]?["voters"] == .number(4))
        #expect(end.first?["poll"]?["closedAt"] == .time(Self.moment(530).wall))
    }

    @Test mutating func `has many gifts in few messages, and all else in the first of them`() throws {
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 2)])
        try perform(.edit(edit), from: ann)
        _ = try news(at: 0)
        for number in 1...250 {
            let draft = Gift.Draft(
                key: "g\(number)", giver: ann.id, name: nil, kind: "rose", count: 1, price: 2,
                currency: "EUR")
            try perform(.give(draft), from: shop, at: 1)
            if number == 1 { #expect(deadline(at: 1) == .zero, "the first at once") }
        }
        try perform(
            .showCard(StreamCard(title: "x", link: "https://x.example/", picture: nil, data: nil)), from: ann,
            at: 1)
        let told = try news(at: 1)
        let numbers = told.map { Self.numbers($0["gifts"]) }
        #expect(numbers.map(\.count) == [100, 100, 50])
        #expect(numbers.flatMap(\.self) == (1...250).map { JSON.integer($0) })
        #expect(told.map { $0["card"] != nil } == [true, false, false])
        #expect(told.allSatisfy { $0["giftTotals"]?["value"] == .number(500) })
        #expect(told.first?["ranks"]?["givers"] != nil)
    }

    // MARK: What is gone

    @Test mutating func `the removal of a pinned comment is announced, however it went`() throws {
        try write("one", from: viewer(1))
        try write("two", from: viewer(2), at: 5_000)
        try perform(.pin(1), from: ann, at: 5_000)
        var told = try news(at: 5_000)
        #expect(told.first?["pinned"]?["text"] == .string("one"))
        try perform(.delete(2), from: ann, at: 5_001)
        told = try news(at: 5_001)
        #expect(told.first?["deleted"] == .array([.number(2)]))
        #expect(told.first?["pinned"]?["number"] == .number(1), "that one stays")
        try perform(.delete(1), from: ann, at: 5_002)
        told = try news(at: 5_002)
        #expect(told.first?["deleted"] == .array([.number(1)]) && told.first?["pinned"] == .null)
        try write("three", from: viewer(3), at: 6_000)
        try perform(.pin(3), from: ann, at: 6_000)
        _ = try news(at: 6_000)
        let (changes, count) = desk.forgetComments(before: Self.moment(6_001).wall, hasOlder: false)
        #expect(count == 3)
        desk.conclude(changes.compactMap(\.ofInteraction), desk.machine.record)
        told = try news(at: 6_001)
        #expect(told.first?["pinned"] == .null && desk.committed.comments.isEmpty)
    }

    @Test mutating func `a comment that was removed in time is never announced`() throws {
        try write("one", from: viewer(1))
        _ = try news(at: 0)
        try write("rude", from: viewer(2), at: 1)
        try write("kind", from: viewer(3), at: 2)
        try perform(.delete(2), from: ann, at: 3)
        let told = try news(at: 100)
        #expect(told.flatMap { WatchedHostRig.texts($0) } == ["kind"])
        #expect(told.first?["deleted"] == .array([.number(2)]))
    }

    @Test mutating func `a shadow-banned author's comments are announced to the author alone`() throws {
        let shadow = try viewer(1)
        try perform(.silence(shadow.id, seconds: 60, isShadow: true), from: ann)
        try write("psst", from: shadow, at: 1)
        let waiting = desk.takeHidden()
        let hidden = try #require(waiting.first)
        let message = try Self.message(hidden.1)
        #expect(hidden.0 == shadow.id && WatchedHostRig.texts(message) == ["psst"])
        let again = desk.takeHidden()
        let told = try news(at: 1_000)
        #expect(again.isEmpty && told.isEmpty)
        #expect(desk.hiddenComments(of: shadow.id) != nil && desk.hiddenComments(of: ann.id) == nil)
        let settings = desk.settings(forModerator: true, at: Self.moment(59_999).wall)
        #expect(settings["silenced"]?["v1"]?["shadow"] == .bool(true))
        let later = desk.settings(forModerator: true, at: Self.moment(60_000).wall)
        #expect(later["silenced"] == .object([:]))
        #expect(desk.settings(forModerator: false, at: Self.moment(0).wall)["silenced"] == nil)
    }

    // MARK: A store that refuses

    @Test mutating func `closes a poll again a second after that was refused, or with the stream`() throws {
        var draft = Poll.Draft(question: "Tea?", options: ["Yes", "No"])
        draft.seconds = 10
        try perform(.openPoll(draft), from: ann)
        _ = try news(at: 0)
        let durable = desk.committed
        #expect(deadline(at: 0) == time(10_000))
        var closing = desk.advance(to: Self.moment(10_000), isLive: false)
        #expect(closing == [.interaction(.pollClosed(Self.moment(10_000).wall))])
        desk.revert(to: durable)
        _ = try news(at: 10_000)
        #expect(desk.machine.record.poll?.isOpen == true && deadline(at: 10_000) == time(11_000))
        closing = desk.advance(to: Self.moment(10_999), isLive: false)
        #expect(closing == [])
        var ended = desk
        closing = ended.advance(to: Self.moment(10_999), isLast: true, isLive: false)
        #expect(closing == [.interaction(.pollClosed(Self.moment(10_999).wall))])
        closing = desk.advance(to: Self.moment(11_000), isLive: false)
        #expect(closing == [.interaction(.pollClosed(Self.moment(11_000).wall))])
    }

    @Test mutating func `after a failed commit, everybody sees what is durable`() throws {
        try write("one", from: viewer(1))
        let durable = desk.committed
        // The desk of the next programme, which is not stored.
        desk = InteractionDesk(restoring: InteractionRecord(), at: Self.moment(1))
        let before = try Self.message(desk.describe(at: time(1)))
        #expect(WatchedHostRig.texts(before) == [])
        desk.revert(to: durable)
        let after = try Self.message(desk.describe(at: time(2)))
        #expect(WatchedHostRig.texts(after) == ["one"])
    }

    // MARK: Those who come

    /// A snapshot has to fit into one message.
    @Test(arguments: [(300, "é", 81), (300, "🌹", 40), (10, "x", 100)])
    func `begins with the latest comments, as many as fit`(length: Int, letter: String, count: Int) throws {
        var record = InteractionRecord()
        for number in 1...200 {
            record.apply(
                .commented(
                    StreamComment(
                        number: number, key: "k\(number)", author: ann.id, name: nil, role: .host,
                        text: String(repeating: letter, count: length), at: Self.moment(0).wall)))
        }
        var desk = InteractionDesk(restoring: record, at: Self.moment(0))
        let known = try Self.message(desk.describe(at: .zero))
        #expect(Self.numbers(known["comments"]) == (201 - count...200).map { JSON.integer($0) })
    }
}
