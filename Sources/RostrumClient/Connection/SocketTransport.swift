import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Provides WebSockets.
///
/// On Apple's systems Foundation has them. On Linux that depends on how libcurl was built, and that of Debian 12 has
/// none; `HeadlessEngine` of `RostrumClientHeadless` provides them there.
public protocol SocketTransport: Sendable {
    /// Connects to a `ws:` or `wss:` address; returns once the handshake is complete.
    /// - Throws: any error that describes why the connection failed.
    func connect(to url: URL) async throws -> any SocketConnection
}

/// One WebSocket.
public protocol SocketConnection: Sendable {
    /// The next message; nil once either side has closed the connection. For one reader at a time.
    func receive() async -> Data?
    /// Sends a text message.
    /// - Throws: if the connection is closed, or if too much already waits to be sent.
    func send(_ text: String) async throws
    /// Closes the connection; `receive` then returns nil soon. May be called more than once.
    func close()
    /// Code and reason with which the other side closed the connection; 1006 if it sent none.
    var closing: (code: Int, reason: String) { get async }
}

/// WebSockets by Foundation.
struct FoundationSockets: SocketTransport {
    private final class Connection: SocketConnection {
        let task: URLSessionWebSocketTask

        init(_ task: URLSessionWebSocketTask) {
            self.task = task
        }

        func receive() async -> Data? {
            switch try? await task.receive() {
            case .string(let text): Data(text.utf8)
            case .data(let data): data
            default: nil
            }
        }

        func send(_ text: String) async throws { try await task.send(.string(text)) }

        func close() { task.cancel(with: .normalClosure, reason: nil) }

        var closing: (code: Int, reason: String) {
            get async {
                let code = task.closeCode.rawValue
                return (code == 0 ? 1_006 : code, String(decoding: task.closeReason ?? Data(), as: UTF8.self))
            }
        }
    }

    func connect(to url: URL) async throws -> any SocketConnection {
        let task = URLSession.shared.webSocketTask(with: url)
        task.resume()
        return Connection(task)
    }
}
