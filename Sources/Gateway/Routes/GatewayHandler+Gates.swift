import Base
import HTTP
import Node
import Stage

/// Gates: which sessions a gate keeps from a stream's programme, and how a token opens it.
extension GatewayHandler {
    /// `GET {session}/gate`: whether the session's stream is open to it, and the gate's terms.
    func showGate(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let gate = await service.gate(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(gate)
    }

    /// `POST {session}/gate`: adds the request's token to the session, so that its tiers count from now on.
    ///
    /// A viewer who has bought a tier continues in the same session, without negotiating again.
    func openGate(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let token = try call.access.token() else {
            throw Access.unauthorized("This requires the token that opens the gate.")
        }
        if purpose == .feed {
            let scope = try call.access.requireFeedReader().standing
            await service.show(token.sender, in: scope, for: id)
        } else {
            let stream = try call.stream
            guard let sender = token.sender(in: stream) else { throw Access.otherStream }
            // Throws for a bearer who is banned from the stream.
            _ = try await service.look(at: stream, as: sender)
            await service.show(sender, in: .one(stream), for: id)
        }
        guard let gate = await service.gate(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(gate)
    }

    /// Throws the gate's problem if the sender may not see the stream's programme.
    func requireOpenGate(of stream: StreamID, before sender: Stage.Sender?) async throws {
        if let gate = try await service.gate(of: stream, before: sender) { throw gate.problem }
    }
}
