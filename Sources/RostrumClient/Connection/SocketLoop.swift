import Foundation
import Synchronization

/// The user of a socket that reconnects.
protocol SocketOwner: Sendable {
    /// The socket's address with the scheme of HTTP; read before each connection, because it may contain a position.
    func address() throws(RostrumError) -> URL
    /// Receives each change of state.
    func become(_ state: ConnectionState)
    /// Receives each message.
    func receive(_ message: Data)
    /// Why a lost socket must not be connected again; nil to try.
    func verdict(_ loss: SocketLoss) async -> DisconnectReason?
}

/// How a socket ended.
struct SocketLoss: Equatable, Sendable {
    /// Of the close frame; 1006 if there was none.
    /// - Source: RFC 6455 §7.4.1.
    var code = 1_006
    var reason = ""
    /// The token that the connection used.
    var token: String?
    /// Whether the server accepted the connection: it has sent a message.
    var wasTaken = false
    /// Why no attempt was possible; nil if there was one.
    var error: RostrumError?
}

/// A WebSocket that authenticates by a token, sends heartbeats, and reconnects after an interruption.
final class SocketLoop: Sendable {
    /// Between two heartbeats.
    private static let heartbeat = Duration.seconds(5)
    /// A socket on which nothing was received for this long is dead; the server sends something every five seconds.
    private static let silence = Duration.seconds(15)

    private let transport: any SocketTransport
    private let tokens: TokenKeeper
    /// The socket in use; nil while there is none.
    private let present = Mutex<(any SocketConnection)?>(nil)
    /// When the last message was received.
    private let heardAt = Mutex(ContinuousClock.now)

    init(_ transport: any SocketTransport, tokens: TokenKeeper) {
        self.transport = transport
        self.tokens = tokens
    }

    /// Sends a message on the present socket.
    func say(_ message: some Encodable) async throws(RostrumError) {
        guard let socket = present.withLock({ $0 }), let data = try? JSONEncoder().encode(message) else {
            throw .notConnected
        }
        do {
            try await socket.send(String(decoding: data, as: UTF8.self))
        } catch {
            throw .notConnected
        }
    }

    /// Connects and reconnects until the socket is lost for good or the task is cancelled.
    func run(_ owner: some SocketOwner) async {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        owner.become(.connecting)
        while !Task.isCancelled {
            let loss = await connectOnce(owner)
            if Task.isCancelled { break }
            if let reason = await owner.verdict(loss) { return owner.become(.disconnected(reason)) }
            owner.become(.reconnecting)
            if loss.wasTaken { backoff.reset() }
            // A cancellation ends the sleep early, and then the loop.
            let least = loss.error?.pauseAsked ?? .zero
            try? await Task.sleep(for: backoff.next(atLeast: least, using: &random))
        }
        owner.become(.disconnected(.closed))
    }

    /// Connects, and returns once the connection is lost.
    private func connectOnce(_ owner: some SocketOwner) async -> SocketLoss {
        var loss = SocketLoss()
        let socket: any SocketConnection
        do {
            loss.token = try await tokens.current()
            socket = try await transport.connect(to: Self.socketAddress(owner.address(), loss.token))
        } catch let error as RostrumError {
            loss.error = error
            return loss
        } catch {
            loss.reason = "\(error)"
            return loss
        }
        heardAt.withLock { $0 = .now }
        let token = loss.token
        loss.wasTaken = await withTaskCancellationHandler {
            // In a message, because browsers' WebSockets send no Authorization header and addresses end up in logs.
            if let token, let message = try? JSONEncoder().encode(["type": "token", "token": token]) {
                try? await socket.send(String(decoding: message, as: UTF8.self))
            }
            return await converse(on: socket, owner)
        } onCancel: {
            socket.close()
        }
        present.withLock { $0 = nil }
        socket.close()
        (loss.code, loss.reason) = await socket.closing
        return loss
    }

    /// Runs heartbeats, renewal of the token, and reception until one of them ends.
    /// - Returns: whether the server has sent anything.
    private func converse(on socket: any SocketConnection, _ owner: some SocketOwner) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                while (try? await Task.sleep(for: Self.heartbeat)) != nil {
                    guard self.heardAt.withLock({ $0 }).duration(to: .now) < Self.silence else { break }
                    try? await socket.send(#"{"type":"heartbeat"}"#)
                }
                socket.close()
                return false
            }
            group.addTask {
                // The server closes the socket when its token expires, and does not exchange an expired token. A failed
                // renewal is repeated at the next turn; in the end `verdict` decides.
                while (try? await Task.sleep(for: Self.heartbeat)) != nil {
                    _ = try? await self.tokens.current()
                }
                return false
            }
            group.addTask {
                var wasTaken = false
                while let message = await socket.receive() {
                    self.heardAt.withLock { $0 = .now }
                    if !wasTaken {
                        wasTaken = true
                        self.present.withLock { $0 = socket }
                        owner.become(.connected)
                    }
                    owner.receive(message)
                }
                return wasTaken
            }
            var wasTaken = false
            // The first task to end ends the others.
            for await result in group {
                wasTaken = wasTaken || result
                group.cancelAll()
            }
            return wasTaken
        }
    }

    /// The address for a WebSocket, which announces that a token follows in a message.
    private static func socketAddress(_ url: URL, _ token: String?) throws(RostrumError) -> URL {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw .unusable("\(url) is no address")
        }
        parts.scheme = parts.scheme == "https" ? "wss" : "ws"
        if token != nil {
            parts.queryItems =
                (parts.queryItems ?? []) + [URLQueryItem(name: "authenticate", value: "message")]
        }
        guard let address = parts.url else { throw .unusable("\(url) is no address") }
        return address
    }
}
