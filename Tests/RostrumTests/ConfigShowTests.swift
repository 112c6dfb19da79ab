import Base
import Foundation
import Gateway
import TestSupport
import Testing

@testable import rostrum

@Suite struct `What rostrum config shows` {
    private func configuration(_ values: OptionValues) throws(ConfigurationError) -> Configuration {
        try Configuration(values, processors: 2)
    }

    /// Names of directories and keys may be anything, and none of it may end a value early.
    @Test(arguments: [
        #"a "quoted" one"#, "a'b", #"back\slash\n"#, "# no comment", "a = b", "[x]", "tab\tand\nline\r",
        "\u{1}\u{7F}", "é 🎥", " blanks ", "true", "7", "\"\"\"", "\\", "\"",
    ])
    func `is read again as it was, whatever is in it`(text: String) throws {
        let values = try OptionValues.parse(arguments: [
            "--dev", "--data", text, "--key-id", text, "--tls-certificate", text, "--tls-key", text,
        ]).values
        let shown = try ConfigCommand(values, processors: 2).text
        let again = try OptionValues.parse(file: shown, name: "shown")
        for name in ["data", "key-id", "tls-certificate", "tls-key"] {
            #expect(again[name]?.texts == [text], "\(name) in \(shown)")
        }
        let changed = Reloading.settings(of: try configuration(again), unlike: try configuration(values))
        #expect(changed.isEmpty)
        // A line each, of all that there is.
        #expect(shown.split(separator: "\n").count == Option.all.count - 1)
    }

    /// Values in all of their forms.
    private static let forms: [(name: String, texts: [String])] = [
        ("http", [":0", "localhost:81", "[::1]:82", "[::]:83", "10.0.0.1:84", "0.0.0.0:65535"]),
        ("admin", ["127.0.0.1:90", "[2001:db8::1]:91"]),
        ("udp", [":0", "[::]:7000", "10.0.0.1:7000-7003", "[2001:db8::1]:65532-65535", ":7000-7000"]),
        ("tcp", ["off", ":7001", "[::1]:82", "10.0.0.1:84"]), ("rtmp", ["off", ":1935"]),
        ("rtmps", ["off", "[::]:1936"]), ("srt", ["off", ":9710", ":7002"]), ("srt-latency", ["20", "8000"]),
        ("turn-tls", ["off", "10.0.0.1:84"]), ("turn-tcp", ["off", ":0"]), ("turn-udp", ["off", ":3478"]),
        ("public-address", ["203.0.113.7", "2001:db8::7,203.0.113.8", ""]),
        ("trusted-proxy", ["10.1.2.3/8,fd12::1/8", "127.0.0.1", "::/0", ""]),
        ("workers", ["1", "4", "256"]), ("max-sessions", ["1", "+7", "0012", "1000000"]),
        ("max-dvr", ["0", "7200"]), ("hls-part", ["200", "1000"]), ("max-clips", ["0", "50"]),
        ("keep-streams", ["1", "60", "61s", "90m", "36h", "48h", "36500d", "forever"]),
        ("keep-recordings", ["3600", "30d", "forever"]), ("keep-clips", ["86399", "1d", "forever"]),
        ("keep-comments", ["1m", "3153600000"]), ("feed-age-weight", ["-1000", "-0", "1000"]),
        ("ice-server", ["stun:a", "turn:[2001:db8::1]:3478?transport=tcp", ""]),
        ("transcoder", ["on", "off"]), ("transcoder-nice", ["0", "19"]), ("viewers", ["public", "token"]),
        ("log-level", ["debug", "error"]), ("data", ["/srv", "a b"]),
    ]

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `is the configuration of another such server`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var accepted = 0
        for _ in 0..<40 {
            var flags = ["--dev", "--tls-certificate", "/a.pem", "--tls-key", "/a.key"]
            let count = Int.random(in: 1...5, using: &random)
            for form in Self.forms.shuffled(using: &random).prefix(count) {
                let index = Int.random(in: form.texts.indices, using: &random)
                flags.append("--\(form.name)=\(form.texts[index])")
            }
            let values = try OptionValues.parse(arguments: flags).values
            // Some make no sense together.
            guard let first = try? configuration(values) else { continue }
            accepted += 1
            let again = try configuration(OptionValues.parse(file: first.summary, name: "summary"))
            #expect(again.summary == first.summary, "\(flags)")
            #expect(Reloading.settings(of: again, unlike: first).isEmpty, "\(flags)")
        }
        #expect(accepted >= 10)
    }

    @Test func `has the place of each value after it, however long that is`() throws {
        let long = "/" + String(repeating: "x", count: 200)
        let values = try OptionValues.parse(arguments: ["--dev", "--data", long, "--workers=3"]).values
        let lines = try ConfigCommand(values, processors: 2).text.split(separator: "\n")
        #expect(lines.contains("data = \"\(long)\"  # --data"))
        // Others line up all the same.
        let others = lines.filter { $0.hasPrefix("workers = 3 ") || $0.hasPrefix("http = ") }
        let columns = others.map { line in line.prefix { $0 != "#" }.count }
        #expect(columns == [50, 50])
    }

    /// A file may have any name, and none of it may leave the comment.
    @Test(arguments: ["a\nworkers = 9", "a\r\nb", "a\u{1}b\u{7F}"])
    func `has the place of each value on its line, whatever the file is called`(name: String) throws {
        let values = try OptionValues.parse(file: "dev = true\nworkers = 3\n", name: name)
        let shown = try ConfigCommand(values, processors: 2).text
        let again = try OptionValues.parse(file: shown, name: "shown")
        #expect(again["workers"]?.texts == ["3"])
        #expect(shown.split(separator: "\n").count == Option.all.count - 1)
    }

    /// An empty list of a flag is as good as none, but it is not the default where a file has one.
    @Test func `has the place of a list that is empty on purpose`() throws {
        let file = try OptionValues.parse(
            file: "dev = true\nice-server = [\"stun:a\"]\ntrusted-proxy = [\"10.0.0.0/8\"]\n", name: "f")
        let flags = try OptionValues.parse(arguments: ["--ice-server="]).values
        let text = try ConfigCommand(file.overridden(by: flags), processors: 2).text
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(lines.contains("# ice-server: --ice-server"))
        #expect(lines.contains("trusted-proxy = [\"10.0.0.0/8\"] # line 3 of f"))
    }

    @Test func `follows one option where it gives another its value`() throws {
        let values = try OptionValues.parse(arguments: [
            "--dev", "--keep-recordings=48h", "--udp", "127.0.0.1:9000",
        ]).values
        let text = try ConfigCommand(values, processors: 2).text
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(lines.contains("keep-recordings = \"2d\" # --keep-recordings"))
        #expect(lines.contains("keep-clips = \"2d\" # default"))
        #expect(lines.contains("tcp = \"127.0.0.1:9000\" # default"))
    }
}

/// The key is the first line of a file whose further lines only verify.
@Suite struct `The key of rostrum token` {
    private static let keys = [
        "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210",
    ]

    private func token(_ arguments: [String], secretFile: String) throws -> String {
        let flags = try OptionValues.parse(
            arguments: ["--role", "admin", "--secret-file", secretFile] + arguments,
            options: TokenCommand.flags
        ).values
        return try TokenCommand(flags, server: try flags.withSecretFile()).make(now: 1_800_000_000)
    }

    /// Whether a server with this key takes the token.
    private func isTaken(_ token: String, _ secret: String, id: String) -> Bool {
        let key = TokenAuthority.Key(id: id, secret: Secret(Array(secret.utf8)))
        return (try? TokenAuthority(keys: [key]).verify(token, now: 1_800_000_000)) != nil
    }

    @Test func `is the newest of its file`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try Data("\(Self.keys[0])\n# older\n\(Self.keys[1])\n".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        let made = try token(["--key-id", "main"], secretFile: path)
        #expect(isTaken(made, Self.keys[0], id: "main"))
        #expect(!isTaken(made, Self.keys[1], id: "main"))
        #expect(!isTaken(made, Self.keys[0], id: "other"))
        // One that is set directly wins, and the file need not be there.
        for file in [path, "/nonexistent/key"] {
            let direct = try token(["--key-id", "main", "--secret", Self.keys[1]], secretFile: file)
            #expect(isTaken(direct, Self.keys[1], id: "main"))
        }
        // In development, a key without a name has one that both commands know.
        let named = try token(["--dev"], secretFile: path)
        #expect(isTaken(named, Self.keys[0], id: "dev"))
        #expect(throws: ConfigurationError("--secret needs a name for the key: set --key-id too")) {
            try token([], secretFile: path)
        }
    }
}
