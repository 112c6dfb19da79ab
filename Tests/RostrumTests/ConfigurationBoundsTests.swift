import Base
import Gateway
import HTTP
import Testing

@testable import rostrum

/// A configuration of flags, variables and a file, as `rostrum serve` has it on a machine with four processors.
private func configure(
    _ flags: [String], environment: [String: String] = [:], file: String = "", processors: Int = 4
) throws(ConfigurationError) -> Configuration {
    let values = try OptionValues.parse(file: file, name: "rostrum.toml")
        .overridden(by: try OptionValues.parse(environment: environment))
        .overridden(by: try OptionValues.parse(arguments: flags).values).withSecretFile()
    return try Configuration(values, processors: processors)
}

private func complaint(
    _ flags: [String], environment: [String: String] = [:], file: String = ""
) -> String {
    do throws(ConfigurationError) {
        _ = try configure(flags, environment: environment, file: file)
        return "none"
    } catch {
        return error.description
    }
}

@Suite struct `An option of the server` {
    /// A value for each option that is not its default.
    private static let all = [
        "--http", ":8443", "--admin", "127.0.0.1:9090", "--trusted-proxy", "10.0.0.0/8",
        "--udp", "10.0.0.1:7001-7003", "--tcp", "10.0.0.1:443", "--rtmp", ":1935", "--rtmps", ":1936",
        "--srt", ":9710", "--srt-passphrase", "0123456789", "--srt-latency", "300", "--turn-tls", ":5349",
        "--turn-tcp", ":3478", "--turn-udp", ":3478", "--public-address", "203.0.113.7", "--workers", "3",
        "--max-sessions", "11", "--max-sessions-per-address", "12", "--max-compositions", "13",
        "--max-renditions", "14", "--max-conversions", "15", "--max-hls", "16", "--hls-part", "400",
        "--max-dvr", "600", "--max-restreams", "17", "--max-clips", "18", "--restream-networks", "all",
        "--data", "/srv/data", "--keep-streams", "1d", "--keep-recordings", "2d", "--keep-clips", "3d",
        "--keep-comments", "4d", "--webhook", "https://a.example/hook",
        "--review-webhook", "https://b.example/ask", "--review-default", "deny",
        "--webhook-secret", "0123456789abcdef", "--key-id", "main",
        "--secret", "0123456789abcdef0123456789abcdef", "--secret-file", "/nonexistent/secret",
        "--viewers", "public", "--feed-viewers-weight", "1", "--feed-age-weight", "2",
        "--feed-boost-weight", "3", "--tls-certificate", "/a.pem", "--tls-key", "/a.key",
        "--ice-server", "turn:a.example", "--ice-server-secret", "hush", "--srtp-engine", "libsrtp2",
        "--transcoder", "off", "--transcoder-confinement", "off", "--transcoder-nice", "7", "--dev",
        "--log-level", "debug", "--log-format", "json",
    ]

    /// An option without an effective value would be shown as not set, and its changes would never be noticed.
    @Test func `is shown with its value, each of them`() throws {
        let full = try configure(Self.all)
        let usual = try configure(["--key-id", "k", "--secret", "0123456789abcdef0123456789abcdeX"])
        #expect(full.settings.map(\.name) == Option.all.map(\.name).filter { $0 != "config" })
        for setting in full.settings {
            #expect(Self.all.contains("--\(setting.name)"), "\(setting.name) needs a value above")
            #expect(setting.value != nil, "\(setting.name)")
        }
        let changed = Set(Reloading.settings(of: full, unlike: usual))
        #expect(changed == Set(full.settings.map(\.name)))
        // What it shows is the file of such a server, but for what it conceals.
        let secrets = [
            "--secret", "0123456789abcdef0123456789abcdef", "--webhook-secret", "0123456789abcdef",
            "--ice-server-secret", "hush", "--srt-passphrase", "0123456789",
        ]
        let again = try configure(secrets, file: full.summary)
        #expect(Reloading.settings(of: again, unlike: full).isEmpty)
    }

    @Test(arguments: [
        ("workers", 1, 256), ("max-sessions", 1, 1_000_000), ("max-sessions-per-address", 1, 1_000_000),
        ("max-compositions", 0, 10_000), ("max-renditions", 0, 10_000), ("max-conversions", 0, 10_000),
        ("max-hls", 0, 10_000), ("max-restreams", 0, 1_000), ("max-clips", 0, 50), ("srt-latency", 20, 8_000),
        ("transcoder-nice", 0, 19), ("feed-viewers-weight", -1_000, 1_000), ("max-dvr", 0, 7_200),
    ])
    func `takes its bounds themselves, and nothing beyond`(name: String, lowest: Int, highest: Int) {
        for good in [lowest, highest] { #expect(complaint(["--dev", "--\(name)=\(good)"]) == "none") }
        for bad in ["\(lowest - 1)", "\(highest + 1)", "", " 1", "1.0", "0x1", "99999999999999999999"] {
            let words = complaint(["--dev", "--\(name)=\(bad)"])
            #expect(words.hasPrefix("--\(name) "), "\(bad): \(words)")
        }
    }

    @Test(arguments: [(0, 1, 2, 1, 1), (1, 1, 2, 1, 1), (5, 5, 10, 5, 2), (1_000, 256, 2_000, 1_000, 500)])
    func `follows the processors, within its bounds`(
        processors: Int, workers: Int, compositions: Int, renditions: Int, others: Int
    ) throws {
        let found = try configure(["--dev"], processors: processors)
        #expect(found.workers == workers && found.maximumCompositions == compositions)
        #expect(found.maximumRenditions == renditions)
        #expect(found.maximumConversions == others && found.maximumPackagings == others)
    }

    @Test func `has its UDP port for itself`() {
        func words(_ arguments: String...) -> String { complaint(["--dev"] + arguments) }
        let end = ": each needs a UDP port of its own"
        #expect(words("--udp", ":9", "--srt", ":9") == "--udp and --srt both name 0.0.0.0:9" + end)
        #expect(words("--turn-udp", ":7000") == "--udp and --turn-udp both name 0.0.0.0:7000" + end)
        #expect(words("--srt", ":9", "--turn-udp", ":9") == "--srt and --turn-udp both name 0.0.0.0:9" + end)
        // Of a range, as many as there are workers.
        let range = ["--dev", "--udp", ":7000-7009", "--workers", "4", "--srt"]
        #expect(complaint(range + [":7003"]) == "--udp and --srt both name 0.0.0.0:7003" + end)
        #expect(complaint(range + [":7004"]) == "none")
        #expect(words("--udp", ":65533-65535", "--workers", "3", "--srt", ":65535").contains("both name"))
        // Another address is another port, and what the system chooses is never the same.
        #expect(words("--udp", "10.0.0.1:9", "--srt", "10.0.0.2:9") == "none")
        #expect(words("--udp", ":0", "--srt", ":0", "--turn-udp", ":0") == "none")
        // TCP is another matter.
        #expect(words("--udp", ":9", "--tcp", "off", "--rtmp", ":9") == "none")
    }

    /// Linux opens only one of `0.0.0.0:9` and `10.0.0.1:9`, and `::` takes IPv4 as well.
    @Test(arguments: [
        ("--http", "[::]:443", "--tcp", "0.0.0.0:443"), ("--http", "0.0.0.0:443", "--tcp", "10.0.0.1:443"),
        ("--http", "0.0.0.0:9", "--admin", "127.0.0.1:9"), ("--udp", "0.0.0.0:9", "--srt", "10.0.0.1:9"),
        ("--turn-udp", "[::]:9", "--srt", "0.0.0.0:9"), ("--http", "[::]:9", "--rtmp", "[::1]:9"),
    ])
    func `has no address that includes another one`(
        wide: String, address: String, narrow: String, other: String
    ) {
        let start = "\(wide) \(address) and \(narrow) \(other) cannot both be open"
        #expect(complaint(["--dev", wide, address, narrow, other]).hasPrefix(start))
        // Whichever is named first.
        #expect(complaint(["--dev", narrow, address, wide, other]).contains("cannot both be open"))
        // IPv4's address for all has no part in IPv6.
        #expect(complaint(["--dev", wide, "0.0.0.0:9", narrow, "[::1]:9"]) == "none")
    }

    @Test func `that is a list may be none after all`() throws {
        let file = """
            dev = true
            webhook = ["https://a.example/hook"]
            webhook-secret = "0123456789abcdef"
            ice-server = ["stun:a", "stun:b"]
            trusted-proxy = ["10.0.0.0/8"]
            public-address = ["203.0.113.7"]
            """
        let full = try configure([], file: file)
        #expect(full.webhooks?.urls == ["https://a.example/hook"] && full.iceServers.count == 2)
        let none = try configure(
            ["--webhook=", "--ice-server=", "--trusted-proxy=", "--public-address="], file: file)
        #expect(none.webhooks == nil && none.iceServers.isEmpty && none.publicAddresses.isEmpty)
        #expect(none.trustedProxies.networks.isEmpty)
        let reviewed = try configure(["--webhook=", "--review-webhook", "http://b/"], file: file)
        #expect(reviewed.webhooks?.urls == [] && reviewed.webhooks?.reviewer == "http://b/")
        // Neither has a secret that is left without anything to sign.
        let turn = "dev = true\nice-server = [\"turn:a\"]\nice-server-secret = \"hush\"\n"
        let alone = try configure(["--ice-server="], file: turn)
        #expect(alone.iceServers.isEmpty && alone.iceServerSecret == nil)
        let other = complaint(["--ice-server", "stun:a"], file: turn)
        #expect(other.hasPrefix("--ice-server-secret is for TURN"))
        // What only looks empty is a mistake.
        #expect(complaint(["--webhook", ","], file: file) == "--webhook must be 1 to 10 URLs, not 0")
    }

    @Test func `that is a list of webhooks has ten at most, and each once`() throws {
        func urls(_ count: Int) -> String { (1...count).map { "http://a/\($0)" }.joined(separator: ",") }
        let secret = ["--dev", "--webhook-secret", "0123456789abcdef", "--webhook"]
        #expect(try configure(secret + [urls(10)]).webhooks?.urls.count == 10)
        #expect(complaint(secret + [urls(11)]) == "--webhook must be 1 to 10 URLs, not 11")
        let twice = urls(10) + "," + urls(10)
        #expect(try configure(secret + [twice]).webhooks?.urls.count == 10)
    }

    @Test(arguments: [
        "stun:", "turn:", "turn::3478", "turn:?transport=udp", "turns:,ann,p", "stun", "turn:a,,p",
        "turn:a,ann,", "turn:a,,", "turn:ä", "turn:a b", "turn:a\"b", "STUN:a", "",
    ])
    func `names an ICE server whole`(text: String) {
        let words = complaint(["--dev", "--ice-server", text])
        #expect(text.isEmpty ? words == "none" : words.contains("must have the form stun:HOST:PORT"))
    }

    @Test func `may name ICE servers by any address`() throws {
        let found = try configure([
            "--dev", "--ice-server", "turn:[2001:db8::1]:3478?transport=tcp,ann,a,b", "--ice-server",
            "stuns:h:1",
        ])
        #expect(found.iceServers.map(\.url) == ["turn:[2001:db8::1]:3478?transport=tcp", "stuns:h:1"])
        #expect(found.iceServers.map(\.username) == ["ann", nil])
        #expect(found.iceServers.first?.credential?.exposed == "a,b")
    }

    @Test(arguments: [
        ("true", true), ("TRUE", true), ("yes", true), ("On", true), ("1", true), ("false", false),
        ("no", false), ("off", false), ("0", false),
    ])
    func `that is a switch takes the usual words`(text: String, isOn: Bool) throws {
        let key = ["ROSTRUM_KEY_ID": "k", "ROSTRUM_SECRET": "0123456789abcdef0123456789abcdef"]
        let variables = key.merging(["ROSTRUM_DEV": text]) { _, new in new }
        #expect(try configure([], environment: variables).isDevelopment == isOn)
        #expect(try configure(["--dev=\(text)"], environment: key).isDevelopment == isOn)
    }

    @Test(arguments: [
        (["--=x"], "unknown option --=x"), (["--"], "unknown option --"),
        (["-h=1"], "unexpected argument -h=1"),
        (["-dev"], "unexpected argument -dev"), (["--dev", "--dev"], "--dev is set more than once"),
        (["--dev="], "--dev is empty"), (["--config"], "--config needs a value: --config FILE"),
        (["--DEV"], "unknown option --DEV"), (["--dev", ""], "unexpected argument ;"),
    ])
    func `is written with two dashes and its name`(flags: [String], words: String) {
        #expect(complaint(flags).hasPrefix(words), "\(complaint(flags))")
    }

    @Test func `may have an equals sign, dashes and blanks in its value`() throws {
        let values = try OptionValues.parse(arguments: [
            "--secret=a=b", "--key-id", "--dev", "--data", " /a b ", "--ice-server", "", "--ice-server=x",
        ]).values
        #expect(values["secret"]?.texts == ["a=b"] && values["key-id"]?.texts == ["--dev"])
        #expect(values["data"]?.texts == [" /a b "] && values["ice-server"]?.texts == ["", "x"])
        #expect(values["dev"] == nil && values["secret"]?.origin == "--secret")
    }

    /// One dash too few would make a directory of that name.
    @Test func `is no name of a directory`() throws {
        let operand = Option("to", .text, "DIRECTORY")
        for flag in ["-recordings", "-", "-r"] {
            #expect(throws: ConfigurationError("unexpected argument \(flag); options begin with --")) {
                try OptionValues.parse(arguments: [flag], options: [], operand: operand)
            }
        }
        let values = try OptionValues.parse(arguments: ["./-x"], options: [], operand: operand).values
        #expect(values["to"]?.texts == ["./-x"])
    }

    @Test func `of the environment may be a list, but not empty`() throws {
        let values = try OptionValues.parse(environment: [
            "ROSTRUM_ICE_SERVER": "  stun:a   stun:b,c d ", "ROSTRUM_WEBHOOK": "", "ROSTRUM_NONSENSE": "",
            "rostrum_http": ":1", "XROSTRUM_HTTP": ":1",
        ])
        #expect(values["ice-server"]?.texts == ["stun:a", "stun:b,c", "d"])
        #expect(values["webhook"] == nil && values["http"] == nil)
        #expect(complaint([], environment: ["ROSTRUM_HTTP": ""]).hasPrefix("ROSTRUM_HTTP is empty"))
        // Of several mistakes it is always the same that is told.
        for _ in 0..<5 {
            let words = complaint(
                [], environment: ["ROSTRUM_UDP": "", "ROSTRUM_HTTP": "", "ROSTRUM_TCP": ""])
            #expect(words.hasPrefix("ROSTRUM_HTTP is empty"))
        }
    }

    @Test(arguments: [
        ("workers = 1.5", "line 1"), ("workers = 4 4", "line 1"), ("workers = 0x4", "line 1"),
        ("workers = 99999999999999999999", "line 1"), ("http = \"a", "line 1"), ("http = 'a\n'", "line 1"),
        ("dev = True", "line 1"), ("= 1", "line 1"), ("dev true", "line 1"), ("a b = 1", "line 1"),
        ("\n\n[[x]]", "line 3"), ("webhook = [", "line"), ("webhook = [1]", "line 1"),
        ("webhook = [\"a\" \"b\"]", "line 1"), ("webhook = [['a']]", "line 1"), ("http = {}", "line 1"),
        ("dev = true\ndev = true", "line 2"), ("http = \"\\q\"", "line 1"), ("http = ''", "http in line 1"),
        ("server.http = ':1'", "line 1"), ("http = 2024-01-01", "line 1"), ("http = \"\"\"x\"\"\"", "line"),
    ])
    func `of the file is refused with its line where it makes no sense`(text: String, place: String) {
        #expect(complaint(["--key-id", "k"], file: text).hasPrefix(place), "\(text)")
        #expect(complaint(["--key-id", "k"], file: text).contains("rostrum.toml"), "\(text)")
    }
}
