import Foundation
import Testing

@testable import RostrumClient

@Suite(.timeLimit(.minutes(2))) struct `A socket whose token ends` {
    private let sockets = FakeSockets()

    /// Nobody listens there: what needs the server fails.
    private func server() throws -> RostrumServer {
        RostrumServer(try #require(URL(string: "http://127.0.0.1:1")), sockets: sockets)
    }

    private func shown(_ message: String) throws -> [String: String] {
        try JSONDecoder().decode([String: String].self, from: Data(message.utf8))
    }

    @Test func `comes back to the feed with another one, where the app has one`() async throws {
        let feed = try server().followFeed(tokens: TokenSource { $0 == nil ? "first" : "second" })
        var connections = sockets.opened.makeAsyncIterator()
        let first = try #require(await connections.next())
        #expect(try shown(first.1) == ["type": "token", "token": "first"])
        first.0.tell(#"{"type":"snapshot","items":[]}"#)
        for await state in feed.states where state == .connected { break }
        first.0.hangUp(4_401)
        let second = try #require(await connections.next())
        #expect(try shown(second.1) == ["type": "token", "token": "second"])
        await feed.close()
    }

    @Test func `leaves the feed for good where the app has none`() async throws {
        let feed = try server().followFeed(tokens: .fixed("first"))
        var connections = sockets.opened.makeAsyncIterator()
        let first = try #require(await connections.next())
        first.0.hangUp(4_401)
        var last: ConnectionState?
        for await state in feed.states { last = state }
        #expect(last == .disconnected(.expired))
    }

    @Test func `has a fresh one before that, though nobody asks for anything`() async throws {
        // Ends in half a minute, in which a token is renewed.
        let end = Int(Date().timeIntervalSince1970) + 30
        let claims = Data(#"{"exp":\#(end)}"#.utf8).base64EncodedString().replacing("=", with: "")
        let (asked, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(16))
        let feed = try server().followFeed(
            tokens: TokenSource { refused in
                if let refused { continuation.yield(refused) }
                return refused == nil ? "e30.\(claims).c2ln" : "second"
            })
        for await refused in asked {
            #expect(refused == "e30.\(claims).c2ln")
            break
        }
        await feed.close()
        await sockets.drain()
    }
}
