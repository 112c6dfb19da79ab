import Foundation
import Synchronization

@testable import RostrumClient

/// Stands in for a server: takes what is said, and ends each connection when a test says so.
final class FakeSockets: SocketTransport {
    final class Connection: SocketConnection {
        private let incoming: AsyncStream<Data>
        private let continuation: AsyncStream<Data>.Continuation
        private let end = Mutex((code: 1_006, reason: ""))
        private let said: @Sendable (String) -> Void

        init(_ said: @escaping @Sendable (String) -> Void) {
            (incoming, continuation) = AsyncStream<Data>.makeStream(bufferingPolicy: .bufferingNewest(16))
            self.said = said
        }

        func receive() async -> Data? {
            for await message in incoming { return message }
            return nil
        }

        func send(_ text: String) async throws { said(text) }
        func close() { continuation.finish() }
        var closing: (code: Int, reason: String) { get async { end.withLock { $0 } } }

        func tell(_ text: String) { continuation.yield(Data(text.utf8)) }

        func hangUp(_ code: Int) {
            end.withLock { $0.code = code }
            continuation.finish()
        }
    }

    /// Each connection with the first thing that was said on it.
    let opened: AsyncStream<(Connection, String)>
    private let continuation: AsyncStream<(Connection, String)>.Continuation

    init() {
        (opened, continuation) = AsyncStream<(Connection, String)>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
    }

    /// Lets go of connections that no test took: they hold on to what holds them.
    func drain() async {
        continuation.finish()
        for await _ in opened {}
    }

    func connect(to url: URL) async throws -> any SocketConnection {
        let wasSaid = Mutex(false)
        let made = Mutex(Connection?.none)
        let connection = Connection { [continuation] text in
            guard
                !wasSaid.withLock({ said in
                    defer { said = true }
                    return said
                }), let connection = made.withLock({ $0 })
            else { return }
            // Who holds it from now on is the test; the connection holds this closure.
            made.withLock { $0 = nil }
            continuation.yield((connection, text))
        }
        made.withLock { $0 = connection }
        return connection
    }
}
