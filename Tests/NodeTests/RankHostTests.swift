import Base
import Foundation
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Who takes part, in their stream's place: counted by the minute, told when it matters, and there after a restart.
@Suite(.timeLimit(.minutes(10))) struct RankHosts {
    private let rig: HostRig
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() throws {
        rig = try HostRig()
    }

    private func goLive() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: ann)
        await rig.host.tick()
    }

    private func restarted() async throws -> StreamHost {
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        return try StreamHost(
            stored, HostRig.environment(rig.store, rig.directory, clock: rig.clock, effects: rig.effects))
    }

    private func names(_ list: JSON?, _ member: String = "participant") -> [String] {
        guard case .array(let entries) = list else { return [] }
        return entries.compactMap { if case .string(let text) = $0[member] { text } else { nil } }
    }

    private func write(as sender: Stage.Sender, _ key: String) async throws {
        _ = try await rig.host.perform(.comment(key: key, text: "hello"), from: sender)
    }

    /// The ranks that a follower was told, one list for each time.
    private func told(_ follower: TestFollower) -> [JSON] {
        follower.state.withLock { $0.messages.compactMap { $0["ranks"] } }
    }

    @Test func `each minute of presence counts once, except the host's`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: ann, since: nil, TestFollower())
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        // Two windows are one person; without a name one is nobody.
        _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        _ = try await rig.host.follow(as: nil, since: nil, TestFollower())
        let cid = HostRig.sender("cid", .viewer)
        _ = try await rig.host.follow(as: cid, since: nil, TestFollower())
        try await write(as: cid, "k1")
        await rig.wait(.milliseconds(59_999))
        #expect(told(follower).isEmpty)
        await rig.wait(.milliseconds(1))
        #expect(names(told(follower).last?["fans"]) == ["cid", "bob"])
        #expect(told(follower).last?["day"] == .null, "all of it is of today")
        #expect(try await rig.host.rank(.fans, of: .stream, as: nil)["currency"] == .null)
        let again = try await restarted()
        let fans = try await again.rank(.fans, of: .day, as: nil)
        #expect(names(fans["ranks"]) == ["cid", "bob"] && fans["period"] == .string("day"))
        let late = TestFollower()
        _ = try await again.follow(as: nil, since: nil, late)
        #expect(names(late.known["interaction"]?["ranks"]?["fans"]) == ["cid", "bob"])
    }

    @Test func `count nothing backstage and nothing after the end`() async throws {
        try await rig.create()
        _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        await rig.wait(.seconds(61))
        await rig.wait(.seconds(61))
        #expect(names(try await rig.host.rank(.fans, of: .stream, as: nil)["ranks"]) == [])
        _ = try await rig.host.perform(.goLive, from: ann)
        _ = try await rig.host.follow(as: ann, since: nil, TestFollower())
        await rig.host.tick()
        try await write(as: bob, "k1")
        await rig.wait(.seconds(20))
        _ = try await rig.host.perform(.end, from: ann)
        await rig.wait(.seconds(61))
        let ranks = try await rig.host.rank(.fans, of: .stream, as: nil)["ranks"]
        #expect(
            ranks
                == .array([
                    .object([
                        "participant": .string("bob"), "name": .string("Bob"), "value": .number(2),
                    ])
                ]), "what was said before the end counts, the minute that was not over does not")
    }

    @Test func `ranks are announced when the first ten change and when a day begins`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: ann, since: nil, follower)
        _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        await rig.wait(.seconds(60))
        #expect(told(follower).count == 1)
        // 2027-01-15T08:01:00Z: at midnight nobody has done anything yet.
        let midnight = rig.clock.value.wall.nextDay.milliseconds - rig.clock.value.wall.milliseconds
        follower.forget()
        rig.pass(.milliseconds(midnight - 1))
        await rig.host.tick()
        let before = told(follower).count
        rig.pass(.milliseconds(1))
        await rig.host.tick()
        #expect(told(follower).count == before + 1)
        #expect(names(told(follower).last?["fans"]) == ["bob"])
        #expect(names(told(follower).last?["day"]?["fans"]) == [])
        #expect(names(try await rig.host.rank(.fans, of: .day, as: nil)["ranks"]) == [])
        await rig.wait(.seconds(60))
        #expect(names(told(follower).last?["day"]?["fans"]) == ["bob"])
    }

    @Test func `order who is there, with badges`() async throws {
        try await goLive()
        _ = try await rig.host.follow(as: ann, since: nil, TestFollower())
        let mod = Stage.Sender(
            id: try #require(ParticipantID("mod")), name: "Mod", authority: .viewer, mayModerate: true)
        let people = ["p1", "p2", "p3", "p4"].map { HostRig.sender($0, .viewer) }
        for person in people + [mod] { _ = try await rig.host.follow(as: person, since: nil, TestFollower()) }
        await rig.wait(.milliseconds(500))
        #expect(names(await rig.host.overview["present"]) == ["ann", "p1", "p2", "p3", "p4", "mod"])
        try await write(as: people[3], "k1")
        await rig.wait(.seconds(60))
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
        _ = try await rig.host.perform(.edit(edit), from: ann)
        let shop = Stage.Sender(
            id: try #require(ParticipantID("shop")), authority: .viewer, mayGiveGifts: true)
        _ = try await rig.host.perform(
            .give(
                Gift.Draft(
                    key: "g1", giver: people[2].id, name: "P3", kind: "rose", count: 1, price: 100,
                    currency: "EUR")),
            from: shop)
        for _ in 0..<3 { await rig.wait(.seconds(1)) }
        let present = await rig.host.overview["present"]
        #expect(names(present).first == "ann" && names(present, "role").first == "host")
        #expect(names(present)[1...2] == ["p3", "p4"], "who gave, then who took part")
        guard case .array(let entries) = present else { return }
        func badges(of name: String) -> JSON? {
            entries.first { $0["participant"] == .string(name) }?["badges"]
        }
        // Of those who only watch, the one whose identity comes first is before.
        #expect(badges(of: "mod") == .array([.string("moderator"), .string("fan-2")]))
        #expect(badges(of: "p1") == .array([.string("fan-3")]))
        #expect(badges(of: "p3") == .array([.string("giver-1")]))
        #expect(badges(of: "p4") == .array([.string("fan-1")]))
    }

    @Test func `people who wait are told their place`() async throws {
        try await goLive()
        let followers = [TestFollower(), TestFollower()]
        let people = [bob, HostRig.sender("cid", .viewer)]
        for (person, follower) in zip(people, followers) {
            _ = try await rig.host.follow(as: person, since: nil, follower)
            _ = try await rig.host.perform(.raiseHand, from: person)
        }
        func places() -> [JSON?] { followers.map { $0.state.withLock { $0.you?["handPlace"] } } }
        #expect(places() == [.number(1), .number(2)])
        _ = try await rig.host.perform(.moveHand(people[1].id, place: 1), from: ann)
        #expect(places() == [.number(2), .number(1)])
        _ = try await rig.host.perform(.holdHand(people[1].id, true), from: ann)
        #expect(places() == [.number(1), .null])
        let hands = followers[0].known["raisedHands"]
        #expect(hands?["cid"]?["held"] == .bool(true) && hands?["bob"]?["order"] == .number(2))
        _ = try await rig.host.perform(.lowerHand(people[0].id), from: bob)
        _ = try await rig.host.perform(.holdHand(people[1].id, false), from: ann)
        #expect(places() == [.null, .number(1)])
    }
}
