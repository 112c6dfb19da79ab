import Base
import HTTP
import Interaction
import Node
import Stage

/// Duels of two live streams: a host acts for their own stream, an admin for either.
extension GatewayHandler {
    /// `POST /v1/duels`: invites another stream's host, with the duel's terms.
    func inviteToDuel(_ call: Call) async throws -> HTTPResponse {
        // The body names the stream, so only the token itself can be checked before it.
        guard try call.access.token() != nil else { throw Access.unauthorized("This requires a token.") }
        let body = try call.body()
        guard let from = try body.stream("from") else { throw Interaction.Refusal.invalid("from") }
        let token = try call.access.requireParticipant(of: from)
        guard let sender = token.sender(in: from) else { throw Access.otherStream }
        guard let to = try body.stream("to") else { throw Interaction.Refusal.invalid("to") }
        let duel = try await service.perform(.invite(to, try body.duelTerms()), in: from, from: sender)
        return Self.fresh(duel, status: 201)
    }

    /// `GET /v1/duels/{duel}`: the duel, for viewers of either stream.
    func showDuel(_ call: Call) async throws -> HTTPResponse {
        let id = try duel(call)
        let token = try await call.access.requireViewer(
            of: id.inviter, or: { try await service.sides(of: id).to })
        let stream = token.stream
        return Self.fresh(
            try await service.duel(id, of: stream, as: token.token?.sender(in: stream)))
    }

    /// `POST /v1/duels/{duel}/accept`: for the invited stream's host.
    func acceptDuel(_ call: Call) async throws -> HTTPResponse {
        try await act(call, as: { $0.to }) { .accept($0) }
    }

    /// `POST /v1/duels/{duel}/decline`: for the invited stream's host.
    func declineDuel(_ call: Call) async throws -> HTTPResponse {
        try await act(call, as: { $0.to }) { .decline($0) }
    }

    /// `POST /v1/duels/{duel}/cancel`: for the inviting stream's host.
    func cancelDuel(_ call: Call) async throws -> HTTPResponse {
        try await act(call, as: { $0.from }) { .cancel($0) }
    }

    /// `POST /v1/duels/{duel}/leave`: for the host of either stream.
    func leaveDuel(_ call: Call) async throws -> HTTPResponse {
        try await act(call, as: nil) { .leave($0) }
    }

    /// `POST /v1/duels/{duel}/rematch`: for the host of either stream; 201 with the new duel.
    func rematchDuel(_ call: Call) async throws -> HTTPResponse {
        try await act(call, as: nil, status: 201) { .rematch($0) }
    }

    /// The duel in the path; 404 for a text that is no duel's id.
    private func duel(_ call: Call) throws(Interaction.Refusal) -> DuelID {
        guard let id = call.parameters["duel"].flatMap({ DuelID($0) }) else { throw .unknownDuel }
        return id
    }

    /// Performs a command in a duel, for the stream of one side.
    /// - Parameter side: the side that may give the command; nil for either, named by the body or else by the token.
    private func act(
        _ call: Call, as side: (((from: StreamID, to: StreamID)) -> StreamID)?, status: Int = 200,
        _ command: (DuelID) -> DuelSide.Command
    ) async throws -> HTTPResponse {
        guard let token = try call.access.token() else { throw Access.unauthorized("This requires a token.") }
        let id = try duel(call)
        let sides = try await service.sides(of: id)
        let stream: StreamID
        if let side {
            stream = side(sides)
        } else {
            let named = try call.body(isOptional: true).stream("stream")
            let own = [sides.from, sides.to].filter(token.mayPlay)
            guard !own.isEmpty else { throw Access.otherStream }
            // A token that is valid for both streams, such as an admin's, requires the body to name one.
            guard let chosen = named ?? (own.count == 1 ? own[0] : nil),
                chosen == sides.from || chosen == sides.to
            else { throw Interaction.Refusal.invalid("stream") }
            stream = chosen
        }
        guard let sender = token.sender(in: stream) else { throw Access.otherStream }
        return Self.fresh(try await service.perform(command(id), in: stream, from: sender), status: status)
    }
}

extension Access {
    /// The one of two streams that the sender may watch, preferring the first.
    /// - Parameter other: the second stream, looked up only if the token is not valid for the first.
    fileprivate func requireViewer(
        of stream: StreamID, or other: () async throws -> StreamID
    ) async throws -> (stream: StreamID, token: Token?) {
        let token = try self.token()
        // Without a token, or with one for the first stream, the second does not matter.
        guard let token, !token.mayPlay(stream) else { return (stream, try requireViewer(of: stream)) }
        let other = try await other()
        guard token.mayPlay(other) else { return (stream, try requireViewer(of: stream)) }
        return (other, token)
    }
}

extension JSONBody {
    /// A stream's name; nil if the member is missing.
    fileprivate func stream(_ name: String) throws -> StreamID? {
        guard let text = try string(name) else { return nil }
        guard let stream = StreamID(text) else { throw Interaction.Refusal.invalid(name) }
        return stream
    }

    /// The duel's terms; missing members have their defaults, and the interaction checks ranges.
    fileprivate func duelTerms() throws -> DuelTerms {
        var terms = DuelTerms()
        if let seconds = try integer("seconds") { terms.seconds = seconds }
        if let seconds = try integer("penaltySeconds") { terms.penaltySeconds = seconds }
        guard let weights = try object("weights") else { return terms }
        if let weight = try weights.integer("gifts") { terms.giftWeight = weight }
        if let weight = try weights.integer("reactions") { terms.reactionWeight = weight }
        return terms
    }
}
