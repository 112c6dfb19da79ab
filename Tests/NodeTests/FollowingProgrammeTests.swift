import Base
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// A published stream that ends and begins again under its name, at once or while the disk is slow.
@Suite(.timeLimit(.minutes(10))) struct `A programme that follows another under one name` {
    private let rig: WatchedHostRig
    private let ann = HostRig.ann
    private let bob = HostRig.bob
    private let shop: Stage.Sender
    private let source: Stage.Source

    init() throws {
        rig = try WatchedHostRig()
        shop = Stage.Sender(id: try #require(ParticipantID("shop")), authority: .viewer, mayGiveGifts: true)
        source = Stage.Source(owner: HostRig.ann.id, name: "Ann", hasAudio: true, hasVideo: true)
    }

    private func goLive() async throws {
        #expect(try await rig.host.beginPublishing(ann, canCreate: true) == .host)
        await rig.host.setSource(source)
        #expect(await rig.host.snapshot.state == .live)
    }

    /// Ends the programme while the disk takes nothing, and has the next one begin meanwhile.
    private func followSlowly() async throws -> Task<Stage.Standing, any Error> {
        rig.store.hold()
        await rig.host.setSource(nil)
        return try await beginAgain()
    }

    /// Has the next programme begin, which waits for the disk.
    private func beginAgain() async throws -> Task<Stage.Standing, any Error> {
        let (host, ann) = (rig.host, ann)
        return try await rig.decide { try await host.beginPublishing(ann, canCreate: true) }
    }

    @discardableResult
    private func write(_ text: String, as sender: Stage.Sender? = nil) async throws -> StreamComment {
        let reply = try await rig.host.perform(.comment(key: text, text: text), from: sender ?? bob)
        guard case .comment(let comment) = reply else { throw StageRefusal.overloaded }
        return comment
    }

    private func texts() async throws -> [String] {
        WatchedHostRig.texts(try await rig.host.comments(before: nil, after: nil, limit: 50))
    }

    private func sellRoses() async throws {
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
        _ = try await rig.host.perform(.edit(edit), from: ann)
    }

    private func rose(_ key: String) -> Gift.Draft {
        Gift.Draft(
            key: key, giver: bob.id, name: "Bob", kind: "rose", count: 1, price: 100, currency: "EUR")
    }

    // MARK: What was said and given

    @Test func `a new programme has no comments of the one before`() async throws {
        try await goLive()
        try await write("old")
        let next = try await followSlowly()
        rig.store.release()
        #expect(try await next.value == .host)
        #expect(try await texts() == [])
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        #expect(WatchedHostRig.texts(follower.known["interaction"]) == [])
        await rig.host.setSource(source)
        #expect(try await write("new").number == 1)
        #expect(try await texts() == ["new"])
        let again = try await rig.restarted()
        #expect(await again.kept == rig.host.kept)
    }

    @Test func `a new programme has its own poll, card and ranks`() async throws {
        try await goLive()
        try await write("old")
        _ = try await rig.host.perform(
            .openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No"])), from: ann)
        let card = StreamCard(title: "Teapot", link: "https://shop.example/1", picture: nil, data: nil)
        _ = try await rig.host.perform(.showCard(card), from: ann)
        let next = try await followSlowly()
        rig.store.release()
        _ = try await next.value
        await #expect(throws: StageRefusal.interaction(.unknownPoll)) {
            try await rig.host.poll(1, as: nil)
        }
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        let audience = try #require(follower.known["interaction"])
        #expect(audience["card"] == nil && audience["poll"] == nil)
        let fans = try await rig.host.rank(.fans, of: .stream, as: nil)
        #expect(fans["ranks"] == .array([]))
    }

    /// Pages drop comments and gifts whose numbers they know.
    @Test(arguments: [false, true])
    func `followers who stayed get a snapshot of the new programme`(isSlow: Bool) async throws {
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        try await goLive()
        try await write("old")
        #expect(!follower.types.contains("interaction-snapshot"), "it is the first one")
        follower.forget()
        if isSlow {
            let next = try await followSlowly()
            rig.store.release()
            _ = try await next.value
        } else {
            await rig.host.setSource(nil)
            _ = try await rig.host.beginPublishing(ann, canCreate: true)
        }
        let told = follower.state.withLock { state in
            state.messages.filter { $0["type"] == .string("interaction-snapshot") }
        }
        #expect(told.count == 1)
        #expect(WatchedHostRig.texts(told.first?["interaction"]) == [])
        #expect(told.first?["interaction"]?["reactions"] == .object([:]))
    }

    @Test func `has none of the gifts that were on their way to the disk`() async throws {
        try await goLive()
        try await sellRoses()
        _ = try await rig.host.perform(.give(rose("a")), from: shop)
        rig.store.hold()
        let (host, bob, shop, second) = (rig.host, bob, shop, rose("b"))
        let comment = try await rig.decide {
            try await host.perform(.comment(key: "first", text: "first"), from: bob)
        }
        // The gift, the end and the beginning all wait for that, and become one commit.
        let gift = try await rig.decide { try await host.perform(.give(second), from: shop) }
        await rig.host.setSource(nil)
        let next = try await beginAgain()
        rig.store.release()
        _ = try await comment.value
        _ = try await gift.value
        _ = try await next.value
        let beginning = rig.store.commits.last { $0.clearsLedger }
        #expect(beginning?.ledger == [])
        await rig.host.setSource(source)
        try await sellRoses()
        for (key, number) in [("c", 1), ("b", 2)] {
            let reply = try await rig.host.perform(.give(rose(key)), from: shop)
            guard case .gift(let given) = reply else { throw StageRefusal.overloaded }
            #expect(given.number == number && given.key == key)
        }
        let page = try await rig.host.gifts(after: 0, limit: 9, as: ann)
        guard case .array(let ledger) = page["gifts"] else { throw StageRefusal.unknownStream }
        #expect(ledger.map { $0["key"] } == [.string("c"), .string("b")])
    }

    // MARK: What else there was

    @Test func `does not show the picture of the one before`() async throws {
        try await goLive()
        let preview = StreamPreview(
            width: 360, height: 203, capturedAt: WallTime(milliseconds: 1), blurHash: "L", url: "/")
        await rig.host.setPreview(preview)
        await rig.host.setSource(nil)
        #expect(await rig.host.snapshot.preview == preview, "lists show what has ended")
        _ = try await rig.host.beginPublishing(ann, canCreate: true)
        #expect(await rig.host.snapshot.preview == nil)
        await rig.host.setSource(source)
        #expect(await rig.host.snapshot.preview == nil)
        await rig.host.setPreview(preview)
        #expect(await rig.host.snapshot.preview == preview)
    }

    @Test func `does not begin where its disk fails, and the one before goes on`() async throws {
        try await goLive()
        try await write("old")
        try await sellRoses()
        _ = try await rig.host.perform(.give(rose("a")), from: shop)
        let next = try await followSlowly()
        let meanwhile = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, meanwhile)
        rig.store.fail(with: .unavailable("full"))
        rig.store.release()
        await #expect(throws: StageRefusal.storage("the data cannot be written: full")) {
            _ = try await next.value
        }
        #expect(await rig.host.committed?.phase == .live)
        #expect(await rig.host.stage?.record == rig.host.committed)
        #expect(try await texts() == ["old"])
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        #expect(WatchedHostRig.texts(follower.known["interaction"]) == ["old"])
        await rig.wait(.milliseconds(500))
        let told = meanwhile.state.withLock { $0.messages.compactMap { $0["ranks"]?["givers"] } }
        let giver = JSON.object([
            "participant": .string("bob"), "name": .string("Bob"), "value": .number(100),
        ])
        #expect(told.last == .array([giver]))
        rig.store.fail(with: nil)
        #expect(try await rig.host.beginPublishing(ann, canCreate: true) == .host)
        #expect(try await write("still").number == 2)
    }

    // MARK: Duels

    /// A duel that both hosts have agreed to, and that begins in three seconds.
    private func agree(with opponent: inout DuelOpponent) async throws -> DuelID {
        await rig.host.connect(ann, by: .socket(1_000))
        _ = try await rig.host.perform(
            .invite(opponent.side.stream, DuelTerms()), from: ann, isOpponentLive: true)
        opponent.receive(rig.orders, at: rig.now)
        let id = try #require(opponent.side.duels.last?.id)
        try opponent.apply(.accept(id), at: rig.now)
        for message in opponent.takeMessages(at: rig.now) { await rig.host.receive(message) }
        opponent.receive(rig.orders, at: rig.now)
        let startsAt = opponent.side.duels.last?.startsAt
        #expect(startsAt == rig.now.wall.advanced(bySeconds: Duel.countdownTime))
        return id
    }

    /// Whether the end of the earlier programme is in a commit before the beginning of the next, or in the same one.
    @Test(arguments: [false, true])
    func `the opponent sees the end of the earlier duel, and the new programme has none`(
        isOneCommit: Bool
    ) async throws {
        try await goLive()
        var opponent = DuelOpponent(try #require(StreamID("quiz")))
        let duel = try await agree(with: &opponent)
        rig.orders.change { $0 = [] }
        rig.store.hold()
        if isOneCommit {
            let (host, bob) = (rig.host, bob)
            _ = try await rig.decide { try await host.perform(.comment(key: "a", text: "a"), from: bob) }
        }
        await rig.host.setSource(nil)
        let next = try await beginAgain()
        rig.store.release()
        _ = try await next.value
        opponent.receive(rig.orders, at: rig.now)
        let known = opponent.side.duels.last
        #expect(known?.result == .calledOff(.streamEnded))
        await #expect(throws: StageRefusal.interaction(.unknownDuel)) {
            try await rig.host.duel(duel, as: ann)
        }
        // It may be in another one soon.
        await rig.host.setSource(source)
        await rig.wait(.seconds(1))
        _ = try await rig.host.perform(
            .invite(opponent.side.stream, DuelTerms()), from: ann, isOpponentLive: true)
    }
}
