import Base
import HTTP
import TestSupport
import Testing

@testable import Gateway

@Suite struct `A request that is repeated with its key` {
    private let key: HTTPHeaders = ["Idempotency-Key": "9f4f5d0e"]
    /// Of a stream: nobody sends, and a slow machine takes its time.
    private let patient = #"{"hostGraceSeconds":3600}"#

    @Test func `is answered as the first time, and makes nothing more`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host, body: patient)
            await bench.do(.post, "/v1/streams/s1/live", token: host)
            let question = #"{"question":"Tea?","options":["Yes","No"]}"#
            let path = "/v1/streams/s1/polls"
            let first = await bench.ask(.post, path, token: host, body: question, key)
            let second = await bench.ask(.post, path, token: host, body: question, key)
            #expect(first.status == 201 && second == first)
            // Without a key there is one too many.
            #expect(await bench.ask(.post, path, token: host, body: question).status == 409)
            let other = await bench.ask(
                .post, path, token: host, body: #"{"question":"Tea!","options":["Yes","No"]}"#, key)
            #expect(other.status == 422 && other.text.contains("idempotency-key-reused"))
            let elsewhere = await bench.ask(.post, "\(path)/1/close", token: host, key)
            #expect(elsewhere.status == 422)
        }
    }

    @Test func `gets the same token or link`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host)
            let path = "/v1/streams/s1/links"
            let link = await bench.ask(.post, path, token: host, body: #"{"role":"viewer"}"#, key)
            #expect(link.status == 201)
            #expect(await bench.ask(.post, path, token: host, body: #"{"role":"viewer"}"#, key) == link)
            let invitation = try #require(try link.json(JSON.self)["token"]?.string)
            var guests: Set<String> = []
            for name in ["first", "first", "second"] {
                let guest = await bench.ask(
                    .post, "/v1/streams/s1/tokens", token: invitation, body: #"{"name":"Bob"}"#,
                    ["Idempotency-Key": name])
                #expect(guest.status == 201)
                guests.insert(guest.text)
            }
            #expect(guests.count == 2)
        }
    }

    @Test func `has one session`() async throws {
        let bench = try Bench()
        let offer: HTTPHeaders = ["Content-Type": "application/sdp", "Idempotency-Key": "k"]
        let first = await bench.ask(.post, "/whep/s1", offer, body: "v=0")
        let second = await bench.ask(.post, "/whep/s1", offer, body: "v=0")
        #expect(first.status == 201 && second == first && first.headers["location"] != nil)
        let third = await bench.ask(.post, "/whep/s1", ["Content-Type": "application/sdp"], body: "v=0")
        #expect(third.headers["location"] != first.headers["location"])
    }

    @Test func `may try again after it was refused`() async throws {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            let early = await bench.ask(.post, "/v1/streams/s1/live", token: host, key)
            #expect(early.status == 404)
            await bench.do(.post, "/v1/streams", token: host)
            #expect(await bench.ask(.post, "/v1/streams/s1/live", token: host, key).status == 200)
        }
    }

    @Test func `is another one from somebody else, and from nobody is believed without a good token`()
        async throws
    {
        try await StageBench.run { bench in
            let host = try bench.token("ann", .host, stream: "s1")
            await bench.do(.post, "/v1/streams", token: host, body: patient)
            await bench.do(.post, "/v1/streams/s1/live", token: host)
            for (name, body) in [("bob", "Hello"), ("cid", "Good evening")] {
                let made = await bench.ask(
                    .post, "/v1/streams/s1/comments", token: try bench.token(name, .viewer),
                    body: #"{"id":"c","text":"\#(body)"}"#, key)
                #expect(made.status == 201 && made.text.contains(body))
            }
            let stranger = await bench.ask(
                .post, "/v1/streams/s1/comments", token: try bench.token("bob", .viewer, stream: "s2"),
                body: #"{"id":"c","text":"Hello"}"#, key)
            #expect(stranger.status == 403)
            let forged = await bench.ask(
                .post, "/v1/streams/s1/comments", token: "x.y.z", body: #"{"id":"c","text":"Hello"}"#, key)
            #expect(forged.status == 401)
        }
    }

    @Test(arguments: ["", String(repeating: "k", count: 256)])
    func `needs a key of 1 to 255 bytes`(key: String) async throws {
        let bench = try Bench()
        let answer = await bench.ask(
            .post, "/whep/s1", ["Content-Type": "application/sdp", "Idempotency-Key": key], body: "v=0")
        #expect(answer.status == 422 && answer.text.contains("Idempotency-Key"))
    }
}

@Suite struct `A shelf of answers` {
    private var shelf = AnswerShelf()
    private let made = HTTPResponse(status: 201, body: [1])

    private func key(_ text: String, _ owner: UInt32 = 1) -> AnswerShelf.Key {
        AnswerShelf.Key(owner: .address(IPAddress(ipv4: owner)), text: text)
    }

    /// Does a request that nobody made before.
    private mutating func put(_ key: AnswerShelf.Key, at now: Int = 0) {
        guard case .first(let number) = shelf.begin(key, digest: [1], at: now) else {
            Issue.record("\(key) is there")
            return
        }
        shelf.end(key, number, with: made)
    }

    private mutating func isKept(_ key: AnswerShelf.Key, at now: Int = 0) -> Bool {
        shelf.begin(key, digest: [1], at: now) == .answered(made)
    }

    @Test mutating func `tells what is under way, what is another request, and what was answered`() {
        guard case .first(let number) = shelf.begin(key("a"), digest: [1], at: 0) else { return }
        #expect(shelf.begin(key("a"), digest: [1], at: 0) == .underWay)
        #expect(shelf.begin(key("a"), digest: [2], at: 0) == .other)
        shelf.end(key("a"), number, with: made)
        #expect(shelf.begin(key("a"), digest: [1], at: 0) == .answered(made))
        #expect(shelf.begin(key("a"), digest: [2], at: 0) == .other)
    }

    @Test(arguments: [
        nil, HTTPResponse(status: 409),
        HTTPResponse(status: 200, body: [UInt8](repeating: 0, count: AnswerShelf.longest + 1)),
    ])
    mutating func `keeps only what was made`(answer: HTTPResponse?) {
        guard case .first(let number) = shelf.begin(key("a"), digest: [1], at: 0) else { return }
        shelf.end(key("a"), number, with: answer)
        #expect(shelf.count == 0)
    }

    @Test mutating func `forgets after a day`() {
        put(key("a"))
        #expect(isKept(key("a"), at: AnswerShelf.lifetime - 1))
        #expect(!isKept(key("a"), at: AnswerShelf.lifetime))
    }

    @Test mutating func `forgets the oldest of who has many`() {
        put(key("mine", 2))
        for number in 0...AnswerShelf.ownerLimit { put(key("\(number)")) }
        #expect(shelf.count == AnswerShelf.ownerLimit + 1)
        #expect(isKept(key("1")) && isKept(key("mine", 2)))
        #expect(!isKept(key("0")))
    }

    /// One subscriber has all addresses of a /64, and would otherwise have everybody's answers forgotten.
    @Test mutating func `counts the addresses of an IPv6 network together, and still tells them apart`() {
        func key(_ low: UInt64, network: UInt64 = 1) -> AnswerShelf.Key {
            let ip = IPAddress(high: 0x2001_0DB8_0000_0000 | network, low: low)
            return AnswerShelf.Key(owner: .address(ip), text: "a")
        }
        put(key(1, network: 2))
        for low in 0...UInt64(AnswerShelf.ownerLimit) { put(key(low)) }
        #expect(shelf.count == AnswerShelf.ownerLimit + 1)
        #expect(isKept(key(1)) && isKept(key(1, network: 2)))
        #expect(!isKept(key(0)))
    }

    @Test mutating func `forgets the oldest of all`() {
        for number in 0...UInt32(AnswerShelf.limit) { put(key("a", number)) }
        #expect(shelf.count == AnswerShelf.limit)
        #expect(isKept(key("a", 1)))
        #expect(!isKept(key("a", 0)))
    }

    @Test mutating func `forgets the oldest when answers are large`() {
        let large = HTTPResponse(status: 201, body: [UInt8](repeating: 0, count: AnswerShelf.longest))
        let room = AnswerShelf.byteLimit / AnswerShelf.longest
        for owner in 0...UInt32(room) {
            guard case .first(let number) = shelf.begin(key("a", owner), digest: [1], at: 0) else { return }
            shelf.end(key("a", owner), number, with: large)
        }
        #expect(shelf.count == room && shelf.bytes == AnswerShelf.byteLimit)
        #expect(shelf.begin(key("a", 1), digest: [1], at: 0) == .answered(large))
        guard case .first = shelf.begin(key("a", 0), digest: [1], at: 0) else {
            Issue.record("it is kept")
            return
        }
    }

    /// A request that took so long that its place was given away ends without a trace.
    @Test mutating func `does not mistake one request for another`() {
        guard case .first(let number) = shelf.begin(key("slow"), digest: [1], at: 0) else { return }
        for number in 0..<AnswerShelf.ownerLimit { put(key("\(number)")) }
        guard case .first = shelf.begin(key("slow"), digest: [2], at: 0) else {
            Issue.record("it is there")
            return
        }
        shelf.end(key("slow"), number, with: made)
        #expect(shelf.begin(key("slow"), digest: [2], at: 0) == .underWay)
    }

    @Test mutating func `stays within its bounds, whatever comes`() {
        var random = SeededGenerator(seed: 11)
        for step in 0..<20_000 {
            let key = key(
                "\(Int.random(in: 0..<100, using: &random))", UInt32.random(in: 0..<200, using: &random))
            if case .first(let number) = shelf.begin(key, digest: [1], at: step), Bool.random(using: &random)
            {
                shelf.end(key, number, with: Bool.random(using: &random) ? made : nil)
            }
        }
        #expect(shelf.count <= AnswerShelf.limit && shelf.bytes <= shelf.count)
    }
}
