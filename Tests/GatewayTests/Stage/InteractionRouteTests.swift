import Base
import HTTP
import Interaction
import TestSupport
import Testing

@testable import Gateway

/// What the routes make of what an audience wants; the rules themselves are tested with the machine.
@Suite(.serialized) struct InteractionRoutes {
    /// Somebody's live stream, and its path.
    private func run(_ body: (StageBench, String) async throws -> Void) async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            let host = try bench.token("ann", .host)
            await bench.do(.post, "/v1/streams", token: host, body: #"{"id":"s1"}"#)
            await bench.do(.post, "/v1/streams/s1/live", token: host)
            try await body(bench, "/v1/streams/s1")
        }
    }

    private func refused(_ response: HTTPResponse, _ status: Int, _ rule: String) {
        #expect(
            response.status == status && response.text.contains("\"rule\":\"\(rule)\""), "\(response.text)")
    }

    @Test func `take, list and take away comments`() async throws {
        try await run { bench, path in
            let bob = try bench.token("bob", .viewer)
            let body = #"{"id":"c1","text":" <b>hi</b>\n\u202Ethere "}"#
            let made = await bench.do(.post, "\(path)/comments", token: bob, body: body)
            #expect(made["text"] == .string("<b>hi</b> there") && made["number"] == .number(1))
            #expect(made["name"] == .string("Bob") && made["role"] == .string("viewer"))
            #expect(await bench.do(.post, "\(path)/comments", token: bob, body: body) == made)
            await bench.do(.post, "\(path)/comments", token: bob, body: #"{"id":"c2","text":"two"}"#)
            let page = await bench.do(.get, "\(path)/comments?limit=1", token: bob)
            #expect(page["more"] == .bool(true))
            let after = await bench.do(.get, "\(path)/comments?after=1", token: bob)
            guard case .array(let comments) = after["comments"] else {
                throw Interaction.Refusal.unknownComment
            }
            #expect(comments.map { $0["text"] } == [.string("two")])
            let cid = try bench.token("cid", .viewer)
            refused(await bench.ask(.delete, "\(path)/comments/1", token: cid), 403, "not-host")
            #expect(await bench.ask(.delete, "\(path)/comments/1", token: bob).status == 204)
            refused(await bench.ask(.delete, "\(path)/comments/1", token: bob), 404, "unknown-comment")
            for wrong in ["before=x", "after=-1", "limit=0", "limit=201"] {
                refused(await bench.ask(.get, "\(path)/comments?\(wrong)", token: bob), 422, "invalid-field")
            }
        }
    }

    @Test(arguments: [
        (#"{"id":"c1"}"#, 422, "invalid-field"), (#"{"text":"x"}"#, 422, "invalid-field"),
        (#"{"id":"c 1","text":"x"}"#, 422, "invalid-field"), (#"{"id":"c1","text":7}"#, 422, "invalid-field"),
        (#"{"id":"c1","text":"\u0000\u200b"}"#, 422, "empty-comment"), ("[]", 400, "malformed-request"),
        (#"{"id":"c1","text":"\#(String(repeating: "x", count: 301))"}"#, 422, "long-comment"),
    ])
    func `refuse comments that make no sense`(body: String, status: Int, rule: String) async throws {
        try await run { bench, path in
            let bob = try bench.token("bob", .viewer)
            refused(await bench.ask(.post, "\(path)/comments", token: bob, body: body), status, rule)
        }
    }

    @Test func `say when somebody may write again`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            await bench.do(.patch, "\(path)/interaction", token: host, body: #"{"slowMode":30}"#)
            let bob = try bench.token("bob", .viewer)
            await bench.do(.post, "\(path)/comments", token: bob, body: #"{"id":"c1","text":"one"}"#)
            let again = await bench.ask(
                .post, "\(path)/comments", token: bob, body: #"{"id":"c2","text":"two"}"#)
            refused(again, 429, "slow-mode")
            #expect(again.headers["retry-after"] == "30")
            #expect(
                await bench.ask(.put, "\(path)/silences/cid", token: host, body: #"{"seconds":60}"#).status
                    == 204)
            let cid = try bench.token("cid", .viewer)
            let silenced = await bench.ask(
                .post, "\(path)/comments", token: cid, body: #"{"id":"c1","text":"x"}"#)
            refused(silenced, 403, "silenced")
            #expect(silenced.headers["retry-after"] != nil)
            let settings = await bench.do(.get, "\(path)/interaction", token: host)
            #expect(settings["silenced"]?["cid"] != nil)
            #expect(await bench.do(.get, "\(path)/interaction", token: cid)["silenced"] == nil)
        }
    }

    @Test func `let those comment whose token names the tier that the host wants`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            let (bob, mia) = (
                try bench.token("bob", .viewer), try bench.token("mia", .viewer, tiers: ["gold"])
            )
            let gold = #"{"commentTier":"gold"}"#
            let settings = await bench.do(.patch, "\(path)/interaction", token: host, body: gold)
            #expect(settings["commentTier"] == .string("gold"))
            let comment = #"{"id":"c1","text":"one"}"#
            refused(
                await bench.ask(.post, "\(path)/comments", token: bob, body: comment), 403, "members-only")
            #expect(await bench.ask(.post, "\(path)/comments", token: mia, body: comment).status == 201)
            #expect(await bench.ask(.get, "\(path)/comments", token: bob).status == 200)
            for wrong in [#"{"commentTier":"a b"}"#, #"{"commentTier":""}"#, #"{"commentTier":7}"#] {
                let answer = await bench.ask(.patch, "\(path)/interaction", token: host, body: wrong)
                refused(answer, 422, "invalid-field")
                #expect(answer.text.contains("commentTier"))
            }
            // Who edits something else leaves it as it is.
            let slow = #"{"slowMode":0}"#
            let kept = await bench.do(.patch, "\(path)/interaction", token: host, body: slow)
            #expect(kept["commentTier"] == .string("gold"))
            let nothing = #"{"commentTier":null}"#
            let open = await bench.do(.patch, "\(path)/interaction", token: host, body: nothing)
            #expect(open["commentTier"] == .null)
            #expect(await bench.ask(.post, "\(path)/comments", token: bob, body: comment).status == 201)
        }
    }

    @Test func `count taps of those who are known, and tell others how to become so`() async throws {
        try await run { bench, path in
            let bob = try bench.token("bob", .viewer)
            let body = #"{"reactions":{"heart":7}}"#
            #expect(
                await bench.do(.post, "\(path)/reactions", token: bob, body: body)
                    == .object(["counted": .number(7)]))
            let many = await bench.do(
                .post, "\(path)/reactions", token: bob, body: #"{"reactions":{"heart":1e9}}"#)
            #expect(many == .object(["counted": .number(33)]))
            for wrong in [#"{"reactions":{"heart":0.5}}"#, #"{"reactions":[1]}"#, #"{"reactions":{}}"#, "{}"]
            {
                refused(
                    await bench.ask(.post, "\(path)/reactions", token: bob, body: wrong), 422, "invalid-field"
                )
            }
            refused(
                await bench.ask(.post, "\(path)/reactions", token: bob, body: #"{"reactions":{"x":1}}"#), 422,
                "unknown-reaction")
            let other = try bench.token("eve", .viewer, stream: "other")
            refused(
                await bench.ask(.post, "\(path)/reactions", token: other, body: body), 403, "other-stream")
            #expect(
                await bench.ask(.post, "\(path)/comments", body: #"{"id":"c1","text":"x"}"#).status == 401)
        }
    }

    @Test func `tell what is right in a quiz to its host, and to all when it is over`() async throws {
        try await run { bench, path in
            let (host, bob) = (try bench.token("ann", .host), try bench.token("bob", .viewer))
            func body(_ right: String) -> String {
                #"{"question":"x","options":["a","b","c"],"right":\#(right)}"#
            }
            for wrong in ["[]", "[3]", "[0,1]", "1", "[0.5]"] {
                let answer = await bench.ask(.post, "\(path)/polls", token: host, body: body(wrong))
                refused(answer, 422, "invalid-field")
                #expect(answer.text.contains("\"field\":\"right\""))
            }
            await bench.do(.post, "\(path)/polls", token: host, body: body("[1]"))
            refused(
                await bench.ask(.put, "\(path)/polls/1/vote", token: host, body: #"{"options":[1]}"#), 403,
                "knows-answer")
            let vote = await bench.do(
                .put, "\(path)/polls/1/vote", token: bob, body: #"{"options":[1]}"#)
            let open = await bench.do(.get, "\(path)/polls/1", token: bob)
            for view in [vote, open] {
                #expect(view["quiz"] == .bool(true) && view["results"] == .string("closed"))
                #expect(view["voters"] == .number(1))
                #expect(!view.text.contains("right") && !view.text.contains("winners"))
            }
            #expect(await bench.do(.get, "\(path)/polls/1", token: host)["rightVoters"] == .number(1))
            let over = await bench.do(.post, "\(path)/polls/1/close", token: host)
            var seen = await bench.do(.get, "\(path)/polls/1", token: bob)
            seen["vote"] = nil
            #expect(seen == over && over["rightVoters"] == .number(1))
            guard case .array(let options) = over["options"], case .array(let winners) = over["winners"]
            else { throw Interaction.Refusal.unknownPoll }
            #expect(options.map { $0["right"] } == [.bool(false), .bool(true), .bool(false)])
            #expect(winners.map { $0["name"] } == [.string("Bob")])
        }
    }

    @Test func `say what pages show of it`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            let usual = await bench.do(.get, "\(path)/interaction", token: host)
            let names = ["comments", "composer", "reactions", "gifts", "ranks", "poll", "card", "duel"]
            #expect(usual["widgets"] == .array(names.map { .string($0) }))
            let body = #"{"widgets":["barrage","card"]}"#
            let edited = await bench.do(.patch, "\(path)/interaction", token: host, body: body)
            #expect(edited["widgets"] == .array([.string("barrage"), .string("card")]))
            for wrong in [
                #"{"widgets":["hearts"]}"#, #"{"widgets":["card","card"]}"#, #"{"widgets":"card"}"#,
                #"{"widgets":[1]}"#,
            ] {
                let response = await bench.ask(.patch, "\(path)/interaction", token: host, body: wrong)
                refused(response, 422, "invalid-field")
            }
            let bob = try bench.token("bob", .viewer)
            refused(
                await bench.ask(.patch, "\(path)/interaction", token: bob, body: body), 403, "not-host")
        }
    }

    @Test func `arrange those who wait, and take them in with sound alone`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            for name in ["bob", "cid"] {
                let token = try bench.token(name, .viewer)
                let raised = await bench.do(.post, "\(path)/hands", token: token)
                #expect(raised["you"]?["handPlace"] == .number(name == "bob" ? 1 : 2))
            }
            await bench.do(.patch, "\(path)/hands/cid", token: host, body: #"{"place":1}"#)
            await bench.do(.patch, "\(path)/hands/bob", token: host, body: #"{"held":true}"#)
            let hands = await bench.do(.get, "\(path)/participants", token: host)["raisedHands"]
            #expect(hands?["cid"]?["order"] == .number(1) && hands?["cid"]?["held"] == .bool(false))
            #expect(hands?["bob"]?["order"] == .number(2) && hands?["bob"]?["held"] == .bool(true))
            for wrong in [
                #"{}"#, #"{"place":0}"#, #"{"place":101}"#, #"{"place":1,"held":true}"#, #"{"held":1}"#,
                #"{"place":1.5}"#,
            ] {
                let response = await bench.ask(.patch, "\(path)/hands/cid", token: host, body: wrong)
                #expect(response.status == 422 && response.text.contains("invalid-field"), "\(wrong)")
            }
            refused(
                await bench.ask(.patch, "\(path)/hands/zoe", token: host, body: #"{"held":true}"#), 404,
                "hand-not-raised")
            await bench.do(.patch, path, token: host, body: #"{"maxSpeakers":1}"#)
            for name in ["bob", "cid"] {
                await bench.do(
                    .post, "\(path)/invitations", token: host, body: #"{"participant":"\#(name)"}"#)
            }
            let (bob, cid) = (try bench.token("bob", .viewer), try bench.token("cid", .viewer))
            let accepted = await bench.do(
                .post, "\(path)/invitations/bob/accept", token: bob, body: #"{"videoMuted":true}"#)
            #expect(accepted["you"]?["videoMuted"] == .bool(true))
            #expect(accepted["you"]?["audioMuted"] == .bool(false))
            let full = await bench.ask(.post, "\(path)/invitations/cid/accept", token: cid)
            refused(full, 409, "stage-full")
            #expect(full.text.contains("It has room for one guest besides the host."))
            refused(
                await bench.ask(.patch, path, token: host, body: #"{"maxSpeakers":50}"#), 422, "invalid-field"
            )
        }
    }

    @Test func `take gifts of a shop, once for each key`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            let catalogue =
                #"{"gifts":{"currency":"EUR","kinds":[{"id":"rose","name":"Rose","picture":"🌹","price":100}]}}"#
            let settings = await bench.do(.patch, "\(path)/interaction", token: host, body: catalogue)
            #expect(settings["gifts"]?["currency"] == .string("EUR"))
            let shop = try bench.token("shop", .viewer, capabilities: [.giveGifts])
            let body =
                #"{"giver":"bob","name":"Bob","gift":"rose","count":3,"price":{"amount":100,"currency":"EUR"}}"#
            let gift = await bench.do(.put, "\(path)/gifts/k1", token: shop, body: body)
            #expect(gift["number"] == .number(1) && gift["combo"] == .number(3))
            #expect(gift["key"] == .string("k1") && gift["price"]?["amount"] == .number(100))
            #expect(await bench.do(.put, "\(path)/gifts/k1", token: shop, body: body) == gift)
            let other = body.replacing("3", with: "4")
            refused(
                await bench.ask(.put, "\(path)/gifts/k1", token: shop, body: other), 409, "gift-key-reused")
            let page = await bench.do(.get, "\(path)/gifts?after=0", token: host)
            #expect(page["gifts"] == .array([gift]) && page["totals"]?["value"] == .number(300))
            let ranks = await bench.do(.get, "\(path)/ranks/givers", token: host)
            #expect(
                ranks["ranks"]
                    == .array([
                        .object([
                            "participant": .string("bob"), "name": .string("Bob"), "value": .number(300),
                        ])
                    ]))
            #expect(ranks["period"] == .string("stream") && ranks["currency"] == .string("EUR"))
            let ofDay = await bench.do(.get, "\(path)/ranks/givers?period=day", token: host)
            #expect(ofDay["ranks"] == ranks["ranks"] && ofDay["period"] == .string("day"))
            let fans = await bench.do(.get, "\(path)/ranks/fans", token: host)
            #expect(fans["ranks"] == .array([]) && fans["currency"] == .null)
            refused(await bench.ask(.get, "\(path)/ranks/talkers", token: host), 404, "unknown-rank")
            refused(
                await bench.ask(.get, "\(path)/ranks/fans?period=week", token: host), 422, "invalid-field")
            let elsewhere = try bench.token("shop", .viewer, stream: "other", capabilities: [.giveGifts])
            refused(
                await bench.ask(.put, "\(path)/gifts/k2", token: elsewhere, body: body), 403, "other-stream")
            refused(await bench.ask(.put, "\(path)/gifts/k2", token: host, body: body), 403, "not-shop")
            for wrong in [
                body.replacing("3", with: "-1"), body.replacing("3", with: "1e300"),
                body.replacing("3", with: "0.5"), body.replacing("3", with: "10001"),
                body.replacing("100", with: "-100"), body.replacing("100", with: "1e18"),
                #"{"giver":"bob","gift":"rose","count":1}"#, #"{"giver":"","gift":"rose"}"#,
                #"{"giver":"bob","gift":"rose","price":7}"#,
            ] {
                refused(
                    await bench.ask(.put, "\(path)/gifts/k2", token: shop, body: wrong), 422, "invalid-field")
            }
            for wrong in [#"{"gifts":7}"#, #"{"gifts":{"currency":"EUR","kinds":[7]}}"#, #"{"gifts":{}}"#] {
                refused(
                    await bench.ask(.patch, "\(path)/interaction", token: host, body: wrong), 422,
                    "invalid-field")
            }
            for wrong in ["after=x", "after=-1", "limit=0", "limit=201"] {
                refused(await bench.ask(.get, "\(path)/gifts?\(wrong)", token: host), 422, "invalid-field")
            }
        }
    }

    @Test func `take a card of the host, and refuse one that pages cannot show`() async throws {
        try await run { bench, path in
            let host = try bench.token("ann", .host)
            let card =
                #"{"title":"Tea \u202E pot","link":"https://shop.example/t?a=1","data":{"id":[7,null]}}"#
            #expect(await bench.ask(.put, "\(path)/card", token: host, body: card).status == 204)
            let large = String(repeating: "x", count: 2_047)
            for (wrong, field) in [
                (#"{"link":"https://a.example"}"#, "title"), (#"{"title":"x"}"#, "link"),
                (#"{"title":"","link":"https://a.example"}"#, "title"),
                (#"{"title":"x","link":"http://a.example"}"#, "link"),
                (#"{"title":"x","link":"https://"}"#, "link"),
                (#"{"title":"x","link":"javascript:alert(1)"}"#, "link"),
                (#"{"title":"x","link":"https://a.example/\"onclick="}"#, "link"),
                (#"{"title":"x","link":"https://a.example","picture":"data:text/html,x"}"#, "picture"),
                (#"{"title":"x","link":"https://a.example","data":"\#(large)"}"#, "data"),
            ] {
                let response = await bench.ask(.put, "\(path)/card", token: host, body: wrong)
                refused(response, 422, "invalid-field")
                #expect(response.text.contains("\"field\":\"\(field)\""))
            }
            #expect(await bench.ask(.delete, "\(path)/card", token: host).status == 204)
        }
    }

    @Test func `let moderators do what their token says, in their own stream`() async throws {
        try await run { bench, path in
            let mod = try bench.token("mod", .viewer, stream: "s1", capabilities: [.moderate])
            let bob = try bench.token("bob", .viewer)
            await bench.do(.post, "\(path)/comments", token: bob, body: #"{"id":"c1","text":"one"}"#)
            #expect(await bench.ask(.put, "\(path)/comments/1/pin", token: mod).status == 204)
            #expect(await bench.ask(.delete, "\(path)/pin", token: mod).status == 204)
            let shadow = #"{"seconds":60,"shadow":true}"#
            #expect(await bench.ask(.put, "\(path)/silences/bob", token: mod, body: shadow).status == 204)
            await bench.do(.post, "\(path)/comments", token: bob, body: #"{"id":"c2","text":"two"}"#)
            #expect(await bench.ask(.delete, "\(path)/comments/1", token: mod).status == 204)
            let settings = await bench.do(.get, "\(path)/interaction", token: mod)
            #expect(settings["silenced"]?["bob"]?["shadow"] == .bool(true))
            for (token, count) in [(bob, 1), (mod, 0)] {
                let page = await bench.do(.get, "\(path)/comments", token: token)
                guard case .array(let comments) = page["comments"] else {
                    throw Interaction.Refusal.unknownComment
                }
                #expect(comments.count == count)
            }
            #expect(await bench.ask(.delete, "\(path)/silences/bob", token: mod).status == 204)
            refused(
                await bench.ask(.put, "\(path)/silences/ann", token: mod, body: shadow), 409, "host-speaks")
            refused(
                await bench.ask(.patch, "\(path)/interaction", token: mod, body: #"{"slowMode":9}"#), 403,
                "not-host")
            refused(await bench.ask(.get, "\(path)/audit", token: mod), 403, "not-host")
            let audit = await bench.do(.get, "\(path)/audit", token: try bench.token("ann", .host))
            guard case .array(let entries) = audit["entries"] else {
                throw Interaction.Refusal.unknownComment
            }
            #expect(entries.count == 5 && entries.allSatisfy { $0["by"] == .string("mod") })
            let foreign = try bench.token("mod", .viewer, stream: "other", capabilities: [.moderate])
            refused(await bench.ask(.delete, "\(path)/comments/1", token: foreign), 403, "other-stream")
        }
    }
}

@Suite struct SyncMessages {
    @Test(arguments: [
        (#"{"type":"comment","id":"c1","text":"hi"}"#, SyncMessage.command(.comment(key: "c1", text: "hi"))),
        (#"{"type":"react","reactions":{"heart":3}}"#, .command(.react(["heart": 3]))),
        (#"{"type":"heartbeat"}"#, nil), (#"{"type":"comment","id":"c1"}"#, nil),
        (#"{"type":"react","reactions":{"heart":0.5}}"#, nil),
        (#"{"type":"react","reactions":{"heart":1e99}}"#, nil),
        (#"{"type":"session","id":"no"}"#, nil), ("", nil), ("[]", nil), ("{", nil),
        (#"{"type":"comment","id":"c1","text":"\#(String(repeating: "x", count: 7_000))"}"#, nil),
    ])
    func `mean something, or nothing`(text: String, message: SyncMessage?) {
        #expect(SyncMessage(parsing: text) == message)
    }

    @Test func `that are cut or garbled crash nothing`() {
        var random = SeededGenerator(seed: 11)
        let whole = Array(#"{"type":"react","reactions":{"heart":3,"fire":12}}"#.utf8)
        for _ in 0..<2_000 {
            var bytes = whole
            bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            let cut = bytes.prefix(Int.random(in: 0...bytes.count, using: &random))
            _ = SyncMessage(parsing: String(decoding: cut, as: UTF8.self))
        }
    }
}
