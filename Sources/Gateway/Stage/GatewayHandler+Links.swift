import Base
import HTTP
import Node
import Stage

/// Links to a stream, and the exchange of links and tokens for new tokens.
extension GatewayHandler {
    /// Default of `ttl` in seconds: a day.
    private static let usualLinkLifetime = 86_400
    /// Limit of `ttl` in seconds: thirty days.
    private static let longestLinkLifetime = 2_592_000

    /// `POST .../links`: creates a link with an invitation to a role.
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
            // A host may invite before the stream exists; the stage is not there to decide, so the token does.
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
                // Null if the request does not reveal by which name the client knows the server.
                "url": .text(call.request.origin.map { $0 + path }), "token": .string(text.exposed),
                "expiresAt": .string(Timestamp.text(Double(invitation.expires))),
            ]), status: 201)
    }

    /// `DELETE .../links`: revokes all links made so far, of one role if the query names it.
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

    /// `POST .../tokens`: issues a token, by the credential that is shown.
    ///
    /// A token is renewed, an invitation is exchanged for a token with a new identity, and where viewers are public a
    /// client without credentials gets a viewer's token. The body may contain a name.
    func giveToken(_ call: Call) async throws -> HTTPResponse {
        switch try call.access.credential() {
        case .token: return try await renewToken(call)
        case .invitation(let invitation):
            let stream = try call.stream
            guard invitation.stream == stream else {
                throw Access.forbidden("This invitation is for another stream.")
            }
            let name = try call.body(isOptional: true).personName("name")
            let revocations = try await service.linkRevocations(of: stream)
            // Checked at each exchange, as the invitation itself is a signed text that cannot be taken back.
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

    /// Counts a new identity against the client's address; throws 429 beyond the allowance.
    private func takeGuest(_ call: Call) throws(Problem) {
        guard let wait = guests.take(call.request, at: elapsed()) else { return }
        var problem = Problem(
            429, "too-many-guests",
            "Too many people joined from your network. Try again in \(wait.inSeconds).",
            headers: ["Retry-After": "\(wait)"])
        problem.quota = GuestAllowance.quota
        throw problem
    }

    /// Refuses bearers who came by a link that was revoked since, where watching requires a token.
    ///
    /// Without this check they could return by the feed.
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

    /// Renews the sender's token for what they are in the stream now.
    private func renewToken(_ call: Call) async throws -> HTTPResponse {
        let (stream, token, sender) = try call.sender()
        let name = try call.body(isOptional: true).personName("name")
        let seen: StageAnswer?
        do throws(StageRefusal) {
            seen = try await service.look(at: stream, as: sender)
        } catch {
            guard error == .unknownStream else { throw error }
            // A host may set a name before creating the stream.
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
