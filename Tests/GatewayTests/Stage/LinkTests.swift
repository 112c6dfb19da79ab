import Base
import Foundation
import HTTP
import Node
import Stage
import TestSupport
import Testing

@testable import Gateway

@Suite struct Links {
    /// Makes a link as the host, and gives its token.
    private func link(_ bench: StageBench, _ role: String, stream: String = "s1") async throws -> String {
        let host = try bench.token("ann", .host, stream: stream)
        let link = await bench.do(
            .post, "/v1/streams/\(stream)/links", token: host, body: #"{"role":"\#(role)"}"#)
        return try #require(link["token"]?.string)
    }

    private func read(_ text: String?, _ bench: StageBench) throws -> Token {
        try bench.authority.verify(try #require(text), now: Int(Date().timeIntervalSince1970))
    }

    @Test(arguments: [("speaker", "live"), ("viewer", "watch")])
    func `lead to the page of their role`(role: String, page: String) async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            let response = await bench.ask(
                .post, "/v1/streams/s1/links", token: host, body: #"{"role":"\#(role)","ttl":60}"#,
                ["Host": "example.org:8443"])
            #expect(response.status == 201)
            #expect(response.headers["cache-control"] == "no-store")
            let link = try response.json(JSON.self)
            let token = try #require(link["token"]?.string)
            #expect(link["path"]?.string == "/\(page)/s1#token=\(token)")
            #expect(link["url"]?.string == "http://example.org:8443/\(page)/s1#token=\(token)")
            #expect(link["role"]?.string == role)
            let expiry = try #require(link["expiresAt"]?.string.flatMap { WallTime($0) })
            #expect(expiry.milliseconds == Int64(bench.now() + 60) * 1_000)
        }
    }

    @Test(arguments: [("speaker", Role.speaker), ("viewer", .viewer)])
    func `give everybody who opens them a token of their own`(name: String, role: Role) async throws {
        let capabilities: Set<Capability> = role == .speaker ? [.joinBackstage] : []
        try await StageBench.run { bench in
            await bench.do(.post, "/v1/streams", token: try bench.token("ann", .host, stream: "s1"))
            let link = try await link(bench, name)
            var people: Set<ParticipantID> = []
            for person in [#"{"name":" Bea "}"#, ""] {
                let response = await bench.ask(
                    .post, "/v1/streams/s1/tokens", token: link, body: person)
                #expect(response.status == 201, "\(response.text)")
                let answer = try response.json(JSON.self)
                let token = try read(answer["token"]?.string, bench)
                #expect(token.role == role && token.capabilities == capabilities)
                #expect(token.scope == .one(try #require(StreamID("s1"))))
                #expect(token.name == (person.isEmpty ? nil : "Bea"))
                #expect(answer["name"] == (person.isEmpty ? .null : .string("Bea")))
                #expect(answer["role"]?.string == name)
                #expect(answer["participant"]?.string == token.subject.description)
                people.insert(token.subject)
                await bench.do(
                    .post, "/v1/streams/s1/participants", token: try #require(answer["token"]?.string))
            }
            #expect(people.count == 2)
        }
    }

    @Test func `are good for nothing else`() async throws {
        try await StageBench.run { bench in
            await bench.do(.post, "/v1/streams", token: try bench.token("ann", .host, stream: "s1"))
            let link = try await link(bench, "speaker")
            for row in RoleMatrix.table where !row.target.hasSuffix("/tokens") {
                let target = row.target.replacing("/S", with: "/s1")
                let response = await bench.ask(row.method, target, token: link, body: row.body)
                #expect(response.status == 403, "\(row): \(response.text)")
                #expect(try response.json(JSON.self)["rule"]?.string == "invitation", "\(row)")
            }
            let tokens = await bench.ask(
                .post, "/v1/tokens", token: link, body: #"{"sub":"x","role":"admin"}"#)
            #expect(tokens.status == 403)
            for path in ["/v1/streams/s1/sync", "/v1/feed/sync"] {
                guard
                    case .refuse(let response) = bench.handler.upgrade(
                        bench.request(.get, "\(path)?access_token=\(link)"))
                else {
                    Issue.record("an invitation follows \(path)")
                    continue
                }
                #expect(response.status == 403)
            }
            // Nor for another stream, nor for long.
            #expect(await bench.ask(.post, "/v1/streams/s2/tokens", token: link).status == 403)
            let now = Int(Date().timeIntervalSince1970)
            let old = bench.authority.mint(
                Invitation(
                    stream: try #require(StreamID("s1")), role: .viewer, issued: now - 100, expires: now - 20)
            )
            #expect(
                await bench.ask(.post, "/v1/streams/s1/tokens", token: try #require(old).exposed).status
                    == 401)
        }
    }

    @Test func `lead nowhere once the host revokes them`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host)
            let (speaker, viewer) = (try await link(bench, "speaker"), try await link(bench, "viewer"))
            await bench.do(.delete, "/v1/streams/s1/links?role=speaker", token: host)
            let refused = await bench.ask(.post, "/v1/streams/s1/tokens", token: speaker)
            #expect(refused.status == 403)
            #expect(try refused.json(JSON.self)["rule"]?.string == "link-revoked")
            #expect(await bench.ask(.post, "/v1/streams/s1/tokens", token: viewer).status == 201)
            // The next one counts, though it is of the same second.
            let next = try await link(bench, "speaker")
            #expect(await bench.ask(.post, "/v1/streams/s1/tokens", token: next).status == 201)
            await bench.do(.delete, "/v1/streams/s1/links", token: host)
            for link in [next, viewer] {
                #expect(await bench.ask(.post, "/v1/streams/s1/tokens", token: link).status == 403)
            }
            #expect(await bench.ask(.delete, "/v1/streams/s1/links?role=host", token: host).status == 422)
        }
    }

    @Test func `after a revocation, earlier tokens from links admit nobody`() async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host)
            func come(_ role: String) async throws -> String {
                let link = try await link(bench, role)
                let answer = await bench.do(.post, "/v1/streams/s1/tokens", token: link)
                return try #require(answer["token"]?.string)
            }
            let (present, away) = (try await come("speaker"), try await come("speaker"))
            let viewer = try await come("viewer")
            await bench.do(.post, "/v1/streams/s1/participants", token: present)
            let kept = await bench.do(.post, "/v1/streams/s1/tokens", token: present)
            #expect(try read(kept["token"]?.string, bench).link == read(present, bench).link)
            #expect(try read(present, bench).link?.makesSpeakers == true)
            await bench.do(.delete, "/v1/streams/s1/links", token: host)
            for (method, path) in [
                (HTTPMethod.post, "participants"), (.post, "hands"), (.post, "tokens"),
                (.get, "participants"),
            ] {
                for token in [away, viewer] {
                    let refused = await bench.ask(method, "/v1/streams/s1/\(path)", token: token)
                    #expect(refused.status == 403, "\(path): \(refused.text)")
                    #expect(try refused.json(JSON.self)["rule"]?.string == "link-revoked")
                }
                guard path != "hands" else { continue }
                #expect(await bench.ask(method, "/v1/streams/s1/\(path)", token: present).status == 200)
            }
        }
    }

    @Test func `are not exchanged by the thousand from one address`() async throws {
        try await StageBench.run(isTimeStill: true) { bench in
            let link = try await link(bench, "speaker")
            func come(_ ip: UInt32) async -> HTTPResponse {
                var request = bench.request(.post, "/v1/streams/s1/tokens", token: link)
                request.clientAddress = IPAddress(ipv4: ip)
                return await bench.handler.respond(to: request)
            }
            var statuses: [Int] = []
            for _ in 0..<70 { statuses.append(await come(0xC000_0207).status) }
            #expect(statuses.prefix(60).allSatisfy { $0 == 201 })
            #expect(statuses.dropFirst(60).allSatisfy { $0 == 429 })
            let refused = await come(0xC000_0207)
            #expect(refused.status == 429 && refused.headers["retry-after"] != nil)
            #expect(try refused.json(JSON.self)["rule"]?.string == "too-many-guests")
            #expect(await come(0xC000_0208).status == 201)
        }
    }

    @Test func `can be made before their stream, and show its recordings after`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            let link = try await link(bench, "viewer")
            for role in [Role.speaker, .viewer] {
                let early = await bench.ask(
                    .post, "/v1/streams/s1/links", token: try bench.token("bob", role, stream: "s1"),
                    body: #"{"role":"viewer"}"#)
                #expect(early.status == 403)
                #expect(try early.json(JSON.self)["rule"]?.string == "not-host")
            }
            await bench.do(.post, "/v1/streams", token: host)
            await bench.do(.post, "/v1/streams/s1/end", token: host)
            let given = await bench.ask(.post, "/v1/streams/s1/tokens", token: link)
            #expect(given.status == 201)
            let viewer = try given.json(JSON.self)["token"]?.string
            #expect(await bench.ask(.get, "/v1/streams/s1/recordings", token: viewer).status == 200)
        }
    }

    @Test(arguments: [
        (#"{}"#, "role"), (#"{"role":"host"}"#, "role"), (#"{"role":"viewer","ttl":0}"#, "ttl"),
        (#"{"role":"viewer","ttl":2592001}"#, "ttl"), (#"{"role":"viewer","ttl":"1d"}"#, "ttl"),
    ])
    func `say what cannot be`(body: String, field: String) async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            let response = await bench.ask(.post, "/v1/streams/s1/links", token: host, body: body)
            #expect(response.status == 422)
            #expect(try response.json(JSON.self)["field"]?.string == field)
        }
    }
}

@Suite struct Names {
    @Test func `are taken without a token where viewers need none`() async throws {
        let bench = try Bench()
        let json: HTTPHeaders = ["Content-Type": "application/json"]
        let response = await bench.ask(.post, "/v1/streams/s1/tokens", json, body: #"{"name":"Bea"}"#)
        #expect(response.status == 201)
        let text = try #require(try response.json(JSON.self)["token"]?.string)
        let token = try bench.authority.verify(text, now: Bench.now)
        #expect(token.role == .viewer && token.name == "Bea" && token.capabilities.isEmpty)
        #expect(token.expires == Bench.now + 43_200 && token.renewableUntil == token.expires)
        let closed = try Bench { $0.viewers = .token }
        #expect(await closed.ask(.post, "/v1/streams/s1/tokens", json, body: "{}").status == 401)
    }

    @Test(arguments: [#"{"name":""}"#, #"{"name":"   "}"#, #"{"name":5}"#, #"{"name":"a\u0007b"}"#])
    func `a name of blanks is refused`(body: String) async throws {
        let response = try await Bench().ask(
            .post, "/v1/streams/s1/tokens", ["Content-Type": "application/json"], body: body)
        #expect(response.status == 422)
        #expect(try response.json(JSON.self)["field"]?.string == "name")
    }

    @Test func `are not taken by the thousand from one address`() async throws {
        let bench = try Bench()
        func ask(_ ip: IPAddress) async -> HTTPResponse {
            var request = bench.request(.post, "/v1/streams/s1/tokens")
            request.clientAddress = ip
            return await bench.handler.respond(to: request)
        }
        let (first, second) = (IPAddress(ipv4: 0xC000_0207), IPAddress(ipv4: 0xC000_0208))
        for _ in 0..<60 { #expect(await ask(first).status == 201) }
        let refused = await ask(first)
        #expect(refused.status == 429)
        #expect(refused.headers["retry-after"] == "1")
        #expect(try refused.json(JSON.self)["type"]?.string == "urn:rostrum:problem:too-many-guests")
        #expect(await ask(second).status == 201)
    }

    @Test func `are neither given nor taken by a clock that is set`() async throws {
        let wall = Watched(Bench.now)
        let elapsed = Watched(MonotonicTime.zero + .seconds(1_000))
        let bench = try Bench(now: { wall.value }, elapsed: { elapsed.value })
        func ask() async -> Int {
            var request = bench.request(.post, "/v1/streams/s1/tokens")
            request.clientAddress = IPAddress(ipv4: 0xC000_0207)
            return await bench.handler.respond(to: request).status
        }
        for _ in 0..<60 { #expect(await ask() == 201) }
        for hours in [1, -1] {
            wall.change { $0 = Bench.now + hours * 3_600 }
            #expect(await ask() == 429)
        }
        elapsed.change { $0 = $0 + .seconds(1) }
        #expect(await ask() == 201)
    }

    @Test(.timeLimit(.minutes(10)))
    func `cost the same however many addresses took some`() async throws {
        let allowance = GuestAllowance()
        var request = HTTPRequest.made(.post, "/v1/streams/s1/tokens", token: nil, [:], body: "")
        for number in 0..<30_000 {
            request.clientAddress = IPAddress(ipv4: 0xC000_0000 + UInt32(number))
            #expect(allowance.take(request, at: .zero + .seconds(1_000)) == nil)
        }
    }

    @Test func `a participant can change the name and keeps the identity`() async throws {
        try await StageBench.run { bench in
            func rename(_ token: String, _ name: String) async throws -> (Token, JSON) {
                let answer = await bench.do(
                    .post, "/v1/streams/s1/tokens", token: token, body: #"{"name":"\#(name)"}"#)
                let now = Int(Date().timeIntervalSince1970)
                return (try bench.authority.verify(try #require(answer["token"]?.string), now: now), answer)
            }
            // Before there is a stream: a host in the lobby.
            let host = try bench.token("ann", .host, stream: "s1")
            let (early, answer) = try await rename(host, "Ann Lee")
            #expect(early.name == "Ann Lee" && early.role == .host && early.subject.description == "ann")
            #expect(answer["you"] == nil)
            let made = await bench.do(
                .post, "/v1/streams", token: try #require(answer["token"]?.string))
            #expect(made["hostName"]?.string == "Ann Lee")
            // A speaker who is not on stage yet stays a speaker.
            let sam = try bench.token("sam", .speaker, stream: "s1", capabilities: [.joinBackstage])
            let (speaker, seen) = try await rename(sam, "Sam Lee")
            #expect(speaker.name == "Sam Lee" && speaker.role == .speaker)
            #expect(speaker.subject.description == "sam" && speaker.capabilities == [.joinBackstage])
            #expect(seen["you"]?["role"]?.string == "viewer")
            let entered = await bench.do(
                .post, "/v1/streams/s1/participants", token: try #require(seen["token"]?.string))
            #expect(entered["you"]?["role"]?.string == "speaker")
            // Without a name it is kept.
            let kept = await bench.do(.post, "/v1/streams/s1/tokens", token: sam)
            let now = Int(Date().timeIntervalSince1970)
            #expect(try bench.authority.verify(try #require(kept["token"]?.string), now: now).name == "Sam")
        }
    }

    @Test func `everybody can read the settings of the server`() async throws {
        let bench = try Bench { settings in
            settings.version = "1.2.3"
            settings.viewers = .token
            settings.isDevelopment = false
            settings.records = false
            settings.makesHLS = true
            settings.longestDVR = 600
            settings.restreams = true
        }
        let response = await bench.ask(.get, "/v1/server")
        #expect(response.status == 200)
        #expect(response.headers["cache-control"] == "public, max-age=60")
        #expect(
            try response.json(JSON.self)
                == .object([
                    "viewers": .string("token"), "transcoder": .bool(true), "recordings": .bool(false),
                    "clips": .bool(false),
                    "restreams": .bool(true),
                    "rtmp": .bool(false), "srt": .bool(false), "hls": .bool(true),
                    "dvrSeconds": .integer(600),
                    "development": .bool(false),
                    "version": .string("1.2.3"),
                ]))
    }
}
