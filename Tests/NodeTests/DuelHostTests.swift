import Base
import Foundation
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Duels in their streams' places: two that speak by messages, each with a store of its own.
@Suite(.timeLimit(.minutes(10))) struct DuelHosts {
    private let rig: HostRig
    private let orders = Shared<[DuelOrder]>([])
    private let stores: [StreamID: SlowStore]
    private var hosts: [StreamID: StreamHost] = [:]
    private let talk: StreamID
    private let quiz: StreamID
    private let ann = HostRig.ann
    private let cleo = HostRig.sender("cleo", .host)

    init() async throws {
        rig = try HostRig()
        talk = try #require(StreamID("talk"))
        quiz = try #require(StreamID("quiz"))
        stores = [talk: SlowStore(), quiz: SlowStore()]
        for (stream, sender) in [(talk, ann), (quiz, cleo)] {
            let host = StreamHost(stream, try environment(of: stream))
            hosts[stream] = host
            _ = try await host.create(host: sender.id, name: sender.name, edit: StageEdit())
            _ = try await host.perform(.goLive, from: sender)
            await host.connect(sender, by: .socket(1_000))
        }
    }

    private func environment(of stream: StreamID) throws -> StreamHost.Environment {
        let clock = rig.clock
        return StreamHost.Environment(
            store: try #require(stores[stream]), log: .silent, directory: StreamDirectory(),
            now: { clock.value }, runsTimer: false, report: StageReport.event(_:of:at:),
            duels: { [orders] order in orders.change { $0.append(order) } }, perform: { _, _ in })
    }

    private func host(_ stream: StreamID) throws -> StreamHost { try #require(hosts[stream]) }

    /// Everything that is on its way, and what follows.
    private func deliver() async throws {
        while case let waiting = orders.value, !waiting.isEmpty {
            orders.change { $0.removeFirst(waiting.count) }
            for case .message(let message) in waiting { await hosts[message.to]?.receive(message) }
            for host in hosts.values { try await host.settled() }
        }
    }

    private func wait(_ seconds: Int) async throws {
        for _ in 0..<seconds * 2 {
            await rig.wait(.milliseconds(500))
            for host in hosts.values {
                await host.tick()
                try await host.settled()
            }
            try await deliver()
        }
    }

    private func id(_ duel: JSON) throws -> DuelID {
        try #require(
            duel["id"].flatMap { id in if case .string(let text) = id { DuelID(text) } else { nil } })
    }

    private func perform(
        _ command: DuelSide.Command, in stream: StreamID, from sender: Stage.Sender
    ) async throws -> JSON {
        let duel = try await host(stream).perform(command, from: sender, isOpponentLive: true)
        try await deliver()
        return duel
    }

    private func begin(seconds: Int = 30) async throws -> DuelID {
        var terms = DuelTerms()
        terms.seconds = seconds
        let duel = try id(try await perform(.invite(quiz, terms), in: talk, from: ann))
        _ = try await perform(.accept(duel), in: quiz, from: cleo)
        return duel
    }

    private func tap(_ count: Int, in stream: StreamID) async throws {
        _ = try await host(stream).perform(.react(["heart": count]), from: HostRig.bob)
    }

    private func shown(_ duel: DuelID, in stream: StreamID) async throws -> JSON {
        try await host(stream).duel(duel, as: nil)
    }

    /// As a restart finds it.
    private mutating func restart(_ stream: StreamID, as sender: Stage.Sender) async throws {
        await hosts[stream]?.close(.goingAway)
        let stored = try #require(try await stores[stream]?.load(.one(stream)).first)
        let host = try StreamHost(stored, try environment(of: stream))
        hosts[stream] = host
        await host.tick()
        await host.connect(sender, by: .socket(1_000))
    }

    @Test func `are told to both audiences with the same scores and result`() async throws {
        let (follower, other) = (TestFollower(), TestFollower())
        _ = try await host(talk).follow(as: nil, since: nil, follower)
        _ = try await host(quiz).follow(as: nil, since: nil, other)
        let duel = try await begin()
        #expect(follower.duel?["state"] == .string("countdown"))
        #expect(follower.duel?["startsAt"] == other.duel?["startsAt"])
        try await wait(4)
        try await tap(12, in: talk)
        try await tap(5, in: quiz)
        try await wait(2)
        for each in [follower, other] {
            #expect(each.duel?["from"]?["score"] == .number(12))
            #expect(each.duel?["to"]?["score"] == .number(5))
        }
        try await wait(30)
        for stream in [talk, quiz] {
            let shown = try await shown(duel, in: stream)
            #expect(shown["state"] == .string("penalty") && shown["winner"] == .string("talk"))
            #expect(shown["from"]?["score"] == .number(12) && shown["to"]?["score"] == .number(5))
        }
        try await wait(75)
        for each in [follower, other] { #expect(each.duel == .null, "nothing stays over the picture") }
    }

    @Test mutating func `keep the points of a reaction that the host takes away`() async throws {
        try await tap(7, in: talk)
        let duel = try await begin()
        try await wait(3)
        try await tap(5, in: talk)
        try await wait(1)
        func points() async throws -> JSON? { try await shown(duel, in: talk)["from"]?["score"] }
        let before = try await points()
        var edit = InteractionEdit()
        edit.reactions = ["fire"]
        _ = try await host(talk).perform(.edit(edit), from: ann)
        #expect(try await points() == before)
        _ = try await host(talk).perform(.react(["fire": 2]), from: HostRig.bob)
        try await wait(1)
        let after = try await points()
        #expect(before == .number(5) && after == .number(7))
        // What was written down has them, too.
        try await wait(6)
        try await restart(talk, as: ann)
        #expect(try await points() == .number(7))
    }

    @Test func `show each stream's host in the other one from the countdown to the end`() async throws {
        let shows = Shared<[String]>([])
        func note() {
            for case .show(let opponent, let stream) in orders.value {
                shows.change { $0.append("\(stream) \(opponent?.description ?? "-")") }
            }
        }
        var terms = DuelTerms()
        terms.seconds = 30
        let duel = try id(
            try await host(talk).perform(.invite(quiz, terms), from: ann, isOpponentLive: true))
        note()
        try await deliver()
        #expect(shows.value.isEmpty, "not before it is agreed on")
        _ = try await host(quiz).perform(.accept(duel), from: cleo, isOpponentLive: true)
        while !orders.value.isEmpty {
            note()
            let waiting = orders.value
            orders.change { $0.removeFirst(waiting.count) }
            for case .message(let message) in waiting { await hosts[message.to]?.receive(message) }
            for host in hosts.values { try await host.settled() }
        }
        #expect(Set(shows.value) == ["talk quiz", "quiz talk"])
        shows.change { $0 = [] }
        _ = try await host(talk).perform(.leave(duel), from: ann, isOpponentLive: true)
        note()
        #expect(shows.value == ["talk -"])
    }

    @Test func `tell of an invitation nobody but the host`() async throws {
        let (viewer, invited) = (TestFollower(), TestFollower())
        _ = try await host(quiz).follow(as: HostRig.bob, since: nil, viewer)
        _ = try await host(quiz).follow(as: cleo, since: nil, invited)
        let duel = try id(try await perform(.invite(talk, DuelTerms()), in: quiz, from: cleo))
        _ = duel
        let asked = try id(try await perform(.cancel(duel), in: quiz, from: cleo))
        #expect(asked == duel)
        let next = try id(try await perform(.invite(quiz, DuelTerms()), in: talk, from: ann))
        #expect(invited.duel?["state"] == .string("invited") && invited.duel?["id"] == .string("\(next)"))
        #expect(viewer.duel == nil)
        // A host who reloads the page meanwhile is asked too.
        let late = TestFollower()
        _ = try await host(quiz).follow(as: cleo, since: nil, late)
        #expect(late.duel?["id"] == .string("\(next)"))
        await #expect(throws: StageRefusal.interaction(.unknownDuel)) {
            try await host(quiz).duel(next, as: HostRig.bob)
        }
        _ = try await perform(.decline(next), in: quiz, from: cleo)
        #expect(invited.duel?["reason"] == .string("declined"))
        #expect(viewer.duel == nil)
    }

    @Test func `only the host decides about duels`() async throws {
        await #expect(throws: StageRefusal.interaction(.notModerator)) {
            try await host(talk).perform(.invite(quiz, DuelTerms()), from: HostRig.bob, isOpponentLive: true)
        }
        await #expect(throws: StageRefusal.interaction(.notLive)) {
            try await host(talk).perform(.invite(quiz, DuelTerms()), from: ann, isOpponentLive: false)
        }
        await #expect(throws: StageRefusal.interaction(.invalid("to"))) {
            try await host(talk).perform(.invite(talk, DuelTerms()), from: ann, isOpponentLive: true)
        }
    }

    @Test func `are refused for a host who wants none, or where the gates differ`() async throws {
        var edit = InteractionEdit()
        edit.takesDuels = false
        _ = try await host(quiz).perform(.edit(edit), from: cleo)
        let told = TestFollower()
        _ = try await host(talk).follow(as: ann, since: nil, told)
        _ = try await perform(.invite(quiz, DuelTerms()), in: talk, from: ann)
        #expect(told.duel?["state"] == .string("off") && told.duel?["reason"] == .string("duels-off"))
        edit.takesDuels = true
        _ = try await host(quiz).perform(.edit(edit), from: cleo)
        #expect(try await host(quiz).interactionSettings(as: nil)["duels"] == .bool(true))
        var gate = StageEdit()
        gate.gate = .set(StageDetails.Gate(tier: "gold"))
        _ = try await host(talk).perform(.edit(gate), from: ann)
        _ = try await perform(.invite(quiz, DuelTerms()), in: talk, from: ann)
        #expect(told.duel?["reason"] == .string("other-gate"))
        _ = try await host(quiz).perform(.edit(gate), from: cleo)
        let duel = try await begin()
        #expect(try await shown(duel, in: quiz)["state"] == .string("countdown"))
        gate.gate = .clear
        _ = try await host(talk).perform(.edit(gate), from: ann)
        try await wait(1)
        let ended = try await host(quiz).duel(duel, as: cleo)
        #expect(ended["reason"] == .string("other-gate"), "before it began")
    }

    @Test(arguments: 0..<3)
    mutating func `go on over a restart of either side or both, and both agree`(who: Int) async throws {
        let duel = try await begin()
        try await wait(5)
        try await tap(9, in: talk)
        try await tap(20, in: quiz)
        // Reactions are durable after five seconds.
        try await wait(6)
        if who != 1 { try await restart(talk, as: ann) }
        if who != 0 { try await restart(quiz, as: cleo) }
        try await tap(3, in: talk)
        try await wait(30)
        let (one, other) = (try await shown(duel, in: talk), try await shown(duel, in: quiz))
        #expect(one["winner"] == .string("quiz") && other["winner"] == .string("quiz"))
        #expect(one["from"] == other["from"] && one["to"] == other["to"])
        #expect(one["from"]?["score"] == .number(12) && one["to"]?["score"] == .number(20))
    }

    @Test mutating func `are lost by a host who does not come back after a restart`() async throws {
        let duel = try await begin(seconds: 300)
        try await wait(5)
        try await restart(talk, as: ann)
        await hosts[talk]?.disconnect(.socket(1_000))
        try await wait(25)
        for stream in [talk, quiz] {
            let shown = try await shown(duel, in: stream)
            #expect(shown["winner"] == .string("quiz") && shown["reason"] == .string("host-gone"))
        }
    }

    @Test func `are lost by a stream that ends`() async throws {
        let duel = try await begin(seconds: 300)
        try await wait(5)
        _ = try await host(quiz).perform(.end, from: cleo)
        try await deliver()
        for stream in [talk, quiz] {
            let shown = try await shown(duel, in: stream)
            #expect(shown["winner"] == .string("talk") && shown["reason"] == .string("stream-ended"))
        }
    }

    @Test func `a duel that cannot be stored did not happen`() async throws {
        let store = try #require(stores[talk])
        store.fail(with: .unavailable("full"))
        await #expect(throws: StageRefusal.self) {
            try await host(talk).perform(.invite(quiz, DuelTerms()), from: ann, isOpponentLive: true)
        }
        #expect(orders.value.isEmpty, "nothing is said of what is not durable")
        store.fail(with: nil)
        _ = try await perform(.invite(quiz, DuelTerms()), in: talk, from: ann)
    }

    @Test func `a duel's decision is tried again a second after the store refused it`() async throws {
        let inviter = try host(talk)
        let store = try #require(stores[talk])
        let duel = try id(try await perform(.invite(quiz, DuelTerms()), in: talk, from: ann))
        store.fail(with: .unavailable("full"))
        // Nobody has answered in time, and the store refuses that change.
        rig.pass(.seconds(12))
        await inviter.tick()
        let now = rig.clock.value.elapsed
        let deadline = try #require(await inviter.deadline)
        #expect(deadline > now && deadline <= now + .seconds(1))
        store.fail(with: nil)
        await inviter.tick()
        #expect(try await inviter.duel(duel, as: ann)["state"] == .string("invited"))
        rig.pass(.seconds(1))
        await inviter.tick()
        try await inviter.settled()
        #expect(try await inviter.duel(duel, as: ann)["state"] == .string("off"))
    }

    @Test func `are told to webhooks when they begin and when they end`() async throws {
        _ = try await begin()
        try await wait(36)
        for store in stores.values {
            let types = store.commits.flatMap(\.events).map(\.type).filter { $0.hasPrefix("duel.") }
            #expect(types == ["duel.started", "duel.ended"])
        }
    }
}

extension TestFollower {
    /// The one that was told of last; nil for none, `null` for that none is shown any more.
    fileprivate var duel: JSON? {
        state.withLock { state in
            state.messages.compactMap { message -> JSON? in
                if message["type"] == .string("interaction") { return message["duel"] }
                guard let duel = message["interaction"]?["duel"], duel != .null else { return nil }
                return duel
            }.last
        }
    }
}
