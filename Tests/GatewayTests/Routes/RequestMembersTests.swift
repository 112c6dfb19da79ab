import Base
import HTTP
import Synchronization
import TestSupport
import Testing

@testable import Gateway

@Suite struct `Members of JSON bodies` {
    /// Routes whose handlers read a JSON object, by what they are called.
    private static let reading: Set = [
        "playTrickle", "joinTrickle", "feedTrickle", "makeToken", "drawQRCode", "createStream", "editStream",
        "placeStream",
        "peek", "focus", "release", "ban", "writeComment", "silence", "react", "openPoll", "vote",
        "editInteraction", "giveGift", "showCard", "invite", "describeSpeaker", "requestMute", "renewToken",
        "makeLink", "addRestream", "arrangeHand", "acceptInvitation", "inviteToDuel", "leaveDuel",
        "rematchDuel", "makeClip", "choosePlayEvents", "choosePlayLayer",
    ]

    private func problem(_ response: HTTPResponse) throws -> JSON {
        #expect(response.status == 400)
        let json = try response.json(JSON.self)
        #expect(json["rule"] == .string("unknown-member"))
        return json
    }

    @Test func `are described for every route that reads one`() throws {
        let members = try WebPages.load().requestMembers
        for route in Router.routes {
            #expect(
                members.describes(route.operationID) == Self.reading.contains(route.operationID),
                "\(route.operationID)")
        }
        #expect(Self.reading.isSubset(of: Router.routes.map(\.operationID)))
    }

    @Test func `are refused by name where they are misspelt`() async throws {
        try await StageBench.run { bench in
            let token = try bench.token("ann", .host, stream: "s1")
            let made = await bench.ask(.post, "/v1/streams", token: token, body: #"{"titel":"x"}"#)
            let json = try problem(made)
            #expect(json["member"] == .string("titel"))
            #expect(json["nearest"] == .string("title"))
            guard case .array(let allowed)? = json["allowed"], case .string(let detail)? = json["detail"]
            else {
                Issue.record("\(json)")
                return
            }
            #expect(allowed.contains(.string("startsAt")))
            #expect(detail.contains("titel isn't known. Did you mean title? Allowed: "))
            // Nothing was done.
            #expect(await bench.ask(.get, "/v1/streams/s1", token: token).status == 404)
            await bench.do(.post, "/v1/streams", token: token, body: #"{"title":"x"}"#)
            let inner = await bench.ask(
                .patch, "/v1/streams/s1", token: token, body: #"{"composition":{"widht":640}}"#)
            let second = try problem(inner)
            #expect(second["member"] == .string("composition.widht"))
            #expect(second["nearest"] == .string("width"))
            let far = await bench.ask(
                .post, "/v1/streams/s1/bans", token: token, body: #"{"participant":"bob","because":1}"#)
            #expect(try problem(far)["nearest"] == .null)
        }
    }

    @Test func `are refused in a request for a token, and in what a viewer wants`() async throws {
        let bench = try Bench()
        let token = await bench.ask(
            .post, "/v1/tokens", token: try bench.token(.admin, stream: "*"),
            ["Content-Type": "application/json"], body: #"{"sub":"a","rolle":"host","stream":"s1"}"#)
        #expect(try problem(token)["nearest"] == .string("role"))
        let path = try await bench.open("whep")
        let wish = await bench.ask(
            .patch, path, ["Content-Type": "application/merge-patch+json"], body: #"{"maxHight":360}"#)
        #expect(try problem(wish)["nearest"] == .string("maxHeight"))
        #expect(bench.service.state.withLock { $0.patches.isEmpty })
    }

    /// Who may not do a thing hears that first.
    @Test func `unknown members are not named to a client without a token`() async throws {
        try await StageBench.run { bench in
            let response = await bench.ask(.post, "/v1/streams", body: #"{"titel":"x"}"#)
            #expect(response.status == 401)
        }
    }

    @Test func `members whose names clients choose are allowed`() async throws {
        try await StageBench.run { bench in
            let token = try bench.token("ann", .host, stream: "s1")
            // Nobody sends, and a slow machine takes its time.
            await bench.do(.post, "/v1/streams", token: token, body: #"{"hostGraceSeconds":3600}"#)
            await bench.do(.post, "/v1/streams/s1/live", token: token)
            await bench.do(
                .post, "/v1/streams/s1/reactions", token: token, body: #"{"reactions":{"heart":1}}"#)
        }
    }

    @Test func `are refused in a sentence where none is allowed`() throws {
        let content = #"{"application/json":{"schema":{"properties":{}}}}"#
        let text =
            #"{"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":\#(content)}}}}}"#
        let members = RequestMembers(try HTTPResponse(status: 200, body: Array(text.utf8)).json(JSON.self))
        let problem = #expect(throws: Problem.self) { try members.check(["x": .null], of: "a") }
        #expect(problem?.detail == "The body's member x isn't known. No members are allowed here.")
    }

    @Test func `survive documents that make no sense`() throws {
        var random = SeededGenerator(seed: 5)
        for text in [
            "{}", #"{"paths":1}"#, #"{"paths":{"/a":{"get":{"operationId":"a","requestBody":{}}}}}"#,
        ] {
            let members = RequestMembers(
                try HTTPResponse(status: 200, body: Array(text.utf8)).json(JSON.self))
            #expect(!members.describes("a"))
        }
        // A schema that holds itself.
        let loop = JSON.object([
            "paths": .object([
                "/a": .object([
                    "post": .object([
                        "operationId": .string("a"),
                        "requestBody": .object([
                            "content": .object([
                                "application/json": .object(["schema": .object(["$ref": .string("#/x")])])
                            ])
                        ]),
                    ])
                ])
            ]), "x": .object(["properties": .object(["x": .object(["$ref": .string("#/x")])])]),
        ])
        let members = RequestMembers(loop)
        var value = JSON.object([:])
        for _ in 0..<Int.random(in: 20...40, using: &random) { value = .object(["x": value]) }
        try members.check(["x": value], of: "a")
        #expect(throws: Problem.self) { try members.check(["x": .object(["y": .null])], of: "a") }
    }
}

@Suite struct `A refusal that will pass` {
    @Test func `says when to ask again`() {
        for status in [429, 503] {
            #expect(Problem(status, nil, "x").response.headers["retry-after"] == "5")
            let known = Problem(status, nil, "x", headers: ["Retry-After": "30"]).response
            #expect(known.headers.fields.filter { $0.name == "retry-after" }.map(\.value) == ["30"])
        }
        #expect(Problem(409, nil, "x").response.headers["retry-after"] == nil)
    }

    @Test func `names the limit, and how much it is where all have the same`() {
        let slow = Problem(429, "slow-mode", "x", headers: ["Retry-After": "8"]).response
        #expect(slow.headers["ratelimit"] == #""slow-mode";r=0;t=8"#)
        #expect(slow.headers["ratelimit-policy"] == nil)
        var problem = Problem(429, "too-many-guests", "x")
        problem.quota = RateLimit.Quota(burst: 60, rate: 2)
        #expect(problem.response.headers["ratelimit"] == #""too-many-guests";r=0;t=5"#)
        #expect(problem.response.headers["ratelimit-policy"] == #""too-many-guests";q=60;w=30"#)
        #expect(Problem(503, nil, "x").response.headers["ratelimit"] == nil)
    }
}
