import Base
import Foundation
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Gifts in their stream's place: each once and in order to everybody, whatever a shop repeats and a disk refuses.
@Suite(.timeLimit(.minutes(10))) struct GiftHosts {
    private let rig: HostRig
    private let ann = HostRig.ann
    private let shop: Stage.Sender

    init() throws {
        rig = try HostRig()
        shop = Stage.Sender(
            id: try #require(ParticipantID("shop")), authority: .viewer, mayGiveGifts: true)
    }

    private func goLive() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: ann)
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
        _ = try await rig.host.perform(.edit(edit), from: ann)
    }

    private func draft(_ number: Int, count: Int = 1) -> Gift.Draft {
        Gift.Draft(
            key: "k\(number)", giver: HostRig.bob.id, name: "Bob", kind: "rose", count: count, price: 100,
            currency: "EUR")
    }

    @discardableResult
    private func give(_ draft: Gift.Draft, on host: StreamHost? = nil) async throws -> Gift {
        guard case .gift(let gift) = try await (host ?? rig.host).perform(.give(draft), from: shop) else {
            throw StageRefusal.overloaded
        }
        return gift
    }

    private func restarted() async throws -> StreamHost {
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        return try StreamHost(
            stored, HostRig.environment(rig.store, rig.directory, clock: rig.clock, effects: rig.effects))
    }

    private func numbers(_ page: JSON?, _ name: String = "gifts") -> [Int] {
        guard case .array(let gifts) = page?[name] else { return [] }
        return gifts.compactMap { if case .number(let number) = $0["number"] { Int(number) } else { nil } }
    }

    private func told(_ follower: TestFollower) -> [Int] {
        follower.state.withLock { $0.messages.flatMap { numbers(.object($0)) } }
    }

    @Test func `are told once and in order, in few messages`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        follower.forget()
        for number in 1...250 {
            try await give(draft(number))
            if number % 3 == 0 { try await give(draft(number - 1)) }
        }
        await rig.wait(.milliseconds(100))
        #expect(told(follower) == Array(1...250))
        let messages = follower.state.withLock { $0.messages.filter { $0["gifts"] != nil } }
        #expect(messages.count == 4, "the first, and the rest by hundreds")
        #expect(messages.last?["giftTotals"]?["value"] == .number(25_000))
        let late = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, late)
        #expect(numbers(late.known["interaction"]?["gifts"], "recent") == Array(201...250))
        #expect(late.known["interaction"]?["gifts"]?["totals"]?["last"] == .number(250))
        #expect(late.known["interaction"]?["settings"]?["gifts"]?["currency"] == .string("EUR"))
    }

    /// What a follower may be sent at once has a limit: beyond it they would be given everything anew.
    @Test func `are told as soon as they fill a message`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        for number in 1...401 { try await give(draft(number)) }
        #expect(told(follower) == Array(1...401))
    }

    @Test func `a repeated gift is recognized by its key long after, and after a restart`() async throws {
        try await goLive()
        let first = try await give(draft(1))
        for number in 2...700 { try await give(draft(number)) }
        #expect(try await give(draft(1)) == first)
        await #expect(throws: StageRefusal.interaction(.giftKeyReused)) { try await give(draft(1, count: 2)) }
        let again = try await restarted()
        #expect(try await give(draft(1), on: again) == first)
        #expect(try await give(draft(700), on: again).number == 700)
        #expect(try await give(draft(701), on: again).number == 701)
        let page = try await again.gifts(after: 699, limit: 1, as: ann)
        #expect(numbers(page) == [700] && page["more"] == .bool(true))
        #expect(page["totals"]?["gifts"] == .number(701))
        _ = try await again.perform(.end, from: ann)
        #expect(try await give(draft(2), on: again).number == 2, "who repeats it may come late")
        await #expect(throws: StageRefusal.rejected(.ended)) { try await give(draft(702), on: again) }
    }

    @Test func `a gift is announced only once it is durable`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        rig.store.hold()
        async let first = give(draft(1))
        try await rig.store.commitIsHeld()
        async let repeated = give(draft(1))
        await rig.wait(.seconds(1))
        #expect(told(follower) == [])
        rig.store.release()
        #expect(try await first == (try await repeated))
        await rig.wait(.milliseconds(100))
        #expect(told(follower) == [1])
        rig.store.fail(with: .unavailable("full"))
        await #expect(throws: StageRefusal.storage("the data cannot be written: full")) {
            try await give(draft(2))
        }
        rig.store.fail(with: nil)
        let second = try await give(draft(2))
        #expect(second.number == 2 && second.combo == 2)
        await rig.wait(.milliseconds(100))
        #expect(told(follower) == [1, 2])
        #expect(numbers(try await rig.host.gifts(after: 0, limit: 9, as: ann)) == [1, 2])
    }

    /// More of them than are known without the ledger must not be undecided at once.
    @Test func `are refused where too many wait for the disk`() async throws {
        try await goLive()
        rig.store.hold()
        let refused = await withTaskGroup(of: Bool.self) { group in
            for number in 1...600 {
                group.addTask {
                    do throws(StageRefusal) {
                        _ = try await rig.host.perform(.give(draft(number)), from: shop)
                        return false
                    } catch {
                        return error == .overloaded
                    }
                }
            }
            var refused = 0
            for await isRefused in group {
                refused += isRefused ? 1 : 0
                if refused == 600 - GiftTotals.recentLimit { rig.store.release() }
            }
            return refused
        }
        #expect(refused == 600 - GiftTotals.recentLimit)
    }

    @Test func `rank those who gave most, twice a second at most and only when it changes`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        func ranks() -> [[String]] {
            let messages = follower.state.withLock { $0.messages.compactMap { $0["ranks"]?["givers"] } }
            return messages.map { ranks in
                guard case .array(let givers) = ranks else { return [] }
                return givers.map { giver in
                    guard case .string(let id) = giver["participant"],
                        case .number(let value) = giver["value"]
                    else {
                        return ""
                    }
                    return "\(id) \(Int(value))"
                }
            }
        }
        func gift(_ key: String, _ giver: String, _ price: Int) throws -> Gift.Draft {
            Gift.Draft(
                key: key, giver: try #require(ParticipantID(giver)), name: nil, kind: "rose", count: 1,
                price: price,
                currency: "EUR")
        }
        for number in 0..<12 { try await give(try gift("a\(number)", "g\(number)", 100 + number)) }
        await rig.wait(.milliseconds(499))
        #expect(ranks() == [["g0 100"]])
        await rig.wait(.milliseconds(1))
        #expect(ranks().count == 2 && ranks().last?.first == "g11 111" && ranks().last?.count == 10)
        // Who is not among the first ten changes nothing that they are told of.
        try await give(try gift("b", "late", 1))
        await rig.wait(.seconds(1))
        #expect(ranks().count == 2)
        try await give(try gift("c", "g3", 50))
        await rig.wait(.seconds(1))
        #expect(ranks().count == 3 && ranks().last?.first == "g3 153")
        guard case .array(let all) = try await restarted().rank(.givers, of: .stream, as: nil)["ranks"] else {
            return
        }
        #expect(all.count == 13 && all.last?["participant"] == .string("late"))
        let late = TestFollower()
        _ = try await restarted().follow(as: nil, since: nil, late)
        #expect(late.known["interaction"]?["ranks"]?["givers"] == .array(Array(all.prefix(10))))
    }

    @Test func `a card is announced, and is there after a restart`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        follower.forget()
        let data = JSON.object(["id": .number(7), "tags": .array([.string("new"), .null, .bool(true)])])
        let card = StreamCard(title: " Tea  pot ", link: "https://shop.example/tea", picture: nil, data: data)
        _ = try await rig.host.perform(.showCard(card), from: ann)
        let told = follower.state.withLock { $0.messages.last?["card"] }
        #expect(told?["title"] == .string("Tea pot") && told?["data"] == data)
        let late = TestFollower()
        _ = try await restarted().follow(as: nil, since: nil, late)
        let known = late.known["interaction"]?["card"]
        #expect(known?["link"] == .string("https://shop.example/tea") && known?["data"] == data)
        _ = try await rig.host.perform(.removeCard, from: ann)
        #expect(follower.state.withLock { $0.messages.last?["card"] } == .null)
    }

    @Test func `only shops give gifts, and only hosts and shops read the list`() async throws {
        try await goLive()
        for stranger in [ann, HostRig.bob, HostRig.sender("sam", .speaker)] {
            await #expect(throws: StageRefusal.interaction(.notShop)) {
                try await rig.host.perform(.give(draft(1)), from: stranger)
            }
        }
        #expect(try await rig.host.perform(.give(draft(1)), from: HostRig.sender("root", .admin)) != .done)
        for reader in [ann, shop, HostRig.sender("root", .admin)] {
            #expect(numbers(try await rig.host.gifts(after: 0, limit: 9, as: reader)) == [1])
        }
        await #expect(throws: StageRefusal.rejected(.notHost)) {
            try await rig.host.gifts(after: 0, limit: 9, as: HostRig.bob)
        }
        _ = try await rig.host.perform(.ban(shop.id), from: ann)
        await #expect(throws: StageRefusal.rejected(.banned)) { try await give(draft(1)) }
    }

    /// Every step may be the last: what was answered is there, once and in order, and nothing else but what was asked.
    @Test(arguments: 0..<12 as Range<UInt64>)
    func `survive restarts at any moment`(seed: UInt64) async throws {
        try await goLive()
        var random = SeededGenerator(seed: seed)
        var answered: [String: Gift] = [:]
        var host = rig.host
        for number in 1...60 {
            let isRefused = Int.random(in: 0..<6, using: &random) == 0
            if isRefused { rig.store.fail(with: .unavailable("full")) }
            let draft = draft(Int.random(in: 1...number, using: &random))
            do {
                let gift = try await give(draft, on: host)
                #expect(answered[draft.key].map { $0 == gift } ?? true)
                answered[draft.key] = gift
            } catch StageRefusal.storage {
                #expect(isRefused)
            }
            rig.store.fail(with: nil)
            rig.pass(.milliseconds(Int.random(in: 0..<3_000, using: &random)))
            if Int.random(in: 0..<5, using: &random) == 0 { host = try await restarted() }
        }
        let ledger = try await host.gifts(after: 0, limit: 100, as: ann)
        #expect(numbers(ledger) == Array(1..<(answered.count + 1)))
        #expect(ledger["totals"]?["gifts"] == .number(Double(answered.count)))
        #expect(answered.values.map(\.number).sorted() == numbers(ledger))
    }
}
