import Base
import Crypto
import Foundation
import Gateway

/// `rostrum token`: signs a token with the server's key, and prints the token or a link that contains it.
struct TokenCommand: Sendable {
    private let role: Role
    /// One stream, or all of them.
    private let scope: Token.Scope
    /// The bearer's identity; nil to make one up, or to print an invitation.
    private let subject: ParticipantID?
    /// The name that others see; nil for none.
    private let name: String?
    /// In seconds.
    private let lifetime: Int
    private let capabilities: Set<Capability>
    /// Names that open the gates of streams.
    private let tiers: Set<String>
    /// Scheme, host and optional port of the server, without a trailing slash; nil to print the token alone.
    private let origin: String?
    private let key: TokenAuthority.Key

    /// The flags of this command, besides those that choose the key.
    static let options: [Option] = [
        Option("role", .text, "host|speaker|viewer|admin", "Role of the token's bearer. Required."),
        Option(
            "stream", .text, "NAME|*",
            "Stream that the token is for: 1 to 64 of A-Z a-z 0-9 _ -, or * for all.",
            "Required, except for admins. Default for admins: *."),
        Option("sub", .text, "ID", "Identity of the bearer. Default: a new, random one."),
        Option("name", .text, "NAME", "Name that others see. Default: none; pages ask for one."),
        Option("ttl", .text, "1d|12h|30m|SECONDS", "How long the token is valid, up to 366d. Default: 1d."),
        Option(
            "capability", .list, "join-backstage|give-gifts|moderate",
            "join-backstage: enter before the doors open. give-gifts: report gifts, for a shop's",
            "server. moderate: remove comments."),
        Option(
            "tier", .list, "NAME",
            "Tier that the bearer has paid for: lets them watch streams that require it, and comment",
            "where comments require it. Up to 16 names, each 1 to 32 of A-Z a-z 0-9 _ -."),
        Option(
            "link", .text, "https://HOST",
            "Print a link to the page for this role instead. A speaker's or viewer's link is an",
            "invitation that any number of people can open, each under their own name, unless --sub",
            "is given. An admin's link opens the operators' page."),
    ]

    /// The server's options that choose the key; they are accepted as flags too.
    private static let keyOptions = ["key-id", "secret", "secret-file", "config", "dev"]

    /// All flags of `rostrum token`.
    static let flags = options + Option.all.filter { keyOptions.contains($0.name) }

    /// In seconds; a longer time is treated as a typing error.
    private static let longestLifetime = 366 * 86_400

    /// Checks what to sign.
    /// - Parameters:
    ///   - values: flags.
    ///   - server: the server's options of all sources, which contain the key.
    /// - Throws: if something is missing or makes no sense, in words for an operator.
    init(_ values: OptionValues, server: OptionValues) throws(ConfigurationError) {
        guard let role: Role = try values.choice("role") else {
            throw ConfigurationError("--role is missing: give host, speaker, viewer or admin")
        }
        self.role = role
        let stream = values["stream"]?.texts.first
        // Only an admin's token may omit the stream: it is for all streams then.
        guard stream != nil || role == .admin else {
            throw ConfigurationError("--stream is missing: give the stream's name, or '*' for all streams")
        }
        guard let scope = Token.Scope(stream, for: role) else {
            throw ConfigurationError("--stream must be * or 1 to 64 of A-Z a-z 0-9 _ -, not \(stream ?? "")")
        }
        self.scope = scope
        subject = try Self.printable(values, "sub")
        name = try Self.printable(values, "name")?.description
        lifetime = try values["ttl"]?.texts.first.map(Self.seconds) ?? 86_400
        var capabilities: Set<Capability> = []
        for text in values["capability"]?.texts ?? [] {
            guard let capability = Capability(rawValue: text) else {
                throw ConfigurationError("--capability must be one of \(Capability.list), not \(text)")
            }
            capabilities.insert(capability)
        }
        self.capabilities = capabilities
        let tiers = values["tier"]?.texts ?? []
        guard tiers.count <= Token.tierLimit, tiers.allSatisfy(Tier.isName) else {
            throw ConfigurationError(
                "--tier must be up to \(Token.tierLimit) names, each 1 to 32 of A-Z a-z 0-9 _ -")
        }
        self.tiers = Set(tiers)
        origin = try values["link"]?.texts.first.map(Self.origin)
        if origin != nil { try Self.checkLink(role, scope) }
        key = try Self.key(server)
        // An invitation has none of these, and who gives them would not learn that they are missing.
        if invitation != nil, let lost = ["name", "tier", "capability"].first(where: { values[$0] != nil }) {
            throw ConfigurationError(
                "--\(lost) is for one person, and a link without --sub is for many: give --sub too, or leave "
                    + "it out")
        }
    }

    /// The stream and role of the invitation that is printed instead of a token; nil for a token.
    ///
    /// A link without a subject is an invitation: many may open it, each under an identity of their own. Admins get a
    /// token in any case, because no invitation has their role.
    private var invitation: (stream: StreamID, role: Invitation.Role)? {
        guard origin != nil, subject == nil, case .one(let stream) = scope else { return nil }
        return Invitation.Role(rawValue: role.rawValue).map { (stream: stream, role: $0) }
    }

    /// Refuses a link for a host or speaker of all streams: their page needs to know which stream to join.
    private static func checkLink(_ role: Role, _ scope: Token.Scope) throws(ConfigurationError) {
        switch (role, scope) {
        case (.host, .all), (.speaker, .all):
            throw ConfigurationError(
                "a \(role.rawValue)'s link is for one stream: give its name with --stream, not *")
        default: return
        }
    }

    /// An option that has the form of an identity; nil if it is not set.
    private static func printable(
        _ values: OptionValues, _ name: String
    ) throws(ConfigurationError) -> ParticipantID? {
        guard let text = values[name]?.texts.first else { return nil }
        guard let id = ParticipantID(text) else {
            throw ConfigurationError("--\(name) must be 1 to 128 printable characters")
        }
        return id
    }

    /// A time such as `1d`, `12h`, `30m`, `45s` or `45`, in seconds.
    static func seconds(_ text: String) throws(ConfigurationError) -> Int {
        guard let seconds = TimeSpan.seconds(text, longest: longestLifetime) else {
            throw ConfigurationError(
                "--ttl must be a duration such as 1d, 12h, 30m or 3600, up to 366d, not \(text)")
        }
        return seconds
    }

    /// Checks the address of the server, and removes slashes at its end.
    ///
    /// Links are made by appending a path, so an address with a path or a query would make a link that leads nowhere.
    private static func origin(_ text: String) throws(ConfigurationError) -> String {
        var origin = text
        while origin.hasSuffix("/") { origin.removeLast() }
        // Foundation encodes what no address may contain instead of refusing it, and the link would be cut there.
        let isPlain = origin.utf8.allSatisfy { byte in
            byte > 0x20 && byte != 0x7F && !#""<>\^`{|}"#.utf8.contains(byte)
        }
        guard isPlain, let url = URL(string: origin), url.scheme == "https" || url.scheme == "http",
            let host = url.host, !host.isEmpty, url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil
        else {
            throw ConfigurationError(
                "--link must be the server's public address, such as https://example.org, not \(text)")
        }
        return origin
    }

    /// The key that the server signs with.
    /// - Throws: if the server makes its key at each start, because no other process can know it.
    private static func key(_ server: OptionValues) throws(ConfigurationError) -> TokenAuthority.Key {
        let key = try Configuration.signingKey(server)
        guard let secret = key.secret else {
            throw ConfigurationError(
                "a server with --dev makes its own key, and tokens for this machine with POST /v1/tokens; "
                    + "to sign tokens here, give both commands the same --secret")
        }
        return TokenAuthority.Key(id: key.id, secret: Secret(Array(secret.exposed.utf8)))
    }

    /// Signs the token, or the invitation in a link.
    /// - Parameter now: seconds since 1970.
    /// - Returns: the token or the link, without a line break.
    func make(now: Int) throws -> String {
        let authority = TokenAuthority(keys: [key])
        if let origin, let (stream, role) = invitation {
            let invitation = Invitation(stream: stream, role: role, issued: now, expires: now + lifetime)
            guard let text = authority.mint(invitation) else { throw ConfigurationError("there is no key") }
            return origin + invitation.path(text)
        }
        let subject = try self.subject ?? Self.somebody(as: role)
        let minted = authority.mint(
            subject: subject, name: name, scope: scope, role: role, capabilities: capabilities, tiers: tiers,
            issuedAt: now, expires: now + lifetime)
        guard let minted else { throw ConfigurationError("there is no key") }
        guard let origin else { return minted.exposed }
        if role == .admin { return origin + PageLink.admin(token: minted) }
        return origin + PageLink.path(to: scope, isOnStage: role != .viewer, token: minted)
    }

    /// An identity that nobody else has: the role and 72 random bits.
    private static func somebody(as role: Role) throws -> ParticipantID {
        let digits = try RandomBytes.make(9).map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0" + text : text
        }
        guard let id = ParticipantID("\(role.rawValue)-\(digits.joined())") else {
            throw ConfigurationError("cannot make up an identity")
        }
        return id
    }
}
