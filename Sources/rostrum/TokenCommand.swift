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
        Option("role", .text, "host|speaker|viewer|admin", "What its bearer may do. Must be given."),
        Option(
            "stream", .text, "NAME|*", "Where: 1 to 64 of A-Z a-z 0-9 _ -, or * for everywhere. An admin's",
            "is for everywhere unless it is given."),
        Option(
            "sub", .text, "ID",
            "Who its bearer is. Default: somebody nobody else is."),
        Option("name", .text, "NAME", "What others see. Default: none; pages ask for one."),
        Option("ttl", .text, "1d|12h|30m|SECONDS", "For how long it is good. Default 1d; at most 366d."),
        Option(
            "capability", .list, "join-backstage|give-gifts|moderate",
            "join-backstage lets its bearer in before the doors open; give-gifts is a shop's,",
            "which says what was given; moderate lets its bearer take comments away."),
        Option(
            "tier", .list, "NAME",
            "What its bearer has paid for: it opens the gates of streams that take it, and lets",
            "comment where that takes it. Up to 16 names of 1 to 32 of A-Z a-z 0-9 _ -."),
        Option(
            "link", .text, "https://HOST",
            "Print the link of the page that it opens. A speaker's or viewer's link is",
            "an invitation, which many may open, each under their own name, unless",
            "--sub says whose it is; an admin's leads to the operators' page."),
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
            throw ConfigurationError("say what its bearer may do: --role host, speaker, viewer or admin")
        }
        self.role = role
        let stream = values["stream"]?.texts.first
        // Only an admin's token may omit the stream: it is for all streams then.
        guard stream != nil || role == .admin else {
            throw ConfigurationError("say for which stream: --stream NAME, or --stream '*' for all of them")
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
                "--tier takes up to \(Token.tierLimit) names of 1 to 32 of A-Z a-z 0-9 _ -")
        }
        self.tiers = Set(tiers)
        origin = try values["link"]?.texts.first.map(Self.origin)
        if origin != nil { try Self.checkLink(role, scope) }
        key = try Self.key(server)
    }

    /// Refuses a link for a host or speaker of all streams: their page needs to know which stream to join.
    private static func checkLink(_ role: Role, _ scope: Token.Scope) throws(ConfigurationError) {
        switch (role, scope) {
        case (.host, .all), (.speaker, .all):
            throw ConfigurationError(
                "a \(role.rawValue)'s link leads to one stream: give its name as --stream")
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
                "--ttl must be a time such as 1d, 12h, 30m or 3600, up to 366d, not \(text)")
        }
        return seconds
    }

    /// Checks the address of the server, and removes slashes at its end.
    ///
    /// Links are made by appending a path, so an address with a path or a query would make a link that leads nowhere.
    private static func origin(_ text: String) throws(ConfigurationError) -> String {
        var origin = text
        while origin.hasSuffix("/") { origin.removeLast() }
        guard let url = URL(string: origin), url.scheme == "https" || url.scheme == "http",
            let host = url.host, !host.isEmpty, url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil
        else {
            throw ConfigurationError(
                "--link must be where people reach the server, such as https://example.org, not \(text)")
        }
        return origin
    }

    /// The key that the server signs with.
    /// - Throws: if the server makes its key at each start, because no other process can know it.
    private static func key(_ server: OptionValues) throws(ConfigurationError) -> TokenAuthority.Key {
        let key = try Configuration.signingKey(server)
        guard let secret = key.secret else {
            throw ConfigurationError(
                "a server with --dev makes its own key, and tokens for this machine at POST /v1/tokens; "
                    + "give both the same --secret to sign here")
        }
        return TokenAuthority.Key(id: key.id, secret: Secret(Array(secret.exposed.utf8)))
    }

    /// Signs the token, or the invitation in a link.
    /// - Parameter now: seconds since 1970.
    /// - Returns: the token or the link, without a line break.
    func make(now: Int) throws -> String {
        let authority = TokenAuthority(keys: [key])
        // A link without a subject is an invitation: many may open it, each under an identity of their own. Admins get
        // a token in any case, because no invitation has their role.
        if let origin, subject == nil, case .one(let stream) = scope,
            let role = Invitation.Role(rawValue: role.rawValue)
        {
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
            throw ConfigurationError("there is nobody")
        }
        return id
    }
}
