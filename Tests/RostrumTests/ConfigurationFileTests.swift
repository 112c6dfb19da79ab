import Base
import Foundation
import TestSupport
import Testing

@testable import rostrum

@Suite struct `The file of the configuration` {
    private static let secret = "0123456789abcdef0123456789abcdef"

    /// Gives a directory with files of these names and contents.
    private func withFiles(_ files: [String: String], _ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (name, text) in files {
            try Data(text.utf8).write(to: directory.appendingPathComponent(name))
        }
        try body(directory.path)
    }

    private func values(
        _ flags: [String] = [], environment: [String: String] = [:], usualPath: String = "/nonexistent/file"
    ) throws(ConfigurationError) -> OptionValues {
        let given = try OptionValues.parse(environment: environment)
            .overridden(by: try OptionValues.parse(arguments: flags).values)
        let file = try ConfigurationFile.read(for: given, usualPath: usualPath)
        return try (file?.values ?? OptionValues()).overridden(by: given).withSecretFile()
    }

    private func complaint(_ flags: [String] = [], usualPath: String = "/nonexistent/file") -> String {
        do throws(ConfigurationError) {
            _ = try values(flags, usualPath: usualPath)
            return ""
        } catch {
            return error.description
        }
    }

    @Test func `is the usual one if there is one, or that which is named`() throws {
        try withFiles(["usual": "workers = 3\nviewers = 'public'", "other": "workers = 5"]) { folder in
            let usual = try values(usualPath: folder + "/usual")
            #expect(
                usual["workers"]?.texts == ["3"] && usual["viewers"]?.place == "line 2 of \(folder)/usual")
            let other = try values(["--config", folder + "/other"], usualPath: folder + "/usual")
            #expect(other["workers"]?.texts == ["5"] && other["viewers"] == nil)
            let named = try values(environment: ["ROSTRUM_CONFIG": folder + "/other"])
            #expect(named["workers"]?.texts == ["5"])
        }
        #expect(try values() == OptionValues())
        #expect(try values(["--config", "/dev/null"])["workers"] == nil)
    }

    @Test func `is not the installed server's when something is tried out`() throws {
        try withFiles(["usual": "workers = 3"]) { folder in
            let alone = try values(["--dev"], usualPath: folder + "/usual")
            #expect(alone["workers"] == nil)
            let named = try values(["--dev", "--config", folder + "/usual"])
            #expect(named["workers"]?.texts == ["3"])
        }
    }

    @Test func `is refused where it cannot be read`() throws {
        #expect(
            complaint(["--config", "/nonexistent/file"]).contains(
                "/nonexistent/file, given by --config: No such"))
        #expect(complaint(usualPath: "/").contains("cannot read /: "))
        try withFiles(["binary": "\u{0}", "long": String(repeating: "#", count: 1 << 20 + 1)]) { folder in
            #expect(complaint(["--config", folder + "/binary"]).contains("line 1 of \(folder)/binary"))
            #expect(complaint(["--config", folder + "/long"]).contains("more than 1048576 bytes"))
            try Data([0xFF]).write(to: URL(fileURLWithPath: folder + "/latin"))
            #expect(complaint(["--config", folder + "/latin"]).contains("not encoded in UTF-8"))
        }
    }

    @Test(arguments: [
        ("htpp = ':80'", "unknown option htpp; did you mean http?"),
        ("tls_key = 'a'", "unknown option tls_key; did you mean tls-key?"),
        ("colour = 'red'", "see rostrum --help for all options"),
        ("dev = 'true'", "must be true or false, without quotes"),
        ("http = true", "one string in quotes or a number"), ("http = ['a']", "one string in quotes"),
        ("trusted-proxy = 1", "or a list of them"), ("workers = 0", "must be a number from 1 to 256"),
        ("workers = 1\nworkers = 2", "line 2 of"), ("[server]", "sections are not supported"),
    ])
    func `says what is wrong in it`(_ text: String, _ hint: String) throws {
        try withFiles(["file": text + "\n"]) { folder in
            do throws(ConfigurationError) {
                let values = try values([
                    "--config", folder + "/file", "--key-id", "k", "--secret", Self.secret,
                ])
                _ = try Configuration(values, processors: 1)
                Issue.record("\(text) was taken")
            } catch {
                #expect(error.description.contains(hint), "\(error)")
                #expect(error.description.contains("of \(folder)/file"))
            }
        }
    }

    @Test func `may name a file with the secret, which a secret given otherwise replaces`() throws {
        let older = Self.secret.uppercased()
        try withFiles(["secret": "\(Self.secret)  \n# of May\r\n\n \(older)\n"]) { folder in
            try Data("key-id = 'main'\nsecret-file = '\(folder)/secret'".utf8)
                .write(to: URL(fileURLWithPath: folder + "/file"))
            let flags = ["--config", folder + "/file"]
            let configuration = try Configuration(try values(flags), processors: 1)
            #expect(configuration.key.secret?.exposed == Self.secret)
            #expect(configuration.key.previous.map(\.exposed) == [older])
            let other = String(Self.secret.reversed())
            let replaced = try values(flags, environment: ["ROSTRUM_SECRET": other])
            let key = try Configuration(replaced, processors: 1).key
            #expect(key.secret?.exposed == other)
            #expect(key.previous.isEmpty)
        }
    }

    @Test func `takes further lines of the secret's file for keys, and says so of what is none`() throws {
        try withFiles(["secret": "\(Self.secret)\nmore\n"]) { folder in
            let error = #expect(throws: ConfigurationError.self) {
                try Configuration(
                    try values(["--key-id", "main", "--secret-file", "\(folder)/secret"]), processors: 1)
            }
            #expect(error?.description.contains("has 4 bytes, but needs at least 32") == true)
        }
    }

    /// A key that is cut off would be another key, whose tokens only this server takes.
    @Test func `names no file for the secret that is too long, or none`() throws {
        let line = Self.secret + "\n"
        let most = String(repeating: line, count: 4_096 / line.utf8.count)
        let full = most + String(repeating: "#", count: 4_096 - most.utf8.count)
        try withFiles(["full": full, "long": full + "#", "blank": "\n" + line]) { folder in
            func complaint(_ name: String) -> String {
                self.complaint(["--key-id", "main", "--secret-file", "\(folder)/\(name)"])
            }
            let keys = try values(["--key-id", "main", "--secret-file", "\(folder)/full"])
            #expect(keys.previousSecrets.count == 4_096 / line.utf8.count - 1)
            let origin = "given by --secret-file"
            #expect(
                complaint("long")
                    == "\(folder)/long, \(origin), has more than 4096 bytes; remove the oldest keys")
            #expect(complaint("").hasPrefix("cannot read \(folder)/, \(origin)"))
            #expect(complaint("blank").hasPrefix("the first line of \(folder)/blank, \(origin), is empty"))
        }
    }

    @Test func `may be nothing at all, or end without a line break`() throws {
        try withFiles(["empty": "", "blank": "\n\r\n  # nothing\n\t\n", "last": "workers = 3"]) { folder in
            let empty = try values(["--config", folder + "/empty"])
            #expect(empty["workers"] == nil)
            let blank = try values(["--config", folder + "/blank"])
            #expect(blank["workers"] == nil)
            let last = try values(["--config", folder + "/last"])
            #expect(last["workers"]?.texts == ["3"])
        }
    }

    @Test func `is shown with the place of each value and without secrets`() throws {
        try withFiles(["secret": Self.secret]) { folder in
            try Data(
                """
                key-id = "main"
                secret-file = "\(folder)/secret"
                trusted-proxy = ["127.0.0.1", "10.0.0.0/8"]
                """.utf8
            ).write(to: URL(fileURLWithPath: folder + "/file"))
            let values = try values(
                ["--config", folder + "/file", "--workers", "2"], environment: ["ROSTRUM_VIEWERS": "public"])
            let text = try ConfigCommand(values, processors: 1).text
            let lines = text.split(separator: "\n").map { line in
                line.split(separator: " ").joined(separator: " ")
            }
            #expect(lines.contains("http = \"127.0.0.1:8080\" # default"))
            #expect(lines.contains("# admin: not set"))
            #expect(lines.contains("workers = 2 # --workers"))
            #expect(lines.contains("viewers = \"public\" # ROSTRUM_VIEWERS"))
            #expect(lines.contains("key-id = \"main\" # line 1 of \(folder)/file"))
            #expect(lines.contains("secret = \"<secret>\" # \(folder)/secret"))
            #expect(
                lines.contains(
                    "trusted-proxy = [\"127.0.0.1/32\", \"10.0.0.0/8\"] # line 3 of \(folder)/file"))
            #expect(!text.contains(Self.secret))
            #expect(lines.count == Option.all.count - 1)
            // It is such a file itself.
            _ = try OptionValues.parse(file: text, name: "again")
        }
    }
}

@Suite struct `A reload` {
    private func configuration(_ flags: String...) throws -> Configuration { try configuration(flags) }

    private func configuration(_ flags: [String]) throws -> Configuration {
        try Configuration(try OptionValues.parse(arguments: ["--dev"] + flags).values, processors: 1)
    }

    @Test func `knows what has changed`() throws {
        let first = try configuration("--secret", "a", "--max-sessions", "5")
        #expect(Reloading.settings(of: first, unlike: first).isEmpty)
        let second = try configuration("--secret", "b", "--max-sessions", "6", "--viewers", "token")
        #expect(Reloading.settings(of: second, unlike: first) == ["max-sessions", "viewers", "secret"])
    }

    /// They are shown without their values.
    @Test func `knows what has changed of passwords`() throws {
        func changes(_ first: [String], _ second: [String]) throws -> [String] {
            try Reloading.settings(of: configuration(second), unlike: configuration(first))
        }
        let srt = ["--srt", "127.0.0.1:9710", "--srt-passphrase"]
        #expect(try changes(srt + ["0123456789"], srt + ["9876543210"]) == ["srt-passphrase"])
        let turn = ["--ice-server", "turn:192.0.2.1:3478", "--ice-server-secret"]
        #expect(try changes(turn + ["a"], turn + ["b"]) == ["ice-server-secret"])
        let name = "--ice-server"
        #expect(
            try changes([name, "turn:192.0.2.1:3478,ann,a"], [name, "turn:192.0.2.1:3478,ann,b"])
                == ["ice-server"])
    }

    @Test func `knows what has changed of addresses whose secrets are not shown`() throws {
        func changes(_ first: [String], _ second: [String]) throws -> [String] {
            let secret = ["--webhook-secret", "0123456789abcdef"]
            return try Reloading.settings(
                of: configuration(secret + second), unlike: configuration(secret + first))
        }
        let (hook, review) = ("--webhook", "--review-webhook")
        #expect(try changes([hook, "http://a/h?key=1"], [hook, "http://a/h?key=2"]) == ["webhook"])
        #expect(try changes([hook, "http://u:p@a/"], [hook, "http://u:q@a/"]) == ["webhook"])
        #expect(try changes([review, "http://u:p@a/"], [review, "http://a/"]) == ["review-webhook"])
        #expect(try changes([hook, "http://a/"], [hook, "http://a/"]) == [])
        // A change that is shown is told once.
        #expect(try changes([hook, "http://a/"], [hook, "http://b/"]) == ["webhook"])
        #expect(try changes([review, "http://a/"], [hook, "http://a/"]) == ["webhook", "review-webhook"])
    }

    @Test func `knows what has changed of keys`() throws {
        func key(_ previous: [String], secret: String? = "a") -> Configuration.SigningKey {
            .init(id: "k", secret: secret.map { Secret($0) }, previous: previous.map { Secret($0) })
        }
        #expect(key(["b", "c"]).isSame(as: key(["b", "c"])))
        #expect(!key(["b", "c"]).isSame(as: key(["c", "b"])))
        #expect(!key([]).isSame(as: key(["a"])))
        let made = key([], secret: nil)
        #expect(!made.isSame(as: key([])) && made.isSame(as: made))
    }

    @Test func `changes only what there is`() {
        #expect(Reloading.changeable.allSatisfy { Option.named($0) != nil })
    }
}
