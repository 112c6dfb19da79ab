import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Where WebSockets come from.
///
/// On Apple's systems Foundation has them. On Linux that depends on how libcurl was built, and Debian 12's has none:
/// there `HeadlessEngine` of `RostrumClientHeadless` is one.
public protocol SocketTransport: Sendable {
    /// Connects to a `ws:` or `wss:` address; returns once the connection may be used.
    /// - Throws: whatever says why it cannot be made.
    func connect(to url: URL) async throws -> any SocketConnection
}

/// One WebSocket.
public protocol SocketConnection: Sendable {
    /// The next message, for one reader at a time; nil once it is closed, by whomever.
    func receive() async -> Data?
    /// Sends a message of text.
    /// - Throws: where it is closed, or too much waits already.
    func send(_ text: String) async throws
    /// Closes it; `receive` returns nil soon. May be called more than once.
    func close()
    /// With which code and reason the other side closed it; 1006 where it said nothing.
    var closing: (code: Int, reason: String) { get async }
}

/// Those of Foundation.
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
