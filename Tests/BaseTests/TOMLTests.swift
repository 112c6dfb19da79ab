import TestSupport
import Testing

@testable import Base

@Suite struct `A configuration file` {
    private func failure(_ text: String) -> TOMLTable.Failure? {
        do throws(TOMLTable.Failure) {
            _ = try TOMLTable(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    @Test func `has values of every kind`() throws {
        let table = try TOMLTable(parsing: try Fixtures.text("Configuration/every-kind.toml"))
        #expect(
            table.entries.map(\.key) == [
                "http", "key-id", "workers", "max-sessions", "feed-age-weight", "dev", "trusted-proxy",
                "public-address", "webhook-secret",
            ])
        #expect(table.entries.map(\.line) == [2, 3, 4, 5, 6, 7, 8, 9, 14])
        #expect(table["http"] == .string("0.0.0.0:443"))
        #expect(table["key-id"] == .string("main\\key"))
        #expect(table["workers"] == .integer(4))
        #expect(table["max-sessions"] == .integer(20_000))
        #expect(table["feed-age-weight"] == .integer(-5))
        #expect(table["dev"] == .boolean(false))
        #expect(table["trusted-proxy"] == .strings(["127.0.0.1", "10.0.0.0/8"]))
        #expect(table["public-address"] == .strings(["203.0.113.7", "2001:db8::7"]))
        #expect(table["webhook-secret"] == .string("tab\t quote\" backslash\\ umlaut\u{fc} note\u{1D11E}"))
        #expect(table["udp"] == nil)
    }

    @Test(arguments: ["", "\n", "# nothing", " \t\r\n\n#\r\n"])
    func `may be empty`(_ text: String) throws {
        #expect(try TOMLTable(parsing: text).entries.isEmpty)
    }

    @Test(arguments: [
        ("a = 1\n\nb", 3, "write b = value"), ("a = 1\na = 2", 2, "a is already set in line 1"),
        ("[server]", 1, "sections are not supported"), ("a.b = 1", 1, "dotted"),
        ("\"a\" = 1", 1, "cannot start a name"),
        ("= 1", 1, "cannot start a name"), ("a =", 1, "a has no value"), ("a = # 1", 1, "a has no value"),
        ("a = on", 1, "a = \"on\""), ("a = 0.0.0.0:80", 1, "a = \"0.0.0.0:80\""),
        ("a = 10.0.0.1", 1, "in quotes"), ("a = 1.5", 1, "not a decimal whole number"),
        ("a = 012", 1, "not a decimal whole number"), ("a = 1__0", 1, "not a decimal whole number"),
        ("a = +", 1, "not a decimal whole number"),
        ("a = 99999999999999999999", 1, "not a decimal whole number"),
        ("a = 0x10", 1, "not a decimal whole number"),
        ("a = 1 2", 1, "only one setting is allowed per line"),
        ("a = \"b\" c = 1", 1, "only one setting is allowed per line"),
        ("\na = \"b", 2, "add \" at its end"), ("a = 'b\n'", 1, "add ' at its end"),
        ("a = \"\"\"b\"\"\"", 1, "multi-line strings"), ("a = \"\\x\"", 1, "must be followed by"),
        ("a = \"\\u12\"", 1, "4 hexadecimal"), ("a = \"\\uD800\"", 1, "no character with the code d800"),
        ("a = \"\\U00110000\"", 1, "no character"), ("a = \"\u{1}\"", 1, "control character 1"),
        ("# \u{7F}", 1, "control character 127"), ("a = 1\rb = 2", 1, "only at the end of a line"),
        ("\na = [", 2, "add ] at its end"), ("a = [\"b\"\n\"c\"]", 2, "a comma"),
        ("a = [\"b\"", 1, "add ] at its end"),
        ("a = [1]", 1, "strings in quotes"), ("a = [,]", 1, "strings in quotes"),
        ("é = 1", 1, "cannot start a name"),
    ])
    func `is refused with its line where it is none`(_ text: String, _ line: Int, _ hint: String) throws {
        let failure = try #require(self.failure(text))
        #expect(failure.line == line && failure.reason.contains(hint), "\(failure)")
        #expect(failure.description == "line \(line): \(failure.reason)")
    }

    @Test func `is nothing else when it is cut off anywhere`() throws {
        let text = try Fixtures.text("Configuration/every-kind.toml")
        let whole = try TOMLTable(parsing: text)
        for count in 0..<text.count {
            guard let part = try? TOMLTable(parsing: String(text.prefix(count))) else { continue }
            // A number that is cut off is another number.
            let settled = part.entries.dropLast()
            #expect(settled.elementsEqual(whole.entries.prefix(settled.count)))
        }
    }

    @Test func `is the same when it is written and read again`() throws {
        var random = SeededGenerator(seed: 11)
        let scalars: [Unicode.Scalar] = [
            "a", "\"", "\\", "\n", "\t", "\r", "\u{0}", "\u{7F}", "#", "'", "é", "\u{1D11E}",
        ]
        func string() -> String {
            var text = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                scalars.randomElement(using: &random).map { text.append($0) }
            }
            return String(text)
        }
        for _ in 0..<2_000 {
            let value: TOMLTable.Value =
                switch Int.random(in: 0...3, using: &random) {
                case 0: .string(string())
                case 1: .integer(Int.random(in: Int.min...Int.max, using: &random))
                case 2: .boolean(Bool.random(using: &random))
                default: .strings((0..<Int.random(in: 0...3, using: &random)).map { _ in string() })
                }
            #expect(try TOMLTable(parsing: "a = \(value.text)")["a"] == value)
        }
    }

    @Test func `survives random text`() {
        var random = SeededGenerator(seed: 12)
        let pieces = [
            "a", "=", " ", "\n", "#", "\"", "'", "[", "]", ",", "true", "1", "-", "_", "\\", "\\u00", "\r\n",
            "\t", "é",
            "\u{0}", ".",
        ]
        for _ in 0..<10_000 {
            let text = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            _ = failure(text.joined())
        }
    }
}
