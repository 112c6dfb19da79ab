import Base
import Foundation
import HTTP
import Interaction
import Node
import Stage
import TestSupport
import Testing

@testable import Gateway

/// Keeps what it is told.
private final class Listener: SyncFollower {
    let told = Watched<[JSON]>([])

    func send(_ text: String) -> SyncDelivery {
        guard let message = try? JSONDecoder().decode(JSON.self, from: Data(text.utf8)) else {
            Issue.record("no JSON: \(text)")
            return .queued
        }
        told.change { $0.append(message) }
        return .queued
    }

    var isDrained: Bool { true }
    func close(_: SyncClose) {}

    /// Returns once it was told something with a member that is so.
    func hear(_ member: String, _ isSo: @escaping @Sendable (JSON) -> Bool = { _ in true }) async throws {
        try await told.wait { $0.contains { $0[member].map(isSo) ?? false } }
    }
}

/// What those who follow are told on a real node, against `asyncapi.json`.
@Suite(.timeLimit(.minutes(10))) struct `What followers are told` {
    private let check: SchemaCheck
    private let asyncAPI: JSON

    init() throws {
        let pages = try WebPages.load()
        asyncAPI = try pages.asyncAPI.json(JSON.self)
        let openAPI = try pages.openAPI.json(JSON.self)
        check = SchemaCheck(documents: ["openapi.json": openAPI, "asyncapi.json": asyncAPI])
    }

    /// Checks messages by the schemas that these keys of the document name, by their type.
    private func expect(_ messages: [JSON], as keys: [String: String]) {
        for message in messages {
            let key = message["type"]?.string.flatMap { keys[$0] } ?? ""
            guard let schema = asyncAPI["components"]?["messages"]?[key]?["payload"] else {
                Issue.record("not described: \(message.text)")
                continue
            }
            let faults = check.faults(of: message, as: schema, in: "asyncapi.json")
            #expect(faults.isEmpty, "\(key): \(faults), \(message.text)")
        }
    }

    private static let streamKeys = [
        "snapshot": "streamSnapshot", "change": "streamChange", "you": "you", "mute": "streamMute",
        "heartbeat": "heartbeat", "interaction": "interaction",
        "interaction-snapshot": "interactionSnapshot", "commented": "commented", "refused": "refused",
    ]
    private static let feedKeys = [
        "snapshot": "feedSnapshot", "change": "feedChange", "heartbeat": "feedHeartbeat",
    ]

    @Test func `of a stream is described, whatever happens there`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "talk")
            let viewer = try bench.token("bob", .viewer, stream: "talk")
            let shop = try bench.token("shop", .viewer, stream: "talk", capabilities: [.giveGifts])
            let (path, talk) = ("/v1/streams/talk", try #require(StreamID("talk")))
            // Nobody sends, and a slow machine takes its time.
            let stream = #"{"title":"Evening talk","hostGraceSeconds":3600}"#
            await bench.do(.post, "/v1/streams", token: host, body: stream)
            let bob = Stage.Sender(
                id: try #require(ParticipantID("bob")), name: "Bob", authority: .viewer)
            let listener = Listener()
            let stop = try await bench.node.follow(talk, as: bob, since: nil, until: nil, listener)
            await bench.do(.post, "\(path)/live", token: host)
            await bench.do(
                .patch, path, token: host,
                body: #"{"composition":{"width":640,"height":360},"layers":["player"],"title":null}"#)
            await bench.do(.post, "\(path)/participants", token: viewer)
            await bench.do(.post, "\(path)/hands", token: viewer)
            await bench.do(.post, "\(path)/invitations", token: host, body: #"{"participant":"bob"}"#)
            await bench.do(.post, "\(path)/invitations/bob/accept", token: viewer)
            await bench.do(.post, "\(path)/speakers/bob/mute", token: host, body: #"{"kind":"video"}"#)
            await bench.do(.patch, "\(path)/speakers/bob", token: viewer, body: #"{"videoMuted":true}"#)
            await bench.do(.delete, "\(path)/speakers/bob", token: viewer)
            await bench.do(
                .patch, "\(path)/interaction", token: host,
                body:
                    #"{"gifts":{"currency":"EUR","kinds":[{"id":"rose","name":"Rose","picture":"/rose.webp","price":1}]}}"#
            )
            await bench.do(.post, "\(path)/comments", token: viewer, body: #"{"id":"c","text":"Hello"}"#)
            await bench.do(.put, "\(path)/comments/1/pin", token: host)
            await bench.do(.post, "\(path)/reactions", token: viewer, body: #"{"reactions":{"heart":2}}"#)
            await bench.do(
                .post, "\(path)/polls", token: host, body: #"{"question":"Tea?","options":["Yes","No"]}"#)
            await bench.do(.put, "\(path)/polls/1/vote", token: viewer, body: #"{"options":[0]}"#)
            await bench.do(
                .put, "\(path)/gifts/o-1", token: shop,
                body: #"{"giver":"bob","gift":"rose","price":{"amount":1,"currency":"EUR"}}"#)
            await bench.do(
                .put, "\(path)/card", token: host, body: #"{"title":"Pot","link":"https://example.org"}"#)
            for member in ["reactions", "giftTotals", "ranks", "card", "settings", "pinned", "poll"] {
                try await listener.hear(member)
            }
            let late = Listener()
            let leave = try await bench.node.follow(talk, as: bob, since: nil, until: nil, late)
            try await late.hear("interaction")
            await bench.do(.delete, "\(path)/comments/1", token: host)
            try await listener.hear("deleted")
            await bench.do(.post, "\(path)/end", token: host)
            try await listener.hear("stream") { $0["state"] == .string("ended") }
            let told = listener.told.value
            expect(told + late.told.value, as: Self.streamKeys)
            let version = try #require(told.last { $0["version"] != nil }?["version"])
            guard case .number(let number) = version else { return }
            let again = Listener()
            let end = try await bench.node.follow(
                talk, as: bob, since: UInt64(number), until: nil, again)
            try await again.hear("interaction")
            expect(again.told.value, as: Self.streamKeys)
            let seen = Set((told + again.told.value).compactMap { $0["type"]?.string })
            #expect(
                seen.isSuperset(of: [
                    "snapshot", "change", "you", "mute", "interaction", "interaction-snapshot",
                ]))
            for stop in [stop, leave, end] { await stop() }
        }
    }

    @Test func `on a socket in answer is described`() {
        let refused = SyncAnswer.text(
            Problem(429, "slow-mode", "Wait.", headers: ["Retry-After": "8"]),
            to: .comment(key: "c", text: "Hello"))
        let silent = SyncAnswer.text(Problem(422, "unknown-reaction", "No."), to: .react(["x": 1]))
        let beat = SyncNotice.heartbeat.text(["version": .integer(1)])
        let messages = [refused, silent, beat].compactMap {
            try? JSONDecoder().decode(JSON.self, from: Data($0.utf8))
        }
        #expect(messages.count == 3)
        expect(messages, as: Self.streamKeys)
    }

    @Test func `of the feed is described`() async throws {
        try await StageBench.run { bench in
            let listener = Listener()
            let everything = FeedReader(scope: .all, sender: nil, standing: .all)
            let following = await bench.node.followFeed(everything, limit: 20, until: nil, listener)
            for name in ["talk", "quiz"] {
                let host = try bench.token("ann", .host, stream: name)
                // Nobody sends, and a slow machine takes its time.
                let stream = #"{"id":"\#(name)","hostGraceSeconds":3600}"#
                await bench.do(.post, "/v1/streams", token: host, body: stream)
                await bench.do(.post, "/v1/streams/\(name)/live", token: host)
                try await listener.hear("added") { $0.array?.first?["item"]?["id"] == .string(name) }
            }
            let host = try bench.token("ann", .host, stream: "quiz")
            await bench.do(.patch, "/v1/streams/quiz", token: host, body: #"{"title":"Quiz"}"#)
            try await listener.hear("edited")
            let admin = try bench.token("op", .admin)
            await bench.do(.patch, "/v1/streams/talk/placement", token: admin, body: #"{"pinned":0}"#)
            await bench.do(.patch, "/v1/streams/quiz/placement", token: admin, body: #"{"pinned":0}"#)
            await bench.do(.post, "/v1/streams/quiz/end", token: host)
            try await listener.hear("ended")
            expect(listener.told.value, as: Self.feedKeys)
            await following.stop()
        }
    }
}
