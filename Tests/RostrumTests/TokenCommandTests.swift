import Base
import Gateway
import Testing

@testable import rostrum

@Suite struct `rostrum token` {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let now = 1_800_000_000
    private let authority = TokenAuthority(keys: [
        TokenAuthority.Key(id: "main", secret: Secret(Array(Self.secret.utf8)))
    ])

    private func make(
        _ arguments: String...,
        environment: [String: String] = [
            "ROSTRUM_KEY_ID": "main", "ROSTRUM_SECRET": Self.secret,
        ]
    ) throws -> String {
        let flags = try OptionValues.parse(arguments: arguments, options: TokenCommand.flags).values
        let server = try OptionValues.parse(environment: environment).overridden(by: flags)
        return try TokenCommand(flags, server: server).make(now: Self.now)
    }

    private func complaint(_ arguments: String...) -> String {
        do {
            let flags = try OptionValues.parse(arguments: arguments, options: TokenCommand.flags).values
            let server = try OptionValues.parse(environment: [
                "ROSTRUM_KEY_ID": "main", "ROSTRUM_SECRET": Self.secret,
            ]).overridden(by: flags)
            return try TokenCommand(flags, server: server).make(now: Self.now)
        } catch {
            return "\(error)"
        }
    }

    @Test func `signs as the server does`() throws {
        let text = try make(
            "--role", "speaker", "--stream", "talk", "--sub", "bob", "--name", "Bob", "--ttl", "90m",
            "--capability", "join-backstage")
        let token = try authority.verify(text, now: Self.now)
        #expect(token.role == .speaker && token.subject.description == "bob" && token.name == "Bob")
        #expect(token.scope == .one(try #require(StreamID("talk"))))
        #expect(token.expires == Self.now + 5_400 && token.capabilities == [.joinBackstage])
        let flags = try make(
            "--role", "admin", "--key-id", "main", "--secret", Self.secret, environment: [:])
        let admin = try authority.verify(flags, now: Self.now)
        #expect(admin.role == .admin && admin.scope == .all && admin.expires == Self.now + 86_400)
        #expect(admin.subject != (try authority.verify(try make("--role", "admin"), now: Self.now)).subject)
    }

    @Test func `makes a host's link`() throws {
        let link = try make("--role", "host", "--stream", "talk", "--link", "https://example.org/")
        let prefix = "https://example.org/live/talk#token="
        #expect(link.hasPrefix(prefix))
        #expect(try authority.verify(String(link.dropFirst(prefix.count)), now: Self.now).role == .host)
    }

    @Test(arguments: [("speaker", "live"), ("viewer", "watch")])
    func `makes links for many, or for one by name`(role: String, page: String) throws {
        let link = try make("--role", role, "--stream", "talk", "--link", "http://localhost:8080")
        let prefix = "http://localhost:8080/\(page)/talk#token="
        #expect(link.hasPrefix(prefix))
        #expect(throws: TokenRefusal.invitation) {
            try authority.verify(String(link.dropFirst(prefix.count)), now: Self.now)
        }
        let own = try make(
            "--role", role, "--stream", "talk", "--sub", "bob", "--link", "http://localhost:8080")
        let token = try authority.verify(String(own.dropFirst(prefix.count)), now: Self.now)
        #expect(token.role.rawValue == role && token.subject.description == "bob")
    }

    @Test func `makes a viewer's link to the feed`() throws {
        let link = try make("--role", "viewer", "--stream", "*", "--link", "https://example.org")
        let prefix = "https://example.org/#token="
        #expect(link.hasPrefix(prefix))
        #expect(try authority.verify(String(link.dropFirst(prefix.count)), now: Self.now).scope == .all)
    }

    @Test func `makes an admin's link to the operators' page`() throws {
        let link = try make("--role", "admin", "--link", "https://example.org/")
        let prefix = "https://example.org/admin#token="
        #expect(link.hasPrefix(prefix))
        #expect(try authority.verify(String(link.dropFirst(prefix.count)), now: Self.now).role == .admin)
    }

    @Test func `says what is missing or cannot be`() {
        #expect(
            complaint("--stream", "a") == "--role is missing: give host, speaker, viewer or admin")
        #expect(complaint("--role", "king").contains("must be one of host, speaker, viewer, admin, not king"))
        #expect(
            complaint("--role", "host")
                == "--stream is missing: give the stream's name, or '*' for all streams")
        #expect(complaint("--role", "host", "--stream", "a b").contains("A-Z a-z 0-9 _ -, not a b"))
        #expect(
            complaint("--role", "host", "--stream", "a", "--workers", "2").contains(
                "unknown option --workers"))
        #expect(
            complaint("--role", "host", "--stream", "*", "--link", "https://a").contains(
                "is for one stream"))
        #expect(
            complaint("--role", "admin", "--capability", "fly").contains(
                "must be one of join-backstage, give-gifts, moderate, not fly"))
        for bad in [
            "", "0", "d", "1w", "-1h", "367d", "9223372036854775807d", "99999999999999999999", "1.5h",
        ] {
            #expect(complaint("--role", "admin", "--ttl=\(bad)").contains("--ttl"), "\(bad)")
        }
        for bad in ["example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://u@a"] {
            #expect(
                complaint("--role", "host", "--stream", "a", "--link", bad).contains("--link must be"),
                "\(bad)")
        }
    }

    @Test func `needs the server's key`() {
        #expect(throws: ConfigurationError.self) { try make("--role", "admin", environment: [:]) }
        #expect(throws: ConfigurationError.self) { try make("--role", "admin", "--dev", environment: [:]) }
    }
}
