import Base
import Foundation
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Comments that somebody outside is asked about, in their stream's place.
@Suite(.timeLimit(.minutes(10))) struct `Comments under review in their stream` {
    /// Answers when the test says so.
    private final class Reviewer: Sendable {
        struct State: Sendable {
            var asked: [String: CheckedContinuation<Bool, Never>] = [:]
            var bodies: [JSON] = []
        }

        let state = Watched(State())

        func ask(_ event: OutboxEvent) async -> Bool {
            guard let body = try? JSONDecoder().decode(JSON.self, from: Data(event.body)),
                case .string(let text) = body["data"]?["comment"]?["text"]
            else { return false }
            return await withCheckedContinuation { continuation in
                state.change { state in
                    state.asked[text] = continuation
                    state.bodies.append(body)
                }
            }
        }

        func answer(_ text: String, _ isShown: Bool) async throws {
            try await state.wait { $0.asked[text] != nil }
            let continuation = state.change { $0.asked.removeValue(forKey: text) }
            continuation?.resume(returning: isShown)
        }
    }

    private let rig: HostRig
    private let host: StreamHost
    private let reviewer = Reviewer()
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() async throws {
        rig = try HostRig()
        let (clock, reviewer) = (rig.clock, reviewer)
        host = StreamHost(
            rig.host.id,
            StreamHost.Environment(
                store: rig.store, log: .silent, directory: rig.directory, now: { clock.value },
                runsTimer: false,
                review: CommentReviewer { event, _ in await reviewer.ask(event) }, perform: { _, _ in }))
        _ = try await host.create(host: ann.id, name: "Ann", edit: StageEdit())
        _ = try await host.perform(.goLive, from: ann)
    }

    private func write(_ text: String, as sender: Stage.Sender? = nil) -> Task<StreamComment, any Error> {
        Task { [host, bob] in
            let reply = try await host.perform(.comment(key: text, text: text), from: sender ?? bob)
            guard case .comment(let comment) = reply else { throw StageRefusal.overloaded }
            return comment
        }
    }

    private func asked(_ text: String) async throws {
        try await reviewer.state.wait { $0.asked[text] != nil }
    }

    @Test func `are shown in the order in which they came, and denied ones are not`() async throws {
        let follower = TestFollower()
        _ = try await host.follow(as: nil, since: nil, follower)
        let one = write("one")
        try await asked("one")
        let two = write("two", as: HostRig.sender("cid", .viewer))
        try await asked("two")
        let three = write("three", as: ann)
        try await asked("three")
        try await reviewer.answer("three", true)
        try await reviewer.answer("two", false)
        await rig.wait(.milliseconds(200))
        await host.tick()
        #expect(!follower.types.contains("interaction"), "nobody is told what waits behind another")
        try await reviewer.answer("one", true)
        #expect(try await one.value.number == 1)
        #expect(try await three.value.number == 2)
        await #expect(throws: StageRefusal.interaction(.reviewDenied)) { try await two.value }
        let body = try #require(reviewer.state.value.bodies.first)
        #expect(body["type"] == .string("comment.review") && body["stream"] == .string("show"))
        #expect(body["data"]?["comment"]?["author"] == .string("bob"))
        #expect(body["data"]?["comment"]?["role"] == .string("viewer"))
    }

    @Test func `are asked about once, and answered to each who sent them`() async throws {
        let first = write("same")
        try await asked("same")
        let second = write("same")
        // What comes after it in the stream's place has come after it.
        await #expect(throws: StageRefusal.self) {
            try await host.perform(.delete(7), from: bob)
        }
        try await reviewer.answer("same", true)
        #expect(try await first.value == second.value)
        #expect(reviewer.state.value.bodies.count == 1)
        #expect(try await write("same").value == first.value)
        #expect(reviewer.state.value.bodies.count == 1)
    }

    @Test func `are not written for somebody who was banned meanwhile, nor after the end`() async throws {
        let one = write("one")
        try await asked("one")
        _ = try await host.perform(.ban(bob.id), from: ann)
        try await reviewer.answer("one", true)
        await #expect(throws: StageRefusal.rejected(.banned)) { try await one.value }
        let two = write("two", as: ann)
        try await asked("two")
        _ = try await host.perform(.end, from: ann)
        try await reviewer.answer("two", true)
        await #expect(throws: StageRefusal.rejected(.ended)) { try await two.value }
    }

    @Test func `keep nobody waiting when their place closes`() async throws {
        let one = write("one")
        try await asked("one")
        await host.close(.goingAway)
        await #expect(throws: StageRefusal.overloaded) { try await one.value }
        try await reviewer.answer("one", true)
    }

    @Test func `leave all else alone while they wait`() async throws {
        let one = write("one")
        try await asked("one")
        #expect(try await host.perform(.react(["heart": 2]), from: bob) == .counted(2))
        let card = StreamCard(title: "x", link: "https://a.example", picture: nil, data: nil)
        #expect(try await host.perform(.showCard(card), from: ann) == .done)
        try await reviewer.answer("one", true)
        #expect(try await one.value.number == 1)
    }
}
