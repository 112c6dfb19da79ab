import Foundation
import Synchronization
import TestSupport
import Testing

@testable import RostrumClient

@Suite struct `The pause before the next try` {
    private var random = SeededGenerator(seed: 7)

    @Test mutating func `doubles, give or take a quarter, up to ten seconds`() {
        var backoff = Backoff()
        for expected in [0.5, 1, 2, 4, 8, 10, 10] {
            let pause = backoff.next(using: &random)
            #expect(pause >= .seconds(expected * 0.749) && pause <= .seconds(expected * 1.251))
        }
    }

    @Test mutating func `is no shorter than the server asks for, and short again once it worked`() {
        var backoff = Backoff()
        #expect(backoff.next(atLeast: .seconds(30), using: &random) == .seconds(30))
        _ = backoff.next(using: &random)
        backoff.reset()
        #expect(backoff.next(using: &random) < .milliseconds(626))
    }
}

@Suite struct `The token for a stream` {
    /// Ends in 2030.
    private static let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjE4OTM1MjgwMDB9.c2ln"
    private static let end = Date(timeIntervalSince1970: 1_893_528_000)

    /// Nobody listens there: what needs the server fails.
    private func keeper(_ source: TokenSource) throws -> TokenKeeper {
        TokenKeeper(
            HTTPClient(try #require(URL(string: "http://127.0.0.1:1"))), stream: "talk", source: source)
    }

    @Test func `is asked for once, and kept`() async throws {
        let asked = Mutex([String?]())
        let keeper = try keeper(
            TokenSource { refused in
                asked.withLock { $0.append(refused) }
                return Self.token
            })
        let before = Self.end.addingTimeInterval(-61)
        #expect(try await keeper.current(at: before) == Self.token)
        #expect(try await keeper.current(at: before) == Self.token)
        #expect(asked.withLock { $0 } == [nil])
        #expect(await keeper.identity == "ann")
    }

    @Test func `is another one after a refusal, if the source has one`() async throws {
        let keeper = try keeper(TokenSource { refused in refused == nil ? "first" : "second" })
        #expect(try await keeper.current() == "first")
        #expect(try await keeper.replacement(for: "first") == "second")
        // Whoever heard of the refusal later gets the same one.
        #expect(try await keeper.replacement(for: "first") == "second")
        #expect(try await keeper.replacement(for: "second") == nil)
    }

    @Test func `is not nobody's after its end`() async throws {
        let keeper = try keeper(.fixed(Self.token))
        #expect(try await keeper.current(at: Self.end.addingTimeInterval(-3_600)) == Self.token)
        for _ in 0..<2 {
            await #expect(throws: RostrumError.self) {
                try await keeper.current(at: Self.end.addingTimeInterval(1))
            }
        }
    }

    @Test func `is good until its end where no fresh one is to be had before`() async throws {
        let late = Self.end.addingTimeInterval(-30)
        let kept = try keeper(.fixed(Self.token))
        #expect(try await kept.current(at: late) == Self.token)
        #expect(try await kept.current(at: late) == Self.token)

        struct Failure: Error {}
        let failing = try keeper(
            TokenSource { refused in
                guard refused == nil else { throw Failure() }
                return Self.token
            })
        _ = try await failing.current(at: late)
        #expect(try await failing.current(at: late) == Self.token)

        let renewed = try keeper(TokenSource { refused in refused == nil ? Self.token : "second" })
        _ = try await renewed.current(at: late)
        #expect(try await renewed.current(at: late) == "second")
    }

    /// A speaker's token, given while the viewer's is renewed, would be lost with their place on stage.
    @Test func `is not replaced by one that was asked for before it came`() async throws {
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let (answers, answer) = AsyncStream<String?>.makeStream()
        let keeper = try keeper(
            TokenSource { _ in
                ask.yield()
                for await token in answers { return token }
                return nil
            })
        let cases: [(refused: String, late: String?, kept: String)] = [
            ("a", "viewer", "speaker"), ("speaker", nil, "speaker again"),
        ]
        for each in cases {
            async let first = keeper.replacement(for: each.refused)
            for await _ in asked { break }
            await keeper.keep(each.kept)
            answer.yield(each.late)
            let given = try await first
            #expect(given == each.kept)
            let kept = try await keeper.current()
            #expect(kept == each.kept)
        }
    }

    /// What the app cannot give is no reason to forget what came meanwhile.
    @Test func `is there although the one asked for before it never came`() async throws {
        struct Failure: Error {}
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let (answers, answer) = AsyncStream<Void>.makeStream()
        let keeper = try keeper(
            TokenSource { _ in
                ask.yield()
                for await _ in answers { break }
                throw Failure()
            })
        async let first = keeper.current()
        for await _ in asked { break }
        await keeper.keep("speaker")
        answer.yield()
        let given = try await first
        #expect(given == "speaker")
        let kept = try await keeper.current()
        #expect(kept == "speaker")
    }

    @Test func `is the app's to fail to give`() async throws {
        struct Failure: Error {}
        let keeper = try keeper(TokenSource { _ in throw Failure() })
        await #expect(throws: RostrumError.self) { try await keeper.current() }
    }
}

@Suite struct `An address below the server's` {
    private func client() throws -> HTTPClient {
        HTTPClient(try #require(URL(string: "https://live.example.org:8443/somewhere?x=1")))
    }

    @Test func `has path and query, and nothing of the server's own`() throws {
        let url = try client().url("/v1/feed", [URLQueryItem(name: "cursor", value: "a b")])
        #expect(url.absoluteString == "https://live.example.org:8443/v1/feed?cursor=a%20b")
    }

    @Test(arguments: ["v1/feed", "//elsewhere.example/v1", "https://elsewhere.example/", ""])
    func `is refused for what leads elsewhere`(_ path: String) throws {
        let client = try client()
        #expect(throws: RostrumError.self) { try client.url(path) }
    }

    @Test func `holds names of streams as they are`() throws {
        #expect("a/b?c#d ä".pathPart == "a%2Fb%3Fc%23d%20%C3%A4")
    }
}

@Suite struct `What a token says` {
    @Test func `is its bearer and its end`() {
        // {"sub":"ann","exp":1893528000}, without padding.
        let claims = TokenClaims("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjE4OTM1MjgwMDB9.c2ln")
        #expect(claims.identity == "ann")
        #expect(claims.expiresAt == Date(timeIntervalSince1970: 1_893_528_000))
    }

    @Test(arguments: ["", "a.b", "a.%%.c", "a..c"]) func `is nothing for what is no token`(_ text: String) {
        let claims = TokenClaims(text)
        #expect(claims.identity == nil)
        #expect(claims.expiresAt == nil)
    }
}
