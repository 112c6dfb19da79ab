import Base
import Crypto
import Node
import Stage

/// A token that was just signed, and what its answer says of it.
struct IssuedToken {
    let text: Secret<String>
    let token: Token

    /// `token` and `expiresAt`.
    var json: [String: JSON] {
        [
            "token": .string(text.exposed), "expiresAt": .string(Timestamp.text(Double(token.expires))),
        ]
    }

    /// The same with who its bearer is from now on.
    var introduction: JSON {
        .object(
            json.merging([
                "participant": .string(token.subject.description), "name": .text(token.name),
                "role": .string(token.role.rawValue),
            ]) { _, new in new })
    }
}

extension Access {
    /// How long a token lasts at most that is given in exchange for another, in seconds.
    private static let renewalLifetime = 3_600
    /// How long a token lasts that somebody without a name gets, in seconds: longer than any stream, so that nobody
    /// becomes somebody else in the middle of one.
    private static let guestLifetime = Token.renewalSpan

    private func issue(_ token: Token) throws(Problem) -> IssuedToken {
        let minted = authority.mint(
            subject: token.subject, name: token.name, scope: token.scope, role: token.role,
            capabilities: token.capabilities, tiers: token.tiers, issuedAt: now(), expires: token.expires,
            renewableUntil: token.renewableUntil, link: token.link)
        guard let minted else { throw Problem(503, nil, "This server has no key to sign with.") }
        return IssuedToken(text: minted, token: token)
    }

    /// A token for what somebody is in a stream now; it lasts an hour, or as long as the one that was shown, but never
    /// longer than what was issued from outside allows, however often it is renewed.
    /// - Parameters:
    ///   - answer: nil for a stream that nobody made yet: its bearer is what the token says.
    ///   - name: nil to keep the token's.
    func renewed(
        _ token: Token, for answer: StageAnswer?, in stream: StreamID? = nil, name: String? = nil
    ) throws(Problem) -> IssuedToken {
        guard let stream = answer?.stream.id ?? stream else { throw StageRefusal.unknownStream.problem }
        let role: Role =
            switch answer?.you.standing {
            case .host: .host
            // Who came to host a stream that has a host may be it next.
            case .speaker: token.role == .host || token.role == .admin ? .host : .speaker
            // Whoever left the stage does not come back by a token; whoever has not been there yet does.
            case .viewer: answer?.isStageToken == true ? token.role : .viewer
            case nil: token.role == .admin ? .host : token.role
            }
        return try issue(
            Token(
                keyID: token.keyID, subject: token.subject, name: name ?? token.name, scope: .one(stream),
                role: role, capabilities: token.capabilities, tiers: token.tiers,
                expires: max(token.expires, min(now() + Self.renewalLifetime, token.renewableUntil)),
                renewableUntil: token.renewableUntil, link: token.link))
    }

    /// A token for somebody who came by an invitation, or without anything.
    /// - Parameter invitation: nil for viewers of a server where anyone may watch.
    func welcome(
        to stream: StreamID, by invitation: Invitation?, name: String?
    ) throws(Problem) -> IssuedToken {
        guard let random = try? RandomBytes.make(12),
            let subject = ParticipantID(Token.guestPrefix + Base64URL.encode(random))
        else { throw Problem(503, nil, "This server has no random numbers at the moment.") }
        let role = invitation.map { Role($0.role) } ?? .viewer
        let expires = now() + Self.guestLifetime
        return try issue(
            Token(
                keyID: "", subject: subject, name: name, scope: .one(stream), role: role,
                // Who may be on stage may meet there before it begins.
                capabilities: role == .speaker ? [.joinBackstage] : [], expires: expires,
                renewableUntil: max(expires, invitation?.expires ?? 0), link: invitation?.link))
    }

    /// Signs an invitation.
    /// - Parameter revocations: what was issued until then leads nowhere, so that this one is issued after it.
    func invitation(
        to stream: StreamID, as role: Invitation.Role, lifetime: Int,
        after revocations: StageRecord.LinkRevocations
    ) throws(Problem) -> (invitation: Invitation, text: Secret<String>) {
        let revoked = role == .speaker ? revocations.speakers : revocations.viewers
        let issued = max(now(), revoked.map { Int($0.milliseconds / 1_000) + 1 } ?? 0)
        let invitation = Invitation(stream: stream, role: role, issued: issued, expires: now() + lifetime)
        guard let text = authority.mint(invitation) else {
            throw Problem(503, nil, "This server has no key to sign with.")
        }
        return (invitation, text)
    }
}
