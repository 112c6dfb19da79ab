import Base
import Foundation
import HTTP
import Interaction
import Node
import Stage
import TestSupport
import Testing

@testable import Gateway

/// A host who hears of invitations to duels.
private final class InvitedHost: SyncFollower {
    /// The ids of duels to which they were invited.
    let invitations = Watched<Set<String>>([])

    func send(_ text: String) -> SyncDelivery {
        let message = try? JSONDecoder().decode(JSON.self, from: Data(text.utf8))
        if let duel = message?["duel"], duel["state"] == .string("invited"), let id = duel["id"]?.string {
            invitations.change { _ = $0.insert(id) }
        }
        return .queued
    }

    var isDrained: Bool { true }
    func close(_ reason: SyncClose) {}
}

/// What the routes make of duels, on a real node that carries messages between two streams.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DuelRoutes {
    /// Of the stream `quiz`.
    private let cleo = InvitedHost()

    /// Two live streams whose hosts are there.
    private func run(_ body: (StageBench, _ ann: String, _ cleo: String) async throws -> Void) async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            var tokens: [String] = []
            for (name, stream) in [("ann", "talk"), ("cleo", "quiz")] {
                let token = try bench.token(name, .host, stream: stream)
                await bench.do(.post, "/v1/streams", token: token, body: "{\"id\":\"\(stream)\"}")
                await bench.do(.post, "/v1/streams/\(stream)/live", token: token)
                try await bench.connect(name, as: .host, to: stream, name == "cleo" ? cleo : InvitedHost())
                tokens.append(token)
            }
            try await body(bench, tokens[0], tokens[1])
        }
    }

    private func refused(_ response: HTTPResponse, _ status: Int, _ rule: String) {
        #expect(
            response.status == status && response.text.contains("\"rule\":\"\(rule)\""), "\(response.text)")
    }

    private func invite(_ bench: StageBench, _ token: String) async throws -> String {
        let duel = await bench.do(
            .post, "/v1/duels", token: token,
            body: #"{"from":"talk","to":"quiz","seconds":60,"weights":{"gifts":2}}"#)
        #expect(duel["state"] == .string("invited") && duel["seconds"] == .number(60))
        #expect(duel["weights"]?["gifts"] == .number(2) && duel["weights"]?["reactions"] == .number(1))
        return "/v1/duels/\(try #require(duel["id"]?.string))"
    }

    /// Once the other stream has heard of it, and told its host.
    private func accepted(_ bench: StageBench, _ path: String, _ token: String) async throws -> HTTPResponse {
        try await cleo.invitations.wait { $0.contains { path.hasSuffix("/\($0)") } }
        return await bench.ask(.post, "\(path)/accept", token: token)
    }

    @Test func `invite, accept and leave`() async throws {
        try await run { bench, ann, cleo in
            let path = try await invite(bench, ann)
            refused(await bench.ask(.post, "\(path)/accept", token: ann), 403, "other-stream")
            refused(await bench.ask(.post, "\(path)/cancel", token: cleo), 403, "other-stream")
            let viewer = try bench.token("vic", .viewer, stream: "quiz")
            refused(await bench.ask(.post, "\(path)/accept", token: viewer), 403, "not-host")
            #expect(try await accepted(bench, path, cleo).status == 200)
            let other = try bench.token("eve", .host, stream: "elsewhere")
            refused(await bench.ask(.post, "\(path)/leave", token: other), 403, "other-stream")
            let left = await bench.do(.post, "\(path)/leave", token: ann)
            #expect(left["reason"] == .string("left") || left["reason"] == .string("cancelled"))
            refused(await bench.ask(.post, "\(path)/rematch", token: ann), 409, "in-duel")
        }
    }

    @Test func `let an admin act for either, who has to say for whom`() async throws {
        try await run { bench, ann, _ in
            let path = try await invite(bench, ann)
            let admin = try bench.token("root", .admin)
            #expect(try await accepted(bench, path, admin).status == 200)
            refused(await bench.ask(.post, "\(path)/leave", token: admin), 422, "invalid-field")
            refused(
                await bench.ask(.post, "\(path)/leave", token: admin, body: #"{"stream":"elsewhere"}"#), 422,
                "invalid-field")
            #expect(
                await bench.ask(.post, "\(path)/leave", token: admin, body: #"{"stream":"quiz"}"#).status
                    == 200)
        }
    }

    @Test func `name what is wrong with an invitation`() async throws {
        try await run { bench, ann, _ in
            for (body, field) in [
                (#"{"to":"quiz"}"#, "from"), (#"{"from":"talk"}"#, "to"),
                (#"{"from":"talk","to":"talk"}"#, "to"), (#"{"from":"talk","to":"q u"}"#, "to"),
                (#"{"from":"talk","to":"quiz","seconds":29}"#, "seconds"),
                (#"{"from":"talk","to":"quiz","penaltySeconds":601}"#, "penaltySeconds"),
                (#"{"from":"talk","to":"quiz","weights":{"gifts":0,"reactions":0}}"#, "weights"),
            ] {
                let response = await bench.ask(.post, "/v1/duels", token: ann, body: body)
                #expect(
                    response.status == 422 && response.text.contains("\"field\":\"\(field)\""),
                    "\(body): \(response.text)")
            }
            let unknown = await bench.ask(
                .post, "/v1/duels", token: ann, body: #"{"from":"talk","to":"nobody"}"#)
            refused(unknown, 409, "not-live")
            let odd = await bench.ask(
                .post, "/v1/duels", token: ann, body: #"{"from":"talk","to":"quiz","weights":{"hearts":1}}"#)
            refused(odd, 400, "unknown-member")
        }
    }

    @Test func `take so many invitations and no more`() async throws {
        try await run { bench, ann, _ in
            for _ in 0..<3 {
                let path = try await invite(bench, ann)
                await bench.do(.post, "\(path)/cancel", token: ann)
            }
            let response = await bench.ask(
                .post, "/v1/duels", token: ann, body: #"{"from":"talk","to":"quiz"}"#)
            refused(response, 429, "too-fast")
            #expect(response.headers["retry-after"] != nil)
        }
    }

    @Test func `invite once by one key`() async throws {
        try await run { bench, ann, _ in
            let key: HTTPHeaders = ["Idempotency-Key": "k1"]
            let body = #"{"from":"talk","to":"quiz"}"#
            let first = await bench.ask(.post, "/v1/duels", token: ann, body: body, key)
            #expect(first.status == 201)
            #expect(await bench.ask(.post, "/v1/duels", token: ann, body: body, key) == first)
        }
    }
}
