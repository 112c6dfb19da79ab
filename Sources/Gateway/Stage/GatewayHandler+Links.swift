import Base
import HTTP
import Node
import Stage

/// Links that a host gives to others, and the tokens of their own that those get for them.
extension GatewayHandler {
    /// In seconds: a day, and thirty.
    private static let usualLinkLifetime = 86_400
    private static let longestLinkLifetime = 2_592_000

    /// `POST .../links`: an invitation in a link.
    func makeLink(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let (stream, token, sender) = try participant(request, parameters)
        let body = try JSONBody(request)
        guard let role = try body.string("role").flatMap({ Invitation.Role(rawValue: $0) }) else {
            throw JSONBody.invalid("role")
        }
        let lifetime = try body.integer("ttl") ?? Self.usualLinkLifetime
        guard (1...Self.longestLinkLifetime).contains(lifetime) else { throw JSONBody.invalid("ttl") }
        var revocations = StageRecord.LinkRevocations()
        do throws(StageRefusal) {
            revocations = try await service.perform(.makeLink, in: stream, from: sender).linkRevocations
        } catch {
            guard error == .unknownStream else { throw error }
            // Whoever is about to make it may invite before.
            guard token.role == .host || token.role == .admin else {
                throw StageRefusal.rejected(.notHost)
            }
        }
        let (invitation, text) = try access.invitation(
            to: stream, as: role, lifetime: lifetime, after: revocations)
        let path = invitation.path(text)
        return Self.fresh(
            .object([
                "role": .string(role.rawValue), "path": .string(path),
                "url": .text(request.origin.map { $0 + path }), "token": .string(text.exposed),
                "expiresAt": .string(Timestamp.text(Double(invitation.expires))),
            ]), status: 201)
    }

    /// `DELETE .../links`: what was made so far leads nowhere any more.
    func revokeLinks(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        var role: Invitation.Role?
        if let text = request.query("role") {
            guard let named = Invitation.Role(rawValue: text) else { throw JSONBody.invalid("role") }
            role = named
        }
        return try answer(
            try await perform(request, parameters) { _ in
                .revokeLinks(speakers: role != .viewer, viewers: role != .speaker)
            })
    }

    /// `POST .../tokens`: a fresh one for a token, one of one's own for an invitation, and a viewer's where viewers
    /// need none; perhaps with another name.
    func giveToken(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        switch try access.credential(of: request) {
        case .token: return try await renewToken(request, parameters)
        case .invitation(let invitation):
            let stream = try Self.stream(parameters)
            guard invitation.stream == stream else {
                throw Access.forbidden("This invitation is not for this stream.")
            }
            let name = try JSONBody(request, isOptional: true).personName("name")
            let revocations = try await service.linkRevocations(of: stream)
            guard revocations.allows(invitation.link) else {
                throw Access.forbidden("The host has revoked this link.", rule: "link-revoked")
            }
            try takeGuest(request)
            let issued = try access.welcome(to: stream, by: invitation, name: name)
            return Self.fresh(issued.introduction, status: 201)
        case nil:
            let stream = try Self.stream(parameters)
            guard settings.viewers == .everyone else { throw Access.unauthorized("This requires a token.") }
            let name = try JSONBody(request, isOptional: true).personName("name")
            try takeGuest(request)
            let issued = try access.welcome(to: stream, by: nil, name: name)
            return Self.fresh(issued.introduction, status: 201)
        }
    }

    /// Counts a name that somebody gets.
    private func takeGuest(_ request: HTTPRequest) throws(Problem) {
        guard let wait = guests.take(request, at: access.now()) else { return }
        throw Problem(
            429, "too-many-guests", "Your address has taken many names; try again in \(wait) seconds.",
            headers: ["Retry-After": "\(wait)"])
    }

    /// Who came by a link that was revoked does not come back by the feed either, where to watch takes a token.
    func requireStandingLink(_ request: HTTPRequest) async throws {
        guard settings.viewers != .everyone, let token = try access.token(of: request), token.link != nil,
            case .one(let stream) = token.scope, let sender = token.sender(in: stream)
        else { return }
        do throws(StageRefusal) {
            _ = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .rejected(.linkRevoked) else { return }
            throw error
        }
    }

    private func renewToken(
        _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        let (stream, token, sender) = try participant(request, parameters)
        let name = try JSONBody(request, isOptional: true).personName("name")
        let seen: StageAnswer?
        do throws(StageRefusal) {
            seen = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .unknownStream else { throw error }
            // A host says who they are before they make it.
            seen = nil
        }
        var members = try access.renewed(token, for: seen, in: stream, name: name).json
        if let seen {
            members["version"] = .integer(seen.version)
            members["you"] = seen.you.json
        }
        return Self.fresh(.object(members))
    }
}
