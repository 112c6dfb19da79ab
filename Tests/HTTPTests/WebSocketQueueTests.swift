import Base
import HTTPTestSupport
import TestSupport
import Testing

@testable import HTTP

/// - Source: RFC 6455 §5.5, §5.5.1, §8.1.
@Suite struct `The reason of a close` {
    @Test func `fits a control frame, and ends with a whole character`() {
        var random = SeededGenerator(seed: 6_455)
        let characters: [Character] = ["a", "é", "√", "🎥", "👩‍👩‍👧", "e\u{301}"]
        for _ in 0..<500 {
            var reason = ""
            for _ in 0..<Int.random(in: 0...80, using: &random) {
                reason.append(characters[Int.random(in: 0..<characters.count, using: &random)])
            }
            let sent = WebSocketClose(code: 1_000, reason: reason).sentReason
            #expect(sent.count <= 123)
            #expect(reason.utf8.starts(with: sent))
            #expect(String(validating: sent, as: UTF8.self) != nil)
            // No more is cut than one character takes.
            #expect(sent.count == reason.utf8.count || sent.count > 119)
        }
    }

    @Test(arguments: [0, 1, 2, 3])
    func `is not cut where the client would fail the connection`(offset: Int) async throws {
        let reason = String(repeating: "a", count: 118 + offset) + "🎥🎥"
        let handler = ClosureHandler(socket: { socket in
            socket.close(WebSocketClose(code: 4_000, reason: reason))
        })
        try await withServer(handler) { server in
            let client = try await FrameClient(server)
            let frame = try await client.receive()
            #expect(frame.opcode == 8 && frame.closeCode == 4_000)
            let text = String(validating: frame.payload.dropFirst(2), as: UTF8.self)
            let expected = String(repeating: "a", count: 118 + offset) + (offset < 2 ? "🎥" : "")
            #expect(text == expected)
        }
    }
}

@Suite struct `What waits on a WebSocket` {
    private func connection(
        of count: Int = .max, incoming: Int = 64, woken: @escaping @Sendable () -> Void = {}
    ) -> WebSocketConnection {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.maximumOutgoingBytes = count
        settings.maximumIncomingMessages = incoming
        return WebSocketConnection(
            id: 7, remoteAddress: settings.address, settings: settings, wake: { _ in woken() })
    }

    /// What the service thread would send, up to a close.
    private func sent(
        _ connection: WebSocketConnection
    ) -> (messages: [WebSocketMessage], close: WebSocketClose?) {
        var messages: [WebSocketMessage] = []
        while true {
            switch connection.nextOutput() {
            case .nothing: return (messages, nil)
            case .close(let reason): return (messages, reason)
            case .send(let message, let more):
                messages.append(message)
                if !more { return (messages, nil) }
            }
        }
    }

    @Test func `is what fits, and is taken whole or not at all`() {
        let socket = connection(of: 10)
        let results = ["12345", "123456", "1234", "12", "1"].map { socket.send($0) }
        #expect(results == [.queued, .full, .queued, .full, .queued])
        #expect(!socket.isDrained && socket.hasOutput)
        #expect(sent(socket).messages == [.text("12345"), .text("1234"), .text("1")])
        #expect(socket.isDrained && !socket.hasOutput)
        // Letters count by their bytes, and bytes as they are.
        #expect(socket.send(.text("ééé")) == .queued)
        #expect(socket.send(.binary([0, 0, 0, 0, 0])) == .full)
        #expect(socket.send(.binary([0, 0, 0, 0])) == .queued)
        #expect(socket.send(.binary([])) == .queued)
    }

    @Test func `may be less for what is worth less`() {
        let socket = connection(of: 100)
        #expect(socket.send(.text("1234"), limit: 0) == .queued)
        #expect(socket.send(.text("x"), limit: 3) == .full)
        #expect(socket.send(.text("x"), limit: 4) == .queued)
        #expect(socket.send(.text("x"), limit: 4) == .full)
        #expect(socket.send(.text("x")) == .queued)
        #expect(sent(socket).messages.count == 3)
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func `keeps its order and its size`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let socket = connection(of: 3_000)
        var expected: [WebSocketMessage] = []
        for number in 0..<2_000 {
            if Int.random(in: 0...2, using: &random) > 0 {
                let message = WebSocketMessage.text(
                    String(repeating: "\(number % 10)", count: Int.random(in: 0...60, using: &random)))
                let waiting = expected.reduce(0) { $0 + $1.size }
                let result = socket.send(message)
                #expect(result == (waiting + message.size <= 3_000 ? .queued : .full))
                if result == .queued { expected.append(message) }
            } else {
                let message = socket.nextMessage()
                #expect(message == expected.first)
                if !expected.isEmpty { expected.removeFirst() }
            }
            #expect(socket.hasOutput == !expected.isEmpty)
            #expect(socket.isDrained == !expected.contains { $0.size > 0 })
        }
    }

    @Test func `is sent before the close, and nothing after it`() {
        let calls = Watched(0)
        let socket = connection { calls.change { $0 += 1 } }
        #expect(socket.send("a") == .queued)
        #expect(socket.send("b") == .queued)
        #expect(calls.value == 1, "the thread knows already")
        socket.close(WebSocketClose(code: 4_001))
        socket.close(WebSocketClose(code: 4_002))
        #expect(calls.value == 2, "only the first close counts")
        #expect(socket.isClosing)
        #expect(socket.send("c") == .closed)
        let output = sent(socket)
        #expect(output.messages == [.text("a"), .text("b")])
        #expect(output.close == WebSocketClose(code: 4_001))
        socket.didClose(.lost)
        #expect(socket.closeReason == WebSocketClose(code: 4_001))
    }

    @Test func `is nobody's once the connection has ended`() async {
        let socket = connection()
        #expect(socket.send("a") == .queued)
        #expect(socket.deliver(.text("b")))
        socket.didClose(WebSocketClose(code: 1_001, reason: "bye"))
        socket.didClose(.lost)
        socket.close(.normal)
        #expect(socket.closeReason == WebSocketClose(code: 1_001, reason: "bye"))
        #expect(socket.send("c") == .closed)
        #expect(socket.isDrained && !socket.isClosing)
        #expect(socket.nextMessage() == nil)
        var heard: [WebSocketMessage] = []
        for await message in socket.incoming { heard.append(message) }
        #expect(heard == [.text("b")])
    }

    @Test func `of the client's is what its reader may be behind`() async {
        let socket = connection(incoming: 3)
        let taken = (0..<5).map { socket.deliver(.text("\($0)")) }
        #expect(taken == [true, true, true, false, false])
        socket.didClose(.lost)
        var heard: [WebSocketMessage] = []
        for await message in socket.incoming { heard.append(message) }
        #expect(heard == [.text("0"), .text("1"), .text("2")])
    }
}
