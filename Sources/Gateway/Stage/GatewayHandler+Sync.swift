import Base
import Node
import Stage

/// Who follows a stream.
extension GatewayHandler {
    /// `GET /v1/streams/{stream}/sync`: first a snapshot, then changes, over a WebSocket.
    func follow(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let stream = try Self.stream(parameters)
        let sender = try access.requireViewer(request, of: stream)?.sender(in: stream)
        let since = request.query("since").flatMap { UInt64($0) }
        return { [service] connection in
            let end = SyncSocket(connection: connection)
            let stop: @Sendable () async -> Void
            do throws(StageRefusal) {
                stop = try await service.follow(stream, as: sender, since: since, end)
            } catch {
                end.close(SyncClose(error))
                // The socket's own task ends with the conversation, and what is queued goes out first.
                return
            }
            // Heartbeats and whatever else the client says only show that it is there.
            for await _ in connection.incoming {}
            await stop()
        }
    }
}

extension SyncClose {
    init(_ refusal: StageRefusal) {
        self =
            switch refusal {
            case .rejected(.banned): .banned
            case .unknownStream: .unknownStream
            default: .unavailable
            }
    }
}

/// A WebSocket that tells of a stream.
struct SyncSocket: SyncFollower {
    let connection: WebSocketConnection

    /// What may wait for a slow reader, beyond one message; a snapshot takes its place.
    private static let limit = 64 * 1_024

    func send(_ text: String) -> SyncDelivery {
        switch connection.send(.text(text), limit: Self.limit) {
        case .queued: .queued
        case .full: .full
        case .closed: .closed
        }
    }

    var isDrained: Bool { connection.isDrained }

    func close(_ reason: SyncClose) {
        let code: UInt16 =
            switch reason {
            case .banned, .removed: 4_403
            case .unknownStream: 4_404
            case .unavailable: 1_013
            case .goingAway: 1_001
            }
        connection.close(WebSocketClose(code: code, reason: reason.rawValue))
    }
}
