import Base
import HTTP
import Interaction
import Node
import Stage

/// Following a stream by WebSocket.
extension GatewayHandler {
    /// `GET /v1/streams/{stream}/sync`: a WebSocket that gets a snapshot and then changes, and accepts commands.
    ///
    /// The token is checked during the handshake. Bans and the stream's existence are reported afterwards by a close
    /// code, because the handshake is answered on the service thread, which cannot wait for the stage.
    func follow(_ call: Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        let sender = token?.sender(in: stream)
        // A token for another stream grants nothing here, so its end does not matter.
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
                // Returning ends the conversation; the close frame and queued messages are sent first.
                return
            }
            for await message in connection.incoming {
                // Heartbeats and unknown messages only show that the client is alive.
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

    /// Performs a command from a socket and returns the answer; nil if there is none to send.
    ///
    /// Commands of one socket are performed one at a time, in order.
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

/// Closes of a socket that could not be followed at all.
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

/// The follower's end of a WebSocket, as the node sees it.
struct SyncSocket: SyncFollower {
    let connection: WebSocketConnection

    /// Limit in bytes that may be queued before a further message; a reader beyond it gets a snapshot in place of the
    /// changes it missed.
    private static let limit = 64 * 1_024

    func send(_ text: String) -> SyncDelivery {
        switch connection.send(.text(text), limit: Self.limit) {
        case .queued: .queued
        case .full: .full
        case .closed: .closed
        }
    }

    var isDrained: Bool { connection.isDrained }

    /// Closes with the reason's code: 4000 plus an HTTP status for refusals, or a registered code (RFC 6455 §7.4).
    func close(_ reason: SyncClose) {
        let code: UInt16 =
            switch reason {
            // Clients do not reconnect after 4403.
            case .banned, .removed, .linkRevoked: 4_403
            case .expired: 4_401
            case .unknownStream: 4_404
            case .unavailable: 1_013
            case .goingAway: 1_001
            }
        connection.close(WebSocketClose(code: code, reason: reason.rawValue))
    }
}
