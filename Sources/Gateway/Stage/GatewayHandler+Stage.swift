import Base
import HTTP
import Node
import Stage

/// What participants do in a stream. The stage decides; here is only found out who wants what.
extension GatewayHandler {
    /// Finds out who asks, and has the stage decide.
    /// - Parameter command: made of the sender, once it is known.
    func perform(
        _ call: Call, _ command: (Stage.Sender) throws -> Stage.Command
    ) async throws -> (answer: StageAnswer, token: Token) {
        let (stream, token, sender) = try call.sender()
        return (try await service.perform(try command(sender), in: stream, from: sender), token)
    }

    /// The same, answered with what whoever asked is now.
    func act(
        _ call: Call, renews: Bool = false, _ command: (Stage.Sender) throws -> Stage.Command
    ) async throws -> HTTPResponse {
        try answer(call, try await perform(call, command), renews: renews)
    }

    /// A stream that its host, or an admin, asks about.
    func moderatedStream(_ call: Call) async throws -> StreamID {
        let (stream, _, sender) = try call.sender()
        guard try await service.look(at: stream, as: sender).you.isModerator else {
            throw StageRefusal.rejected(.notHost)
        }
        return stream
    }

    /// - Parameter renews: whether the answer holds a token for what its bearer is now.
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

    /// `GET .../participants`: what followers know, once.
    func showParticipants(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let token = try call.access.requireViewer(of: stream)
        if let sender = token?.sender(in: stream) { _ = try await service.look(at: stream, as: sender) }
        return Self.fresh(try await service.overview(of: stream))
    }

    /// `POST .../participants`.
    func enter(_ call: Call) async throws -> HTTPResponse {
        try await act(call, renews: true) { _ in .join }
    }

    /// `DELETE .../participants/{participant}`: leave, or remove somebody.
    func removeParticipant(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let bans = call.request.query("ban") == "true"
        return try await act(call) { sender in
            bans ? .ban(target) : sender.id == target ? .leave : .remove(target)
        }
    }

    /// `GET .../bans`: who is kept out, for hosts.
    func showBans(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        return Self.fresh(try await service.bans(of: stream, as: sender))
    }

    /// `POST .../bans`.
    func ban(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .ban(try call.body().requiredParticipant()) }
    }

    /// `DELETE .../bans/{participant}`.
    func unban(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .unban(try call.participant) }
    }

    // MARK: Hands, invitations, speakers

    /// `POST .../hands`.
    func raiseHand(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .raiseHand }
    }

    /// `DELETE .../hands/{participant}`: one's own, or another's.
    func lowerHand(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .lowerHand(try call.participant) }
    }

    /// `PATCH .../hands/{participant}`: another place, or none for a while.
    func arrangeHand(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let body = try call.body()
        let (place, isHeld) = (try body.integer("place"), try body.bool("held"))
        switch (place, isHeld) {
        case (let place?, nil): return try await act(call) { _ in .moveHand(target, place: place) }
        case (nil, let isHeld?): return try await act(call) { _ in .holdHand(target, isHeld) }
        default: throw JSONBody.invalid("place")
        }
    }

    /// `POST .../invitations`.
    func invite(_ call: Call) async throws -> HTTPResponse {
        try await act(call) { _ in .invite(try call.body().requiredParticipant()) }
    }

    /// `DELETE .../invitations/{participant}`: decline one's own, or withdraw another's.
    func endInvitation(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        return try await act(call) { sender in
            sender.id == target ? .decline : .withdrawInvitation(target)
        }
    }

    /// `POST .../invitations/{participant}/accept`.
    func acceptInvitation(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let isSoundOnly = try call.body(isOptional: true).bool("videoMuted") ?? false
        return try await act(call, renews: true) { sender in
            guard sender.id == target else { throw StageRefusal.rejected(.notInvited) }
            return isSoundOnly ? .acceptSoundOnly : .accept
        }
    }

    /// `DELETE .../speakers/{participant}`: step down, or move somebody to the viewers.
    func leaveStage(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let result = try await perform(call) { sender in
            sender.id == target ? .stepDown : .moveToViewers(target)
        }
        return try answer(call, result, renews: result.token.subject == target)
    }

    /// `PATCH .../speakers/{participant}`: what somebody on stage says of themselves.
    func describeSpeaker(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let body = try call.body()
        var changes: [(command: Stage.Command, hides: Bool)] = []
        if let isOn = try body.bool("audioMuted") { changes.append((.setMuted(.audio, isOn), isOn)) }
        if let isOn = try body.bool("videoMuted") { changes.append((.setMuted(.video, isOn), isOn)) }
        if let isOn = try body.bool("paused") { changes.append((.setPaused(isOn), isOn)) }
        // What hides somebody comes first, because it is never refused for being too much.
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

    /// `POST .../speakers/{participant}/mute`: asks somebody's client to mute itself.
    func requestMute(_ call: Call) async throws -> HTTPResponse {
        let target = try call.participant
        let kind = try call.body(isOptional: true).string("kind") ?? "audio"
        guard let kind = StageChange.MediaKind(rawValue: kind) else { throw JSONBody.invalid("kind") }
        return try await act(call) { _ in .requestMute(target, kind) }
    }
}
