import Base
import HTTPTestSupport
import TestSupport
import Testing

@testable import HTTP

@Suite(.timeLimit(.minutes(5))) struct `WebSockets to others` {
    private func connect(_ server: HTTPServer, _ path: String = "/socket") -> WebSocketLink {
        WebSocketClient.shared.connect(
            .init(host: "127.0.0.1", port: server.address.port, path: path, isSecure: false))
    }

    /// Says everything again, and closes when it is told to.
    private let echo = ClosureHandler(socket: { socket in
        for await message in socket.incoming {
            guard case .text(let text) = message else { continue }
            if text == "close" { return socket.close(.init(code: 4_403, reason: "banned")) }
            _ = socket.send(text)
        }
    })

    @Test func `carry texts in order, short and long`() async throws {
        try await withServer(echo) { server in
            let link = connect(server)
            #expect(await link.next() == .opened)
            let texts = ["one", "", String(repeating: "ä", count: 8_000), "two"]
            for text in texts { #expect(link.send(text)) }
            for text in texts { #expect(await link.next() == .message(Array(text.utf8))) }
            link.close()
            guard case .closed = await link.next() else {
                Issue.record("it did not close")
                return
            }
            #expect(await link.next() == nil)
        }
    }

    @Test func `send what was said before they were open`() async throws {
        try await withServer(echo) { server in
            let link = connect(server)
            #expect(link.send("early"))
            #expect(await link.next() == .opened)
            #expect(await link.next() == .message(Array("early".utf8)))
            link.close()
        }
    }

    @Test func `tell with which code and reason the other side closed`() async throws {
        try await withServer(echo) { server in
            let link = connect(server)
            #expect(await link.next() == .opened)
            link.send("close")
            #expect(await link.next() == .closed(code: 4_403, reason: "banned"))
            #expect(await link.next() == nil)
        }
    }

    @Test func `fail where there is no such socket, and where nobody listens`() async throws {
        try await withServer(echo) { server in
            let link = connect(server, "/elsewhere")
            guard case .failed = await link.next() else {
                Issue.record("a refused handshake is no failure")
                return
            }
            #expect(await link.next() == nil)
        }
        let nobody = WebSocketClient.shared.connect(
            .init(host: "127.0.0.1", port: 1, path: "/", isSecure: false))
        guard case .failed = await nobody.next() else {
            Issue.record("a refused connection is no failure")
            return
        }
    }

    @Test func `take no more than may wait to be sent`() async throws {
        try await withServer(echo) { server in
            let link = connect(server)
            #expect(link.send(String(repeating: "x", count: WebSocketClient.maximumUnsent + 1)) == false)
            #expect(await link.next() == .opened)
            link.close()
        }
    }

    /// A reader who is behind loses no message that came before the end, and learns of the end.
    @Test func `end with what came for a slow reader, and say that they ended`() async throws {
        let (gone, isGone) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(socket: { socket in
            for number in 0..<1_000 { socket.send("\(number)") }
            // Until the client has had enough.
            for await _ in socket.incoming {}
            isGone.yield()
        })
        try await withServer(handler) { server in
            let link = connect(server)
            for await _ in gone { break }
            #expect(await link.next() == .opened)
            var messages: [[UInt8]] = []
            var last: WebSocketClient.Event?
            while let event = await link.next() {
                if case .message(let bytes) = event { messages.append(bytes) }
                last = event
            }
            // With the first event, one more than may wait.
            #expect(messages.count == WebSocketClient.maximumWaiting)
            let expected = (0..<messages.count).map { Array("\($0)".utf8) }
            #expect(messages == expected)
            guard case .closed = last else {
                Issue.record("it ended with \(String(describing: last))")
                return
            }
        }
    }

    /// The server's reason decides whether a client comes back.
    @Test func `tell the reason of their end to a reader with much to read`() async throws {
        let count = WebSocketClient.maximumWaiting - 1
        let (gone, isGone) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(socket: { socket in
            for number in 0..<count { socket.send("\(number)") }
            socket.close(.init(code: 4_403, reason: "banned"))
            for await _ in socket.incoming {}
            isGone.yield()
        })
        try await withServer(handler) { server in
            let link = connect(server)
            for await _ in gone { break }
            #expect(await link.next() == .opened)
            for number in 0..<count {
                #expect(await link.next() == .message(Array("\(number)".utf8)))
            }
            #expect(await link.next() == .closed(code: 4_403, reason: "banned"))
            #expect(await link.next() == nil)
        }
    }

    @Test func `closed before they are open end, too`() async throws {
        try await withServer(echo) { server in
            let link = connect(server)
            link.close()
            var last: WebSocketClient.Event?
            while let event = await link.next() { last = event }
            guard case .closed = last else {
                Issue.record("it ended with \(String(describing: last))")
                return
            }
        }
    }
}
