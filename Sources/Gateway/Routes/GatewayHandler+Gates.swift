import Base
import HTTP
import Node
import Stage

/// Gates of streams: who is behind one, and what opens it.
extension GatewayHandler {
    /// `GET {session}/gate`: whether what the session watches is open to it, and on what terms.
    func showGate(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let gate = await service.gate(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(gate)
    }

    /// `POST {session}/gate`: the token that comes with it counts for the session, too, from now on.
    func openGate(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let token = try call.access.token() else {
            throw Access.unauthorized("This takes the token that opens the gate.")
        }
        if purpose == .feed {
            let scope = try call.access.requireFeedReader().standing
            await service.show(token.sender, in: scope, for: id)
        } else {
            let stream = try call.stream
            guard let sender = token.sender(in: stream) else { throw Access.otherStream }
            _ = try await service.look(at: stream, as: sender)
            await service.show(sender, in: .one(stream), for: id)
        }
        guard let gate = await service.gate(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(gate)
    }

    /// Refuses who may not see a stream's programme.
    func requireOpenGate(of stream: StreamID, before sender: Stage.Sender?) async throws {
        if let gate = try await service.gate(of: stream, before: sender) { throw gate.problem }
    }
}
