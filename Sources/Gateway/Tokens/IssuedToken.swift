import Base
import Crypto
import Node
import Stage

/// A newly signed token and its representation in responses.
struct IssuedToken {
    /// The signed JWT, for its bearer only.
    let text: Secret<String>
    let token: Token

    /// The members `token` and `expiresAt`.
    var json: [String: JSON] {
        [
            "token": .string(text.exposed), "expiresAt": .string(Timestamp.text(Double(token.expires))),
        ]
    }

    /// The same with the identity, name and role of its bearer, who may have had none before.
    var introduction: JSON {
        .object(
            json.merging([
                "participant": .string(token.subject.description), "name": .text(token.name),
                "role": .string(token.role.rawValue),
            ]) { _, new in new })
    }
}

extension Access {
    /// Lifetime of a renewed token, in seconds, unless the token shown lasts longer.
    private static let renewalLifetime = 3_600
    /// Lifetime of a guest's token, in seconds: longer than any stream, so that no guest changes identity during one.
    private static let guestLifetime = Token.renewalSpan

    /// Signs a token.
    /// - Throws: 503 if the server has no signing key.
    private func issue(_ token: Token) throws(Problem) -> IssuedToken {
        let minted = authority.mint(
            subject: token.subject, name: token.name, scope: token.scope, role: token.role,
            capabilities: token.capabilities, tiers: token.tiers, issuedAt: now(), expires: token.expires,
            renewableUntil: token.renewableUntil, link: token.link)
        guard let minted else { throw Problem(503, nil, "This server has no signing key.") }
        return IssuedToken(text: minted, token: token)
    }

    /// A token for what its bearer is in a stream now.
    ///
    /// It lasts an hour, or as long as the token shown if that is longer, but not beyond `renewableUntil`, however
    /// often it is renewed.
    /// - Parameters:
    ///   - answer: the stage's view of the bearer; nil for a stream that does not exist yet, where the token's role
    ///     holds.
    ///   - stream: used if `answer` is nil.
    ///   - name: a new display name; nil to keep the token's.
    func renewed(
        _ token: Token, for answer: StageAnswer?, in stream: StreamID? = nil, name: String? = nil
    ) throws(Problem) -> IssuedToken {
        guard let stream = answer?.stream.id ?? stream else { throw StageRefusal.unknownStream.problem }
        let role: Role =
            switch answer?.you.standing {
            case .host: .host
            // A host by token who found another host on stage is a speaker now, and may become the next host.
            case .speaker: token.role == .host || token.role == .admin ? .host : .speaker
            // A speaker who left the stage does not return by renewing; one who has not been on stage yet may enter.
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

    /// A token with a new random identity, for an invitation or for a viewer without any credential.
    /// - Parameter invitation: nil for viewers of a server with public viewers.
    func welcome(
        to stream: StreamID, by invitation: Invitation?, name: String?
    ) throws(Problem) -> IssuedToken {
        // 96 random bits: an identity cannot be guessed, nor does it occur twice.
        guard let random = try? RandomBytes.make(12),
            let subject = ParticipantID(ParticipantID.guestPrefix + Base64URL.encode(random))
        else { throw Problem(503, nil, "The server can't create a token now. Try again.") }
        let role = invitation.map { Role($0.role) } ?? .viewer
        let expires = now() + Self.guestLifetime
        return try issue(
            Token(
                keyID: "", subject: subject, name: name, scope: .one(stream), role: role,
                // Speakers may meet backstage before the stream begins.
                capabilities: role == .speaker ? [.joinBackstage] : [], expires: expires,
                renewableUntil: max(expires, invitation?.expires ?? 0), link: invitation?.link))
    }

    /// Signs an invitation.
    /// - Parameters:
    ///   - lifetime: in seconds.
    ///   - revocations: links issued up to these times are invalid, so this one is issued after them.
    func invitation(
        to stream: StreamID, as role: Invitation.Role, lifetime: Int,
        after revocations: StageRecord.LinkRevocations
    ) throws(Problem) -> (invitation: Invitation, text: Secret<String>) {
        let revoked = role == .speaker ? revocations.speakers : revocations.viewers
        let issued = max(now(), revoked.map { Int($0.milliseconds / 1_000) + 1 } ?? 0)
        let invitation = Invitation(stream: stream, role: role, issued: issued, expires: now() + lifetime)
        guard let text = authority.mint(invitation) else {
            throw Problem(503, nil, "This server has no signing key.")
        }
        return (invitation, text)
    }
}
