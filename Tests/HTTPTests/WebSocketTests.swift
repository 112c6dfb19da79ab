import Base
import HTTPTestSupport
import Synchronization
import TestSupport
import Testing

@testable import HTTP

/// A WebSocket client that frames by hand.
/// - Source: RFC 6455 §5.2.
struct FrameClient {
    struct Frame: Equatable {
        var isFinal = true
        var opcode: UInt8
        var payload: [UInt8]

        var text: String { String(decoding: payload, as: UTF8.self) }
        /// Of a close frame.
        var closeCode: Int? { payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
    }

    static let handshake =
        "GET /socket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

    let raw: RawClient

    init(_ server: HTTPServer) async throws {
        raw = try RawClient(server.address)
        try await raw.send(Self.handshake)
        let response = try await raw.response()
        // RFC 6455 §1.3 has this key and this answer.
        guard response.status == 101,
            response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        else { throw RawClient.Failure(what: "status \(response.status)") }
    }

    func send(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) async throws {
        try await raw.send(Self.frame(opcode, payload, isFinal: isFinal))
    }

    func send(_ text: String) async throws { try await send(1, Array(text.utf8)) }

    static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case ..<126: bytes.append(0x80 | UInt8(payload.count))
        case ..<65_536: bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes += [0x80 | 127, 0, 0, 0, 0] + (0..<4).map { UInt8(payload.count >> (24 - 8 * $0) & 0xFF) }
        }
        let mask: [UInt8] = [1, 2, 3, 4]
        return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
    }

    func receive() async throws -> Frame {
        let head = try await raw.receive(exactly: 2)
        var length = Int(head[1] & 0x7F)
        if length >= 126 {
            let bytes = try await raw.receive(exactly: length == 126 ? 2 : 8)
            length = bytes.reduce(0) { $0 << 8 | Int($1) }
        }
        let payload = length == 0 ? [] : try await raw.receive(exactly: length)
        return Frame(isFinal: head[0] & 0x80 != 0, opcode: head[0] & 0x0F, payload: payload)
    }
}

@Suite(.timeLimit(.minutes(10))) struct WebSockets {
    /// Sends back what comes.
    private let echo = ClosureHandler(socket: { socket in
        for await message in socket.incoming { socket.send(message) }
    })

    @Test func `carry messages both ways`() async throws {
        try await withServer(echo) { server in
            let client = try await FrameClient(server)
            for text in [
                "hello", "", "ünï", String(repeating: "x", count: 200), String(repeating: "y", count: 10_000),
            ] {
                try await client.send(text)
                let frame = try await client.receive()
                #expect(frame.opcode == 1 && frame.text == text)
            }
            try await client.send(2, [0, 255, 1])
            #expect(try await client.receive() == FrameClient.Frame(opcode: 2, payload: [0, 255, 1]))
        }
    }

    @Test func `take a message in many frames, and pings between`() async throws {
        try await withServer(echo) { server in
            let client = try await FrameClient(server)
            try await client.send(1, Array("one ".utf8), isFinal: false)
            try await client.send(9, [7])
            try await client.send(0, Array("two ".utf8), isFinal: false)
            try await client.send(0, Array("three".utf8))
            var frames = [try await client.receive(), try await client.receive()]
            frames.sort { $0.opcode < $1.opcode }
            #expect(frames[0].text == "one two three")
            #expect(frames[1] == FrameClient.Frame(opcode: 10, payload: [7]))
        }
    }

    @Test func `take what comes with the handshake`() async throws {
        try await withServer(echo) { server in
            let raw = try RawClient(server.address)
            try await raw.send(Array(FrameClient.handshake.utf8) + FrameClient.frame(1, Array("early".utf8)))
            #expect(try await raw.response().status == 101)
            #expect(try await raw.receive(exactly: 7) == [0x81, 5] + Array("early".utf8))
        }
    }

    @Test func `say why they close`() async throws {
        let handler = ClosureHandler(socket: { socket in
            for await _ in socket.incoming { break }
            socket.send("last words")
            socket.close(WebSocketClose(code: 4_001, reason: "enough"))
        })
        try await withServer(handler) { server in
            let client = try await FrameClient(server)
            try await client.send("x")
            #expect(try await client.receive().text == "last words")
            let frame = try await client.receive()
            #expect(frame.opcode == 8 && frame.closeCode == 4_001)
            #expect(String(decoding: frame.payload.dropFirst(2), as: UTF8.self) == "enough")
        }
    }

    @Test func `close when their conversation ends`() async throws {
        try await withServer(ClosureHandler(socket: { _ in })) { server in
            let client = try await FrameClient(server)
            #expect(try await client.receive().closeCode == 1_000)
        }
    }

    @Test func `hear why the client closes`() async throws {
        let (closes, closed) = AsyncStream<WebSocketClose?>.makeStream()
        let handler = ClosureHandler(socket: { socket in
            for await _ in socket.incoming {}
            closed.yield(socket.closeReason)
        })
        try await withServer(handler) { server in
            let client = try await FrameClient(server)
            try await client.send(8, [0x0F, 0xA1] + Array("bye".utf8))
            #expect(try await client.receive().closeCode == 4_001)
            for await reason in closes {
                #expect(reason == WebSocketClose(code: 4_001, reason: "bye"))
                break
            }
            do {
                let second = try await FrameClient(server)
                second.raw.reset()
            }
            for await reason in closes {
                #expect(reason?.code == 1_006)
                break
            }
        }
    }

    @Test func `end with the client although the conversation waits for something else`() async throws {
        let (ends, ended) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(socket: { _ in
            await waitInVain()
            ended.yield()
        })
        try await withServer(handler) { server in
            do {
                let client = try await FrameClient(server)
                client.raw.reset()
            }
            for await _ in ends { break }
        }
    }

    @Test func `refuse a message that is too big`() async throws {
        try await withServer(echo) {
            $0.maximumMessageBytes = 1_000
        } _: { server in
            let client = try await FrameClient(server)
            try await client.send(String(repeating: "x", count: 1_000))
            #expect(try await client.receive().payload.count == 1_000)
            try await client.send(String(repeating: "x", count: 1_001))
            #expect(try await client.receive().closeCode == 1_009)
            let second = try await FrameClient(server)
            try await second.send(1, [UInt8](repeating: 65, count: 600), isFinal: false)
            try await second.send(0, [UInt8](repeating: 65, count: 600))
            #expect(try await second.receive().closeCode == 1_009)
        }
    }

    @Test func `refuse messages that nobody reads`() async throws {
        let (released, release) = AsyncStream<Void>.makeStream()
        let handler = ClosureHandler(socket: { _ in for await _ in released { break } })
        try await withServer(handler) {
            $0.maximumIncomingMessages = 5
        } _: { server in
            let client = try await FrameClient(server)
            for _ in 0..<6 { try await client.send("x") }
            #expect(try await client.receive().closeCode == 1_008)
            release.yield()
        }
    }

    @Test func `refuse more messages than are accepted at once, although each is answered`() async throws {
        try await withServer(echo) {
            $0.messageBurst = 5
            // However slow the machine is, nothing is added to these.
            $0.messagesPerSecond = 0
        } _: { server in
            let client = try await FrameClient(server)
            for _ in 0..<5 {
                try await client.send("x")
                #expect(try await client.receive().text == "x")
            }
            try await client.send("x")
            #expect(try await client.receive().closeCode == 1_008)
        }
    }

    @Test(arguments: [0, 1]) func `refuse a message of ever more tiny pieces`(length: Int) async throws {
        try await withServer(echo) {
            $0.messageBurst = 50
            $0.messagesPerSecond = 0
        } _: { server in
            let client = try await FrameClient(server)
            let piece = [UInt8](repeating: 0x78, count: length)
            try await client.send(1, piece, isFinal: false)
            // The server may have hung up before the last ones.
            for _ in 0..<60 { try? await client.send(0, piece, isFinal: false) }
            #expect(try await client.receive().closeCode == 1_008)
        }
    }

    @Test func `take any number of messages that come slowly enough`() async throws {
        try await withServer(echo) {
            $0.messageBurst = 100
            // A hundred each millisecond, in which no machine answers so many one by one.
            $0.messagesPerSecond = 100_000
        } _: { server in
            let client = try await FrameClient(server)
            for _ in 0..<300 {
                try await client.send("x")
                #expect(try await client.receive().text == "x")
            }
        }
    }

    @Test func `tell the sender when the client reads too slowly`() async throws {
        let (results, result) = AsyncStream<Int>.makeStream()
        let handler = ClosureHandler(socket: { socket in
            var count = 0
            // The kernel takes some, then the queue fills.
            while socket.send(String(repeating: "x", count: 50_000)) == .queued { count += 1 }
            result.yield(count)
            for await _ in socket.incoming {}
        })
        try await withServer(handler) {
            $0.maximumOutgoingBytes = 200_000
        } _: { server in
            let client = try await FrameClient(server)
            for await count in results {
                // What was queued arrives, whole and in order.
                for _ in 0..<count { #expect(try await client.receive().payload.count == 50_000) }
                break
            }
        }
    }

    @Test func `hang up on a client that does not answer pings`() async throws {
        try await withServer(echo) {
            $0.webSocketPing = .milliseconds(200)
            $0.webSocketHangup = .seconds(1)
        } _: { server in
            let client = try await FrameClient(server)
            // Nothing but pings until then.
            let heard = try await client.raw.receiveToEnd()
            #expect(heard.indices.allSatisfy { heard[$0] == [0x89, 1, 0][$0 % 3] })
        }
    }

    @Test func `hang up on a client that reads no close, and hear nothing more of it`() async throws {
        let (closes, closed) = AsyncStream<Void>.makeStream()
        let (counts, counted) = AsyncStream<Int>.makeStream()
        let handler = ClosureHandler(socket: { socket in
            // More than the kernel takes: there is no room for the close.
            for _ in 0..<160 { socket.send(String(repeating: "x", count: 100_000)) }
            socket.close()
            closed.yield()
            var count = 0
            for await _ in socket.incoming { count += 1 }
            counted.yield(count)
        })
        try await withServer(handler) {
            $0.maximumOutgoingBytes = 32 << 20
            $0.webSocketPing = .milliseconds(200)
            $0.webSocketHangup = .seconds(1)
        } _: { server in
            let client = try await FrameClient(server)
            for await _ in closes { break }
            let signs = FrameClient.frame(1, [120]) + FrameClient.frame(10, [0])
            let end = ContinuousClock.now + .seconds(60)
            while ContinuousClock.now < end, (try? await client.raw.send(signs)) != nil {}
            #expect(ContinuousClock.now < end)
            client.raw.reset()
            for await count in counts {
                #expect(count == 0)
                break
            }
        }
    }

    @Test func `last as long as the client answers pings`() async throws {
        var pongs = 0
        // A busy machine may take its time for an answer, and gets more of it.
        for limit in [2, 10, 60] {
            pongs = 0
            try await withServer(echo) {
                $0.webSocketPing = .milliseconds(200)
                $0.webSocketHangup = .seconds(limit)
            } _: { server in
                let client = try await FrameClient(server)
                // Pings are 200 ms apart at least, so that these last longer than silence may.
                while pongs < limit * 5 + 2, let ping = try? await client.receive() {
                    #expect(ping.opcode == 9)
                    guard (try? await client.send(10, ping.payload)) != nil else { break }
                    pongs += 1
                }
            }
            if pongs == limit * 5 + 2 { return }
        }
        Issue.record("was hung up on after \(pongs) pongs")
    }

    @Test func `say that the server is going away`() async throws {
        let server = try await HTTPServer.start(patientSettings(), handler: echo, log: .silent)
        let client = try await FrameClient(server)
        async let stopped: Void = server.stop(grace: .seconds(3_600))
        let frame = try await client.receive()
        #expect(frame.closeCode == 1_001)
        try await client.send(8, frame.payload)
        await stopped
    }

    @Test(arguments: [
        ("/nowhere", "", 404), ("/socket", "Sec-WebSocket-Version: 8\r\n", 426),
        ("/socket", "Sec-WebSocket-Protocol: chat\r\n", 400), ("/socket", "Content-Length: 5\r\n", 400),
    ])
    func `are refused with a status`(_ path: String, _ header: String, _ status: Int) async throws {
        try await withServer(echo) { server in
            let client = try RawClient(server.address)
            var handshake = FrameClient.handshake.replacing("/socket", with: path)
            if header.contains("Version") {
                handshake = handshake.replacing("Sec-WebSocket-Version: 13\r\n", with: header)
            } else {
                handshake = handshake.replacing("Host: h\r\n", with: "Host: h\r\n\(header)")
            }
            try await client.send(handshake)
            let response = try await client.response()
            #expect(response.status == status)
            #expect(try await client.receive().isEmpty)
        }
    }

    /// libwebsockets 4.1 goes on with freed memory after such a request, where the connection was to be kept alive
    /// (CVE-2025-11677).
    @Test(arguments: ["foo", "h2c", "websocket, h2c"]) func `are the only upgrade`(_ name: String)
        async throws
    {
        let upgrade =
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: \(name)\r\n"
            + "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
        let alive = "GET /alive HTTP/1.1\r\nHost: h\r\n\r\n"
        try await withServer(echo) { server in
            for round in 0..<40 {
                let client = try RawClient(server.address)
                let (isKeptAlive, hasMore) = (round % 2 == 1, round % 4 > 1)
                if isKeptAlive {
                    try await client.send(alive)
                    #expect(try await client.response().status == 200)
                }
                try await client.send(upgrade + (hasMore ? alive : ""))
                let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
                #expect(
                    answer.isEmpty || answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.0 4"),
                    "\(answer)")
                #expect(answer.ranges(of: "HTTP/1.").count <= 1, "\(answer)")
            }
            let client = try await FrameClient(server)
            try await client.send("alive")
            #expect(try await client.receive().text == "alive")
        }
    }

    @Test func `survive random bytes`() async throws {
        try await withServer(echo) { server in
            var random = SeededGenerator(seed: 11)
            for _ in 0..<150 {
                let client = try await FrameClient(server)
                var bytes: [UInt8] = []
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    var frame = FrameClient.frame(
                        UInt8.random(in: 0...15, using: &random),
                        (0..<Int.random(in: 0...300, using: &random)).map { _ in
                            .random(in: 0...255, using: &random)
                        },
                        isFinal: Bool.random(using: &random))
                    for _ in 0..<Int.random(in: 0...3, using: &random) {
                        frame[Int.random(in: 0..<frame.count, using: &random)] = .random(
                            in: 0...255, using: &random)
                    }
                    bytes += frame
                }
                try? await client.raw.send(bytes)
            }
            let client = try await FrameClient(server)
            try await client.send("alive")
            #expect(try await client.receive().text == "alive")
        }
    }
}
