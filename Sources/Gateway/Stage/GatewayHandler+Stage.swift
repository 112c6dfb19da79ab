import Base
import HTTP
import Node
import Stage

/// Commands of participants in a stream.
///
/// These routes only determine the sender and the command; the stage decides whether it is permitted.
extension GatewayHandler {
    /// Identifies the sender and performs a command in the stream of the path.
    /// - Parameter command: makes the command, given the sender.
    func perform(
        _ call: Call, _ command: (Stage.Sender) throws -> Stage.Command
    ) async throws -> (answer: StageAnswer, token: Token) {
        let (stream, token, sender) = try call.sender()
        return (try await service.perform(try command(sender), in: stream, from: sender), token)
    }

    /// Performs a command and answers with what the sender is in the stream now.
    /// - Parameter renews: whether the answer contains a token for that.
    func act(
        _ call: Call, renews: Bool = false, _ command: (Stage.Sender) throws -> Stage.Command
    ) async throws -> HTTPResponse {
        try answer(call, try await perform(call, command), renews: renews)
    }

    /// The stream in the path, for its host and admins; throws for anyone else.
    func moderatedStream(_ call: Call) async throws -> StreamID {
        let (stream, _, sender) = try call.sender()
        guard try await service.look(at: stream, as: sender).you.isModerator else {
            throw StageRefusal.rejected(.notHost)
        }
        return stream
    }

    /// Throws if a sender is banned from a stream, or came by a link that was revoked since; a stream that does not
    /// exist yet keeps nobody out.
    func requireAdmitted(_ sender: Stage.Sender, to stream: StreamID) async throws {
        do throws(StageRefusal) {
            _ = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .unknownStream else { throw error }
        }
    }

    /// The response after a command.
    /// - Parameter renews: whether it contains a token for what the bearer is now.
    private func answer(
        _ call: Call, _ result: (answer: StageAnswer, token: Token), renews: Bool = false
    ) throws(Problem) -> HTTPResponse {
        let (answer, token) = result
        var members: [String: JSON] = ["version": .integer(answer.version), "you": answer.you.json]
        if renews {
            members.merge(try call.access.renewed(token, for: answer).json) { _, new in new }
        }
        return Self.fresh(.object(members))
    }

    // MARK: Participants

    /// `GET .../participants`: the content of a follower's snapshot, for clients that poll.
    func showParticipants(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        if let sender = token?.sender(in: stream) { _ = try await service.look(at: stream, as: sender) }
        return Self.fresh(try await service.overview(of: stream))
    }

    /// `POST .../participants`: enters the stream; the answer contains a token for the sender's role in it.
    func enter(_ call: Call) async throws -> HTTPResponse {
        try await act(call, renews: true) { _ in .join }
    }

    /// `DELETE .../participants/{participant}`: leaves, or removes another; with `?ban=true` also bans them.
    func removeParticipant(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        return try await act(call) { sender in
            // Any other word would remove someone who was meant to be kept out, too.
            switch call.request.query("ban") {
            case "true": return .ban(target)
            case nil, "false": return sender.id == target ? .leave : .remove(target)
            default: throw JSONBody.invalid("ban")
            }
        }
    }

    /// `GET .../bans`: the banned identities, for hosts.
    func showBans(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        return Self.fresh(try await service.bans(of: stream, as: sender))
    }

    /// `POST .../bans`: bans an identity.
    func ban(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .ban(try call.body().requiredParticipant()) }
    }

    /// `DELETE .../bans/{participant}`: lifts a ban.
    func unban(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .unban(try call.participant) }
    }

    // MARK: Hands, invitations, speakers

    /// `POST .../hands`: raises the sender's hand.
    func raiseHand(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .raiseHand }
    }

    /// `DELETE .../hands/{participant}`: lowers one's own hand, or another's.
    func lowerHand(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .lowerHand(try call.participant) }
    }

    /// `PATCH .../hands/{participant}`: moves a hand to a place in the queue, or puts it on hold.
    ///
    /// Exactly one of `place` and `held` must be given, so that a request is one command.
    func arrangeHand(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let body = try call.participantBody()
        let (place, isHeld) = (try body.integer("place"), try body.bool("held"))
        switch (place, isHeld) {
        case (let place?, nil): return try await act(call) { _ in .moveHand(target, place: place) }
        case (nil, let isHeld?): return try await act(call) { _ in .holdHand(target, isHeld) }
        default: throw JSONBody.invalid("place")
        }
    }

    /// `POST .../invitations`: invites a participant to the stage.
    func invite(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .invite(try call.body().requiredParticipant()) }
    }

    /// `DELETE .../invitations/{participant}`: declines one's own invitation, or withdraws another's.
    func endInvitation(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        return try await act(call) { sender in
            sender.id == target ? .decline : .withdrawInvitation(target)
        }
    }

    /// `POST .../invitations/{participant}/accept`: goes on stage, with `videoMuted` by sound only.
    func acceptInvitation(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let isSoundOnly = try call.participantBody(isOptional: true).bool("videoMuted") ?? false
        return try await act(call, renews: true) { sender in
            guard sender.id == target else { throw StageRefusal.rejected(.notInvited) }
            return isSoundOnly ? .acceptSoundOnly : .accept
        }
    }

    /// `DELETE .../speakers/{participant}`: leaves the stage, or moves another to the viewers.
    func leaveStage(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let result = try await perform(call) { sender in
            sender.id == target ? .stepDown : .moveToViewers(target)
        }
        return try answer(call, result, renews: result.token.subject == target)
    }

    /// `PATCH .../speakers/{participant}`: a speaker's own state: muted microphone, muted camera, paused.
    func describeSpeaker(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let body = try call.participantBody()
        var changes: [(command: Stage.Command, hides: Bool)] = []
        if let isOn = try body.bool("audioMuted") { changes.append((.setMuted(.audio, isOn), isOn)) }
        if let isOn = try body.bool("videoMuted") { changes.append((.setMuted(.video, isOn), isOn)) }
        if let isOn = try body.bool("paused") { changes.append((.setPaused(isOn), isOn)) }
        // Muting comes first: it is never refused for too many commands, so privacy does not depend on the rest.
        let inOrder = changes.filter { $0.hides } + changes.filter { !$0.hides }
        let commands = inOrder.map { $0.command }
        guard !commands.isEmpty else { throw JSONBody.invalid("audioMuted") }
        let (_, token, _) = try call.sender()
        guard token.subject == target else { throw StageRefusal.rejected(.notOnStage) }
        var result: (StageAnswer, Token)?
        for command in commands { result = try await perform(call) { _ in command } }
        guard let result else { throw JSONBody.invalid("audioMuted") }
        return try answer(call, result)
    }

    /// `POST .../speakers/{participant}/mute`: requests that a speaker's client mutes itself.
    func requestMute(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let kind = try call.participantBody(isOptional: true).string("kind") ?? "audio"
        guard let kind = MediaKind(rawValue: kind) else { throw JSONBody.invalid("kind") }
        return try await act(call) { _ in .requestMute(target, kind) }
    }
}
