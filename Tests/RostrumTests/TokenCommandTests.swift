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

    /// An invitation has no name, tiers or rights of its own: who asks for them must learn that.
    @Test(arguments: [
        ["--name", "Ann"], ["--tier", "gold"], ["--capability", "moderate"], ["--capability", "give-gifts"],
    ])
    func `puts into a link for many nothing that is for one person`(option: [String]) throws {
        let server = try OptionValues.parse(environment: [
            "ROSTRUM_KEY_ID": "main", "ROSTRUM_SECRET": Self.secret,
        ])
        func command(_ more: [String]) throws -> TokenCommand {
            let flags = try OptionValues.parse(
                arguments: ["--stream", "talk"] + option + more, options: TokenCommand.flags
            ).values
            return try TokenCommand(flags, server: server)
        }
        let link = ["--link", "https://a"]
        for role in ["speaker", "viewer"] {
            let error = #expect(throws: ConfigurationError.self) { try command(["--role", role] + link) }
            #expect(error?.description.hasPrefix("\(option[0]) is for one person") == true)
            _ = try command(["--role", role, "--sub", "ann"] + link)
            _ = try command(["--role", role])
        }
        // These are links for one in any case.
        _ = try command(["--role", "host"] + link)
        _ = try command(["--role", "admin"] + link)
    }

    @Test func `carries every tier and right that it is given, each once`() throws {
        let text = try make(
            "--role", "viewer", "--stream", "talk", "--tier", "gold", "--tier", "silver-2", "--tier", "gold",
            "--capability", "moderate", "--capability", "give-gifts", "--capability", "moderate")
        let token = try authority.verify(text, now: Self.now)
        #expect(token.tiers == ["gold", "silver-2"] && token.capabilities == [.moderate, .giveGifts])
        #expect(token.name == nil)
        let names = (0...16).flatMap { ["--tier", "t\($0)"] }
        func tiers(_ arguments: [String]) throws -> TokenCommand {
            let flags = try OptionValues.parse(
                arguments: ["--role", "viewer", "--stream", "talk"] + arguments, options: TokenCommand.flags
            ).values
            let server = try OptionValues.parse(environment: [
                "ROSTRUM_KEY_ID": "main", "ROSTRUM_SECRET": Self.secret,
            ])
            return try TokenCommand(flags, server: server)
        }
        _ = try tiers(Array(names.dropLast(2)))
        #expect(throws: ConfigurationError.self) { try tiers(names) }
        for bad in ["", "a b", "ä", String(repeating: "x", count: 33)] {
            #expect(throws: ConfigurationError.self) { try tiers(["--tier", bad]) }
        }
    }

    @Test(arguments: [("366d", 31_622_400), ("1s", 1), ("1", 1), ("8784h", 31_622_400), ("90m", 5_400)])
    func `is valid for as long as it is told to`(ttl: String, seconds: Int) throws {
        let text = try make("--role", "admin", "--ttl", ttl)
        #expect(try authority.verify(text, now: Self.now).expires == Self.now + seconds)
        #expect(throws: TokenRefusal.self) { try authority.verify(text, now: Self.now + seconds + 3_600) }
    }

    @Test(arguments: [
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/live/talk#token="),
        ("http://localhost:8080///", "http://localhost:8080/live/talk#token="),
    ])
    func `leads to any address`(address: String, prefix: String) throws {
        let link = try make("--role", "host", "--stream", "talk", "--link", address)
        #expect(link.hasPrefix(prefix))
    }

    @Test func `is for nobody without a printable name`() {
        for option in ["--sub", "--name"] {
            for bad in ["", "a\nb", "\u{7}", String(repeating: "x", count: 129)] {
                let words = complaint("--role", "admin", "\(option)=\(bad)")
                #expect(words.hasPrefix(option), "\(words)")
            }
        }
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
        for bad in [
            "example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://u@a",
            "https://u:p@a", "https://a#b", "//a", "https:a", " https://a", "https://a ", "https://a b",
            "https://a\n", "https://a\tb", "https://a\"b", "https://<a>", "https://a\u{7F}",
        ] {
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
