import Base
import Foundation
import HTTP
import Node
import Stage

/// What participants do in a stream. The stage decides; here is only found out who wants what.
extension GatewayHandler {
    /// Finds out who asks, and has the stage decide.
    /// - Parameter command: made of the sender, once it is known.
    func perform(
        _ request: HTTPRequest, _ parameters: [String: String],
        _ command: (Stage.Sender) throws -> Stage.Command
    ) async throws -> (answer: StageAnswer, token: Token) {
        let (stream, token, sender) = try participant(request, parameters)
        let command = try command(sender)
        return (try await service.perform(command, in: stream, from: sender), token)
    }

    /// A stream that its host, or an admin, asks about.
    func moderatedStream(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> StreamID {
        let (stream, _, sender) = try participant(request, parameters)
        guard try await service.look(at: stream, as: sender).you.isModerator else {
            throw StageRefusal.rejected(.notHost)
        }
        return stream
    }

    func participant(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) throws(Problem) -> (StreamID, Token, Stage.Sender) {
        let stream = try Self.stream(parameters)
        let token = try access.requireParticipant(request, of: stream)
        guard let sender = token.sender(in: stream) else {
            throw Access.otherStream
        }
        return (stream, token, sender)
    }

    /// The participant a path names, or the query: in a path, doubled slashes and segments of dots get lost.
    private static func target(
        _ parameters: [String: String], _ request: HTTPRequest
    ) throws(Problem) -> ParticipantID {
        let text = request.query("participant") ?? parameters["participant"]
        guard let id = text.flatMap({ ParticipantID($0) }) else {
            throw StageRefusal.rejected(.unknownParticipant).problem
        }
        return id
    }

    /// The participant a body names.
    private static func named(_ request: HTTPRequest) throws(Problem) -> ParticipantID {
        guard let id = try JSONBody(request).participant("participant") else {
            throw JSONBody.invalid("participant")
        }
        return id
    }

    /// - Parameter renews: whether the answer holds a token for what its bearer is now.
    func answer(
        _ result: (answer: StageAnswer, token: Token), renews: Bool = false
    ) throws(Problem) -> HTTPResponse {
        let (answer, token) = result
        var members: [String: JSON] = ["version": .integer(answer.version), "you": answer.you.json]
        if renews {
            members.merge(try access.renewed(token, for: answer).json) { _, new in new }
        }
        return Self.fresh(.object(members))
    }

    // MARK: Participants

    /// `GET .../participants`: what followers know, once.
    func showParticipants(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let stream = try Self.stream(parameters)
        let token = try access.requireViewer(request, of: stream)
        if let sender = token?.sender(in: stream) { _ = try await service.look(at: stream, as: sender) }
        return Self.fresh(try await service.overview(of: stream))
    }

    /// `POST .../participants`.
    func enter(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        try answer(
            try await perform(request, parameters) { _ in .join }, renews: true)
    }

    /// `DELETE .../participants/{participant}`: leave, or remove somebody.
    func removeParticipant(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        let bans = request.query("ban") == "true"
        return try answer(
            try await perform(request, parameters) { sender in
                bans ? .ban(target) : sender.id == target ? .leave : .remove(target)
            })
    }

    /// `GET .../bans`: who is kept out, for hosts.
    func showBans(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let (stream, _, sender) = try participant(request, parameters)
        return Self.fresh(try await service.bans(of: stream, as: sender))
    }

    /// `POST .../bans`.
    func ban(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        try answer(
            try await perform(request, parameters) { _ in .ban(try Self.named(request)) })
    }

    // MARK: Hands, invitations, speakers

    /// `POST .../invitations`.
    func invite(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        try answer(
            try await perform(request, parameters) { _ in .invite(try Self.named(request)) })
    }

    /// `DELETE .../invitations/{participant}`: decline one's own, or withdraw another's.
    func endInvitation(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        return try answer(
            try await perform(request, parameters) { sender in
                sender.id == target ? .decline : .withdrawInvitation(target)
            })
    }

    /// `POST .../invitations/{participant}/accept`.
    func acceptInvitation(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        return try answer(
            try await perform(request, parameters) { sender in
                guard sender.id == target else { throw StageRefusal.rejected(.notInvited) }
                return .accept
            }, renews: true)
    }

    /// `DELETE .../speakers/{participant}`: step down, or move somebody to the viewers.
    func leaveStage(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        let result = try await perform(request, parameters) { sender in
            sender.id == target ? .stepDown : .moveToViewers(target)
        }
        return try answer(result, renews: result.token.subject == target)
    }

    /// `PATCH .../speakers/{participant}`: what somebody on stage says of themselves.
    func describeSpeaker(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        let body = try JSONBody(request)
        var changes: [(command: Stage.Command, hides: Bool)] = []
        if let isOn = try body.bool("audioMuted") { changes.append((.setMuted(.audio, isOn), isOn)) }
        if let isOn = try body.bool("videoMuted") { changes.append((.setMuted(.video, isOn), isOn)) }
        if let isOn = try body.bool("paused") { changes.append((.setPaused(isOn), isOn)) }
        // What hides somebody comes first, because it is never refused for being too much.
        let inOrder = changes.filter { $0.hides } + changes.filter { !$0.hides }
        let commands = inOrder.map { $0.command }
        guard !commands.isEmpty else { throw JSONBody.invalid("audioMuted") }
        let (_, token, _) = try participant(request, parameters)
        guard token.subject == target else {
            throw StageRefusal.rejected(.notOnStage)
        }
        var result: (StageAnswer, Token)?
        for command in commands {
            result = try await perform(request, parameters) { _ in command }
        }
        guard let result else { throw JSONBody.invalid("audioMuted") }
        return try answer(result)
    }

    /// `POST .../speakers/{participant}/mute`: asks somebody's client to mute itself.
    func requestMute(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let target = try Self.target(parameters, request)
        let kind = try JSONBody(request, isOptional: true).string("kind") ?? "audio"
        guard let kind = StageChange.MediaKind(rawValue: kind) else { throw JSONBody.invalid("kind") }
        return try answer(
            try await perform(request, parameters) { _ in .requestMute(target, kind) })
    }

    /// What needs nothing but the participant in its path.
    func simple(
        _ operation: Operation, _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        try answer(
            try await perform(request, parameters) { _ in
                switch operation {
                case .lowerHand: .lowerHand(try Self.target(parameters, request))
                case .unban: .unban(try Self.target(parameters, request))
                default: .raiseHand
                }
            })
    }
}
