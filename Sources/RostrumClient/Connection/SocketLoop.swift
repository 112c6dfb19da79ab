import Foundation
import Synchronization

/// What a socket that comes back is for.
protocol SocketOwner: Sendable {
    /// As HTTP; asked for before each connection.
    func address() throws(RostrumError) -> URL
    func become(_ state: ConnectionState)
    func receive(_ message: Data)
    /// Whether it was lost for good.
    func verdict(_ loss: SocketLoss) async -> DisconnectReason?
}

/// How a socket ended.
struct SocketLoss: Equatable, Sendable {
    /// Of the close frame; 1006 without one.
    var code = 1_006
    var reason = ""
    /// What it showed.
    var token: String?
    /// Whether the server took it: it said something.
    var wasTaken = false
    /// Why it could not even be tried.
    var error: RostrumError?
}

/// A WebSocket that shows a token, says that it is here, and comes back after an interruption.
final class SocketLoop: Sendable {
    /// How often we say that we are here.
    private static let heartbeat = Duration.seconds(5)
    /// One that was silent for so long is dead; the server says something every five seconds.
    private static let silence = Duration.seconds(15)

    private let transport: any SocketTransport
    private let tokens: TokenKeeper
    private let present = Mutex<(any SocketConnection)?>(nil)
    private let heardAt = Mutex(ContinuousClock.now)

    init(_ transport: any SocketTransport, tokens: TokenKeeper) {
        self.transport = transport
        self.tokens = tokens
    }

    /// Sends a message on the socket that there is now.
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

    /// Keeps it up until it is lost for good, or the task is cancelled.
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
            // Cancelled while it sleeps, the loop ends.
            try? await Task.sleep(for: backoff.next(using: &random))
        }
        owner.become(.disconnected(.closed))
    }

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
            // A browser's WebSocket cannot carry an Authorization header, and addresses end up in logs.
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

    /// - Returns: whether the server said anything.
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
                // The server closes the socket when its token ends, and gives no fresh one for it then. Where none is
                // to be had now it is asked again soon, and the verdict decides at last.
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
            // The one that ends first takes the other one with it.
            for await result in group {
                wasTaken = wasTaken || result
                group.cancelAll()
            }
            return wasTaken
        }
    }

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
