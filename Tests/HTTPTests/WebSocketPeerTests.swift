import Foundation
import Synchronization
import TestSupport
import Testing

@testable import HTTP

/// Servers that a WebSocket meets, whose every byte is the test's.
@Suite(.timeLimit(.minutes(5))) struct `A WebSocket to a server` {
    /// Reads a client's handshake, and completes it.
    /// - Returns: the request.
    @discardableResult
    private static func accept(
        _ connection: ScriptedServer.Connection, withKey wrong: String? = nil
    ) -> [String] {
        let text = String(decoding: connection.receive(through: "\r\n\r\n"), as: UTF8.self)
        let lines = text.components(separatedBy: "\r\n")
        let field = lines.first { $0.lowercased().hasPrefix("sec-websocket-key:") } ?? ":"
        let key = field.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces)
        // RFC 6455 §4.2.2.
        let digest = SHA1Authenticator.sha1(
            Array(((wrong ?? key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(Data(digest).base64EncodedString())\r\n\r\n")
        return lines
    }

    /// A frame of a server, which masks nothing.
    private static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        [(isFinal ? 0x80 : 0) | opcode, UInt8(payload.count)] + payload
    }

    /// All events with a server that speaks as `serve` does and then says nothing more.
    private func heard(
        _ serve: @escaping @Sendable (ScriptedServer.Connection) -> Void
    ) async throws -> [WebSocketClient.Event] {
        let server = try ScriptedServer { connection in
            serve(connection)
            connection.finish()
        }
        defer { server.stop() }
        let link = WebSocketClient.shared.connect(
            .init(host: "127.0.0.1", port: server.port, path: "/a?b=c", isSecure: false))
        var events: [WebSocketClient.Event] = []
        while let event = await link.next() { events.append(event) }
        return events
    }

    @Test func `asks for one as it must`() async throws {
        let request = Mutex<[String]>([])
        _ = try await heard { connection in
            let lines = Self.accept(connection)
            request.withLock { $0 = lines.map { $0.lowercased() } }
        }
        let lines = request.withLock { $0 }
        #expect(lines.first == "get /a?b=c http/1.1")
        #expect(lines.contains("upgrade: websocket"))
        #expect(lines.contains("sec-websocket-version: 13"))
        #expect(lines.contains { $0.hasPrefix("connection:") && $0.contains("upgrade") })
        #expect(lines.contains { $0.hasPrefix("host: 127.0.0.1:") })
    }

    @Test func `puts a message together, with pings between its parts`() async throws {
        let events = try await heard { connection in
            Self.accept(connection)
            connection.send(
                Self.frame(1, Array("one ".utf8), isFinal: false) + Self.frame(9, [7])
                    + Self.frame(0, Array("two ".utf8), isFinal: false) + Self.frame(0, Array("three".utf8))
                    + Self.frame(2, [0, 255]) + Self.frame(1, []) + Self.frame(8, [0x03, 0xE8]))
        }
        #expect(
            events == [
                .opened, .message(Array("one two three".utf8)), .message([0, 255]), .message([]),
                .closed(code: 1_000, reason: ""),
            ])
    }

    @Test func `takes messages byte by byte`() async throws {
        let events = try await heard { connection in
            Self.accept(connection)
            for byte in Self.frame(1, Array("slow".utf8)) + Self.frame(8, [0x0F, 0xA0, 0x78]) {
                connection.send([byte])
            }
        }
        #expect(events == [.opened, .message(Array("slow".utf8)), .closed(code: 4_000, reason: "x")])
    }

    /// - Source: RFC 6455 §7.1.5, §7.4.1.
    @Test func `tells a close without a code from an end without a close`() async throws {
        let closed = try await heard { connection in
            Self.accept(connection)
            connection.send(Self.frame(8, []))
        }
        #expect(closed == [.opened, .closed(code: 1_005, reason: "")])
        let lost = try await heard { Self.accept($0) }
        #expect(lost == [.opened, .closed(code: 1_006, reason: "")])
        let cut = try await heard { connection in
            Self.accept(connection)
            connection.send(Array(Self.frame(1, Array("half".utf8)).dropLast()))
        }
        #expect(cut == [.opened, .closed(code: 1_006, reason: "")])
    }

    /// A proxy that only repeats what it knows is no server of WebSockets.
    @Test func `is none where the server proves nothing`() async throws {
        let events = try await heard { Self.accept($0, withKey: "dGhlIHNhbXBsZSBub25jZQ==") }
        #expect(events.count == 1)
        guard case .failed = events.first else {
            Issue.record("\(events)")
            return
        }
    }

    @Test(arguments: [
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "",
    ])
    func `is none where the server speaks otherwise`(answer: String) async throws {
        let events = try await heard { connection in
            _ = connection.receive(through: "\r\n\r\n")
            connection.send(answer)
        }
        #expect(events.count == 1)
        #expect(!events.contains(.opened))
    }
}
