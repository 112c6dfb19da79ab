import Base
import Crypto
import Stage

/// Issues and verifies the server's tokens: JWTs signed with HS256.
/// - Source: RFC 7519 §4 (claims), RFC 8725 §3 (verification).
package struct TokenAuthority: Sendable {
    /// A signing key, shared with all programs that issue tokens for this server.
    package struct Key: Sendable {
        /// Its name: the claim `iss` of tokens that it signs.
        package let id: String
        /// At least 32 bytes outside of development (RFC 7518 §3.2: as long as the hash).
        package let secret: Secret<[UInt8]>

        package init(id: String, secret: Secret<[UInt8]>) {
            self.id = id
            self.secret = secret
        }
    }

    /// Tolerated difference between the clocks of issuer and server, in seconds (RFC 7519 §4.1.4).
    static let leeway = 10

    private let keys: SigningKeys

    package init(_ keys: SigningKeys) {
        self.keys = keys
    }

    /// - Parameter keys: the first one signs, all verify.
    package init(keys: [Key]) {
        self.init(SigningKeys(keys))
    }

    /// All claims as they occur in JSON; which of them a token needs depends on `use`.
    private struct Claims: Codable {
        var iss: String
        var sub: String?
        var name: String?
        var stream: String?
        var role: String?
        var capabilities: [String]?
        var tiers: [String]?
        var nbf: Double?
        var exp: Double?
        var iat: Double?
        /// Private to this server: the only purpose of a restricted token; nil for an ordinary one.
        var use: String?
        /// Private to this server: see `Token.renewableUntil`.
        var renewableUntil: Double?
        /// Private to this server: `iat` of the link that the bearer came by.
        var invited: Double?
        /// Private to this server: the role that the link grants.
        var invitedAs: String?

        enum CodingKeys: String, CodingKey {
            case iss, sub, name, stream, role, capabilities, tiers, nbf, exp, iat, use, invited
            case renewableUntil = "renewable_until"
            case invitedAs = "invited_as"
        }
    }

    /// Verifies a token.
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - acceptsExpired: for changes of a session that exists already, where the token only identifies the sender.
    /// - Throws: also for an invitation or a stream key, which are no tokens.
    package func verify(_ text: String, now: Int, acceptsExpired: Bool = false) throws(TokenRefusal) -> Token
    {
        let claims = try claims(of: text)
        switch claims.use {
        case nil: return try Self.token(claims, now: now, acceptsExpired: acceptsExpired)
        case Invitation.use: throw .invitation
        default: throw .badClaim("use")
        }
    }

    /// Verifies a token or an invitation.
    package func verifyCredential(_ text: String, now: Int) throws(TokenRefusal) -> Credential {
        let claims = try claims(of: text)
        switch claims.use {
        case nil: return .token(try Self.token(claims, now: now, acceptsExpired: false))
        case Invitation.use: return .invitation(try Self.invitation(claims, now: now))
        default: throw .badClaim("use")
        }
    }

    /// Verifies an encoder's stream key: one issued as such, or an ordinary token.
    package func verifyIngestKey(_ text: String, now: Int) throws(TokenRefusal) -> IngestKey {
        let claims = try claims(of: text)
        switch claims.use {
        case nil:
            return IngestKey(
                token: try Self.token(claims, now: now, acceptsExpired: false), issued: nil)
        case IngestKey.use:
            guard let issued = Self.seconds(claims.iat) else { throw .badClaim("iat") }
            return IngestKey(
                token: try Self.token(claims, now: now, acceptsExpired: false), issued: issued)
        case Invitation.use: throw .invitation
        default: throw .badClaim("use")
        }
    }

    /// The claims of a JWT whose signature is valid; the claims themselves are not checked here.
    private func claims(of text: String) throws(TokenRefusal) -> Claims {
        let token: JSONWebToken
        let claims: Claims
        do throws(JSONWebToken.Refusal) {
            token = try JSONWebToken(parsing: text)
            claims = try token.claims(Claims.self)
        } catch {
            switch error {
            case .malformed: throw .malformed
            case .wrongAlgorithm: throw .wrongAlgorithm
            }
        }
        // Several keys may have the name while keys are being changed.
        let named = keys.current.filter { $0.id == claims.iss }
        guard !named.isEmpty else { throw .unknownKey }
        guard named.contains(where: { token.isSigned(with: $0.secret.exposed.span) }) else {
            throw .badSignature
        }
        return claims
    }

    /// Checks the claims of an invitation.
    private static func invitation(_ claims: Claims, now: Int) throws(TokenRefusal) -> Invitation {
        let (expires, _) = try validity(claims, now: now, acceptsExpired: false)
        guard let issued = seconds(claims.iat) else { throw .badClaim("iat") }
        guard let role = claims.role.flatMap({ Invitation.Role(rawValue: $0) }) else {
            throw .badClaim("role")
        }
        guard let stream = claims.stream.flatMap({ StreamID($0) }) else { throw .badClaim("stream") }
        return Invitation(stream: stream, role: role, issued: issued, expires: expires)
    }

    /// Checks the claims of a token.
    private static func token(_ claims: Claims, now: Int, acceptsExpired: Bool) throws(TokenRefusal) -> Token
    {
        let (expires, notBefore) = try validity(claims, now: now, acceptsExpired: acceptsExpired)
        guard let subject = claims.sub.flatMap({ ParticipantID($0) }) else { throw .badClaim("sub") }
        guard let role = claims.role.flatMap({ Role(rawValue: $0) }) else { throw .badClaim("role") }
        // Only an admin's token may omit the stream: a forgotten claim must not mean all streams.
        guard let scope = Token.Scope(claims.stream, for: role) else { throw .badClaim("stream") }
        if let name = claims.name {
            guard ParticipantID(name) != nil else { throw .badClaim("name") }
        }
        return Token(
            keyID: claims.iss, subject: subject, name: claims.name, scope: scope, role: role,
            capabilities: Set((claims.capabilities ?? []).compactMap { Capability(rawValue: $0) }),
            tiers: tiers(claims), notBefore: notBefore, expires: expires,
            renewableUntil: seconds(claims.renewableUntil), link: try link(claims))
    }

    /// The valid tier names, up to `tierLimit`.
    private static func tiers(_ claims: Claims) -> Set<String> {
        Set((claims.tiers ?? []).filter(Tier.isName).prefix(Token.tierLimit))
    }

    /// The link that a token's bearer came by; nil for a token issued to one person.
    private static func link(_ claims: Claims) throws(TokenRefusal) -> Stage.Link? {
        guard claims.invited != nil || claims.invitedAs != nil else { return nil }
        guard let issued = seconds(claims.invited) else { throw .badClaim("invited") }
        guard let role = claims.invitedAs.flatMap({ Invitation.Role(rawValue: $0) }) else {
            throw .badClaim("invited_as")
        }
        return Stage.Link(makesSpeakers: role == .speaker, issued: issued)
    }

    /// Checks `exp` and `nbf` with the leeway; `exp` is required.
    private static func validity(
        _ claims: Claims, now: Int, acceptsExpired: Bool
    ) throws(TokenRefusal) -> (expires: Int, notBefore: Int?) {
        guard let expires = seconds(claims.exp) else { throw .badClaim("exp") }
        // `nbf` is checked for expired tokens, too.
        guard acceptsExpired || now - leeway < expires else { throw .expired }
        guard let value = claims.nbf else { return (expires, nil) }
        guard let notBefore = seconds(value) else { throw .badClaim("nbf") }
        guard notBefore <= now + leeway else { throw .notYetValid }
        return (expires, notBefore)
    }

    /// A NumericDate (RFC 7519 §2) as whole seconds; nil for numbers outside of some thousand years.
    private static func seconds(_ value: Double?) -> Int? {
        guard let value, value.isFinite, abs(value) < 1e11 else { return nil }
        return Int(value)
    }

    /// Signs a token with the first key.
    /// - Returns: nil without any key.
    package func mint(
        subject: ParticipantID, name: String?, scope: Token.Scope, role: Role,
        capabilities: Set<Capability> = [], tiers: Set<String> = [], issuedAt now: Int, expires: Int,
        renewableUntil: Int? = nil, link: Stage.Link? = nil
    ) -> Secret<String>? {
        mint(
            Token(
                keyID: "", subject: subject, name: name, scope: scope, role: role, capabilities: capabilities,
                tiers: tiers, expires: expires, renewableUntil: renewableUntil, link: link), use: nil,
            issuedAt: now, renewableUntil: renewableUntil)
    }

    /// Signs a stream key with the first key.
    /// - Returns: nil without any key.
    package func mint(ingestKeyOf token: Token, issuedAt now: Int) -> Secret<String>? {
        mint(token, use: IngestKey.use, issuedAt: now, renewableUntil: nil)
    }

    /// Signs the claims of a token; `use` restricts its purpose.
    private func mint(
        _ token: Token, use: String?, issuedAt now: Int, renewableUntil: Int?
    ) -> Secret<String>? {
        guard let key = keys.current.first else { return nil }
        var claims = Claims(iss: key.id)
        claims.use = use
        claims.sub = token.subject.description
        claims.name = token.name
        claims.stream =
            switch token.scope {
            case .all: "*"
            case .one(let stream): stream.description
            }
        claims.role = token.role.rawValue
        // Sorted, so that equal tokens have equal texts.
        if !token.capabilities.isEmpty { claims.capabilities = token.capabilities.map(\.rawValue).sorted() }
        if !token.tiers.isEmpty { claims.tiers = token.tiers.sorted() }
        claims.iat = Double(now)
        claims.exp = Double(token.expires)
        // Left out unless given: the default follows from `exp` when the token is read.
        claims.renewableUntil = renewableUntil.map(Double.init)
        if let link = token.link {
            claims.invited = Double(link.issued)
            claims.invitedAs = (link.makesSpeakers ? Invitation.Role.speaker : .viewer).rawValue
        }
        return Self.sign(claims, with: key)
    }

    /// Signs an invitation with the first key.
    /// - Returns: nil without any key.
    package func mint(_ invitation: Invitation) -> Secret<String>? {
        guard let key = keys.current.first else { return nil }
        var claims = Claims(iss: key.id)
        claims.use = Invitation.use
        claims.stream = invitation.stream.description
        claims.role = invitation.role.rawValue
        claims.iat = Double(invitation.issued)
        claims.exp = Double(invitation.expires)
        return Self.sign(claims, with: key)
    }

    private static func sign(_ claims: Claims, with key: Key) -> Secret<String>? {
        JSONWebToken.sign(claims, with: key.secret.exposed.span).map { Secret($0) }
    }
}

extension Token.Scope {
    /// Reads the claim `stream`; nil if it is malformed.
    /// - Parameter claim: `*` or a stream's name; may be missing in an admin's token.
    package init?(_ claim: String?, for role: Role) {
        switch claim {
        case "*": self = .all
        case nil where role == .admin: self = .all
        case let name?:
            guard let stream = StreamID(name) else { return nil }
            self = .one(stream)
        case nil: return nil
        }
    }
}
