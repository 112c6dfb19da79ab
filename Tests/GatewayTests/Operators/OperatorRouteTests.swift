import Base
import HTTP
import Node
import TestSupport
import Testing

@testable import Gateway

@Suite(.serialized) struct `What operators see` {
    /// Somebody who publishes, as their encoder would ask.
    private func publish(_ stream: String, as name: String, _ bench: StageBench) async throws -> HTTPResponse
    {
        let token = try bench.token(name, .host, stream: stream)
        await bench.do(.post, "/v1/streams", token: token, body: "{\"id\":\"\(stream)\"}")
        let response = await bench.ask(
            .post, "/whip/\(stream)", token: token, body: try Fixtures.text("Offers/chrome-publish.sdp"),
            type: "application/sdp")
        #expect(response.status == 201)
        return response
    }

    private func sessions(_ query: String, _ bench: StageBench, _ token: String) async -> [String?] {
        let page = await bench.do(.get, "/v1/sessions\(query)", token: token)
        guard case .array(let items)? = page["sessions"] else { return [] }
        return items.map { if case .string(let id)? = $0["id"] { id } else { nil } }
    }

    @Test func `operators find a session by the label that its client got`() async throws {
        try await StageBench.run { bench in
            let admin = try bench.token("root", .admin)
            let made = try await publish("s1", as: "ann", bench)
            let label = try #require(made.headers["rostrum-session"])
            let address = try #require(made.headers["location"])
            #expect(label.count == 8 && address.hasPrefix("/whip/s1/\(label)"))
            let dossier = await bench.do(.get, "/v1/sessions/\(label)", token: admin)
            #expect(dossier["id"] == .string(label))
            #expect(dossier["purpose"] == .string("publish"))
            #expect(dossier["stream"] == .string("s1"))
            #expect(dossier["participant"] == .string("ann"))
            #expect(dossier["state"] == .string("connecting"))
            #expect(dossier["phases"]?["check"] == .null)
            guard case .number(let answered)? = dossier["phases"]?["answer"] else {
                Issue.record("\(dossier)")
                return
            }
            #expect((0..<60).contains(answered))
            guard case .array(let events)? = dossier["events"],
                case .array(let lines)? = dossier["publishing"]
            else {
                Issue.record("\(dossier)")
                return
            }
            #expect(events.compactMap { $0["event"] } == [.string("answered")])
            #expect(lines.compactMap { $0["kind"] } == [.string("audio"), .string("video")])
            // By the last part of its address, too.
            let name = try #require(address.split(separator: "/").last)
            #expect(await bench.do(.get, "/v1/sessions/\(name)", token: admin)["id"] == .string(label))
        }
    }

    /// Whoever has both could take the session over.
    @Test func `has no password in it`() async throws {
        try await StageBench.run { bench in
            let admin = try bench.token("root", .admin)
            let label = try #require(try await publish("s1", as: "ann", bench).headers["rostrum-session"])
            let dossier = await bench.do(.get, "/v1/sessions/\(label)", token: admin)
            for part in ["offer", "answer"] {
                guard case .string(let text)? = dossier[part] else {
                    Issue.record("no \(part)")
                    continue
                }
                #expect(text.contains("a=ice-ufrag:"))
                let passwords = text.split(separator: "\n").filter { $0.hasPrefix("a=ice-pwd:") }
                #expect(!passwords.isEmpty && passwords.allSatisfy { $0 == "a=ice-pwd:<secret>" })
                #expect(text.utf8.count <= 16_500)
            }
        }
    }

    @Test func `are sessions, the latest first, page by page`() async throws {
        try await StageBench.run { bench in
            let admin = try bench.token("root", .admin)
            var labels: [String] = []
            for number in 0..<5 {
                let made = try await publish("show\(number)", as: "host\(number)", bench)
                labels.append(try #require(made.headers["rostrum-session"]))
            }
            #expect(await sessions("", bench, admin) == labels.reversed())
            let page = await bench.do(.get, "/v1/sessions?limit=2", token: admin)
            #expect(page["total"] == .integer(5))
            guard case .string(let cursor)? = page["next"] else {
                Issue.record("\(page)")
                return
            }
            #expect(await sessions("?limit=2&cursor=\(cursor)", bench, admin) == [labels[2], labels[1]])
            #expect(await sessions("?stream=show3", bench, admin) == [labels[3]])
            #expect(await sessions("?identity=HOST1", bench, admin) == [labels[1]])
            #expect(await sessions("?id=\(labels[2])", bench, admin) == [labels[2]])
            #expect(await sessions("?search=show4", bench, admin) == [labels[4]])
            #expect(await sessions("?search=nothing", bench, admin) == [])
            for query in ["limit=0", "limit=201", "limit=x", "cursor=x", "cursor=-1", "state=dead"] {
                #expect(await bench.ask(.get, "/v1/sessions?\(query)", token: admin).status == 422)
            }
            let dead = await bench.ask(.get, "/v1/sessions?state=dead", token: admin)
            #expect(try dead.json(JSON.self)["detail"] == .string("state must be live or ended."))
        }
    }

    @Test func `can be ended, and is remembered`() async throws {
        try await StageBench.run { bench in
            let admin = try bench.token("root", .admin)
            let label = try #require(try await publish("s1", as: "ann", bench).headers["rostrum-session"])
            #expect(await bench.ask(.delete, "/v1/sessions/\(label)", token: admin).status == 204)
            #expect(await bench.ask(.delete, "/v1/sessions/\(label)", token: admin).status == 404)
            #expect(await sessions("", bench, admin) == [])
            #expect(await sessions("?state=ended", bench, admin) == [label])
            let dossier = await bench.do(.get, "/v1/sessions/\(label)", token: admin)
            #expect(dossier["state"] == .string("ended"))
            #expect(dossier["reason"] == .string("operator"))
        }
    }

    @Test func `the statistics agree with the sessions`() async throws {
        try await StageBench.run { bench in
            let admin = try bench.token("root", .admin)
            _ = try await publish("s1", as: "ann", bench)
            let json = await bench.do(.get, "/v1/admin/statistics", token: admin)
            #expect(json["sessions"]?["publish"] == .integer(1))
            #expect(json["sessions"]?["total"] == .integer(1))
            #expect(json["joins"]?["viewer"]?["dtls"]?["count"] == .integer(0))
            guard case .array(let workers)? = json["workers"],
                case .number(let bytes)? = json["process"]?["residentBytes"]
            else {
                Issue.record("\(json)")
                return
            }
            #expect(!workers.isEmpty && bytes > 1_000_000)
        }
    }
}
