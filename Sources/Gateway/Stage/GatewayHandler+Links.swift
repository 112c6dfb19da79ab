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
    func makeLink(_ call: Call) async throws -> HTTPResponse {
        let (stream, token, sender) = try call.sender()
        let body = try call.body()
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
        let (invitation, text) = try call.access.invitation(
            to: stream, as: role, lifetime: lifetime, after: revocations)
        let path = invitation.path(text)
        return Self.fresh(
            .object([
                "role": .string(role.rawValue), "path": .string(path),
                "url": .text(call.request.origin.map { $0 + path }), "token": .string(text.exposed),
                "expiresAt": .string(Timestamp.text(Double(invitation.expires))),
            ]), status: 201)
    }

    /// `DELETE .../links`: what was made so far leads nowhere any more.
    func revokeLinks(_ call: Call) async throws -> HTTPResponse {
        var role: Invitation.Role?
        if let text = call.request.query("role") {
            guard let named = Invitation.Role(rawValue: text) else { throw JSONBody.invalid("role") }
            role = named
        }
        return try await act(call) { _ in
            .revokeLinks(speakers: role != .viewer, viewers: role != .speaker)
        }
    }

    /// `POST .../tokens`: a fresh one for a token, one of one's own for an invitation, and a viewer's where viewers
    /// need none; perhaps with another name.
    func giveToken(_ call: Call) async throws -> HTTPResponse {
        switch try call.access.credential() {
        case .token: return try await renewToken(call)
        case .invitation(let invitation):
            let stream = try call.stream
            guard invitation.stream == stream else {
                throw Access.forbidden("This invitation is not for this stream.")
            }
            let name = try call.body(isOptional: true).personName("name")
            let revocations = try await service.linkRevocations(of: stream)
            guard revocations.allows(invitation.link) else {
                throw Access.forbidden("The host has revoked this link.", rule: "link-revoked")
            }
            try takeGuest(call)
            let issued = try call.access.welcome(to: stream, by: invitation, name: name)
            return Self.fresh(issued.introduction, status: 201)
        case nil:
            let stream = try call.stream
            guard settings.viewers == .everyone else { throw Access.unauthorized("This requires a token.") }
            let name = try call.body(isOptional: true).personName("name")
            try takeGuest(call)
            let issued = try call.access.welcome(to: stream, by: nil, name: name)
            return Self.fresh(issued.introduction, status: 201)
        }
    }

    /// Counts a name that somebody gets.
    private func takeGuest(_ call: Call) throws(Problem) {
        guard let wait = guests.take(call.request, at: call.access.now()) else { return }
        var problem = Problem(
            429, "too-many-guests", "Your address has taken many names; try again in \(wait) seconds.",
            headers: ["Retry-After": "\(wait)"])
        problem.quota = GuestAllowance.quota
        throw problem
    }

    /// Who came by a link that was revoked does not come back by the feed either, where to watch takes a token.
    func requireStandingLink(_ call: Call) async throws {
        guard settings.viewers != .everyone, let token = try call.access.token(), token.link != nil,
            case .one(let stream) = token.scope, let sender = token.sender(in: stream)
        else { return }
        do throws(StageRefusal) {
            _ = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .rejected(.linkRevoked) else { return }
            throw error
        }
    }

    private func renewToken(_ call: Call) async throws -> HTTPResponse {
        let (stream, token, sender) = try call.sender()
        let name = try call.body(isOptional: true).personName("name")
        let seen: StageAnswer?
        do throws(StageRefusal) {
            seen = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .unknownStream else { throw error }
            // A host says who they are before they make it.
            seen = nil
        }
        var members = try call.access.renewed(token, for: seen, in: stream, name: name).json
        if let seen {
            members["version"] = .integer(seen.version)
            members["you"] = seen.you.json
        }
        return Self.fresh(.object(members))
    }
}
