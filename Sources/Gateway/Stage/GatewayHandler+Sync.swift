import Base
import HTTP
import Interaction
import Node
import Stage

/// Who follows a stream.
extension GatewayHandler {
    /// `GET /v1/streams/{stream}/sync`: first a snapshot, then changes, over a WebSocket.
    func follow(_ call: Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        let expiry = sender == nil ? nil : token?.expiry
        let since = call.request.query("since").flatMap { UInt64($0) }
        return { [service] connection in
            let end = SyncSocket(connection: connection)
            let stop: @Sendable () async -> Void
            do throws(StageRefusal) {
                stop = try await service.follow(
                    stream, as: sender, since: since, until: expiry, end)
            } catch {
                end.close(SyncClose(error))
                // The socket's own task ends with the conversation, and what is queued goes out first.
                return
            }
            for await message in connection.incoming {
                // Heartbeats, and whatever else we do not know, only show that the client is there.
                switch SyncMessage(message) {
                case .session(let id): if let sender { await service.adopt(id, in: stream, as: sender) }
                case .command(let command):
                    let answer = await Self.answer(to: command, in: stream, from: sender, service)
                    if let answer { _ = end.send(answer) }
                case nil: continue
                }
            }
            await stop()
        }
    }

    /// Does what somebody asks for on their socket, one thing after the other.
    private static func answer(
        to command: Interaction.Command, in stream: StreamID, from sender: Stage.Sender?,
        _ service: any SessionService
    ) async -> String? {
        guard let sender else { return SyncAnswer.text(identityMissing(in: stream), to: command) }
        do throws(StageRefusal) {
            return AudienceAnswer.text(
                try await service.perform(command, in: stream, from: sender), to: command)
        } catch {
            return SyncAnswer.text(error.problem, to: command)
        }
    }
}

extension SyncClose {
    init(_ refusal: StageRefusal) {
        self =
            switch refusal {
            case .rejected(.banned): .banned
            case .rejected(.linkRevoked): .linkRevoked
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
            case .banned, .removed, .linkRevoked: 4_403
            case .expired: 4_401
            case .unknownStream: 4_404
            case .unavailable: 1_013
            case .goingAway: 1_001
            }
        connection.close(WebSocketClose(code: code, reason: reason.rawValue))
    }
}
