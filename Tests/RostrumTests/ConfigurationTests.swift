import Base
import Crypto
import Gateway
import HTTP
import Node
import Store
import StoryFeed
import TestSupport
import Testing
import Transcoder

@testable import rostrum

@Suite struct ConfigurationTests {
    private func configure(
        _ flags: [String] = [], environment: [String: String] = [:], file: String = ""
    ) throws(ConfigurationError) -> Configuration {
        let values = try OptionValues.parse(file: file, name: "rostrum.toml")
            .overridden(by: try OptionValues.parse(environment: environment))
            .overridden(by: try OptionValues.parse(arguments: flags).values).withSecretFile()
        return try Configuration(values, processors: 4)
    }

    private func complaint(
        _ flags: [String] = [], environment: [String: String] = [:], file: String = ""
    ) -> String {
        do throws(ConfigurationError) {
            _ = try configure(flags, environment: environment, file: file)
            return ""
        } catch {
            return error.description
        }
    }

    @Test func `has the defaults of the contract`() throws {
        let configuration = try configure(["--dev"])
        #expect(configuration.http.description == "127.0.0.1:8080")
        #expect(configuration.udp.description == "0.0.0.0:7000")
        #expect(configuration.tcp == configuration.udp)
        #expect(configuration.workers == 4)
        #expect(configuration.isDevelopment)
        #expect(configuration.key.id == "dev")
        #expect(configuration.key.secret == nil)
        #expect(configuration.viewers == .everyone)
        #expect(configuration.logLevel == .info)
        #expect(configuration.logFormat == .text)
        #expect(configuration.tls == nil)
        #expect(configuration.publicAddresses.isEmpty)
        #expect(configuration.maximumPackagings == 2)
    }

    @Test func `has one UDP port for all workers, or one for each`() throws {
        let one = try configure(["--dev", "--udp", "[::]:7000"])
        #expect(one.lastUDPPort == nil && one.summary.contains("udp = \"[::]:7000\"\n"))
        #expect(!Server.nodeConfiguration(one).hasPortPerWorker)
        let many = try configure(["--dev", "--udp", "[::]:7000-7003", "--workers", "4"])
        #expect(many.udp == one.udp && many.lastUDPPort == 7_003 && many.tcp == one.udp)
        #expect(many.summary.contains("udp = \"[::]:7000-7003\"\n"))
        #expect(Server.nodeConfiguration(many).hasPortPerWorker)
    }

    @Test func `has a TCP port shared by those who name it`() throws {
        func shared(_ arguments: [String]) throws -> [String] {
            try configure(["--dev"] + arguments).sharedPorts.map { port in
                "\(port.address) \(port.uses.map(\.rawValue).joined(separator: ","))"
            }
        }
        let files = ["--tls-certificate", "a.pem", "--tls-key", "a.key"]
        #expect(try shared([]) == [])
        #expect(
            try shared(
                ["--http", ":443", "--tcp", ":443", "--turn-tls", ":443", "--turn-tcp", ":443"] + files)
                == ["0.0.0.0:443 http,tcp,turn-tls,turn-tcp"])
        #expect(
            try shared(["--http", ":443", "--turn-tls", "0.0.0.0:443", "--turn-tcp", ":7000"] + files)
                == ["0.0.0.0:443 http,turn-tls", "0.0.0.0:7000 tcp,turn-tcp"])
        // Another address is another port, and what the system chooses is never the same; UDP does not count.
        #expect(try shared(["--http", "10.0.0.2:443", "--tcp", "10.0.0.1:443", "--turn-udp", ":443"]) == [])
        #expect(try shared(["--http", ":0", "--tcp", ":0", "--turn-tcp", ":0"]) == [])
    }

    @Test func `has TCP where it is told, or not at all`() throws {
        #expect(try configure(["--dev", "--udp", ":9"]).tcp?.description == "0.0.0.0:9")
        #expect(try configure(["--dev", "--tcp", "10.0.0.1:443"]).tcp?.description == "10.0.0.1:443")
        let off = try configure(["--dev", "--tcp", "off"])
        #expect(off.tcp == nil)
        #expect(off.summary.contains("tcp = \"off\"\n"))
        // Nobody publishes by RTMP unless that is asked for.
        #expect(off.rtmp == nil && off.summary.contains("rtmp = \"off\"\n"))
        #expect(try configure(["--dev", "--rtmp", "off"]).rtmp == nil)
        #expect(try configure(["--dev", "--rtmp", ":1935"]).rtmp?.description == "0.0.0.0:1935")
        #expect(off.rtmps == nil && off.summary.contains("rtmps = \"off\"\n"))
        let files = ["--tls-certificate", "a.pem", "--tls-key", "a.key"]
        #expect(
            try configure(["--dev", "--rtmps", ":1936"] + files).rtmps?.description == "0.0.0.0:1936")
    }

    @Test func `takes encoders by SRT where it is told to, and shows no passphrase`() throws {
        let off = try configure(["--dev"])
        #expect(off.srt == nil && off.srtPassphrase == nil && off.srtLatency == 200)
        #expect(try configure(["--dev", "--srt", "off"]).srt == nil)
        let on = try configure([
            "--dev", "--srt", ":9710", "--srt-passphrase", "of ten or more", "--srt-latency", "400",
        ])
        #expect(on.srt?.description == "0.0.0.0:9710" && on.srtPassphrase?.exposed == "of ten or more")
        #expect(on.srtLatency == 400 && !on.summary.contains("of ten"))
    }

    @Test func `relays by TURN only where it is told`() throws {
        #expect(try configure(["--dev"]).summary.contains("turn-tls = \"off\"\nturn-tcp = \"off\"\n"))
        let files = ["--tls-certificate", "a.pem", "--tls-key", "a.key"]
        let turn = try configure(
            ["--dev", "--turn-tls", ":5349", "--turn-tcp", "off", "--turn-udp", "10.0.0.1:3478"] + files
        ).turn
        #expect(turn.tls?.description == "0.0.0.0:5349" && turn.tcp == nil)
        #expect(turn.udp?.description == "10.0.0.1:3478")
    }

    @Test func `puts the transcoder as far behind as it is told`() throws {
        #expect(try configure(["--dev"]).summary.contains("transcoder-nice = 10\n"))
        let configuration = try configure(["--dev", "--transcoder-nice", "0"])
        #expect(configuration.summary.contains("transcoder-nice = 0\n"))
        // By the server, and by the doctor's trial.
        #expect(configuration.transcoderSettings?.niceness == 0)
        for wrong in ["-1", "20", "low"] {
            #expect(complaint(["--dev", "--transcoder-nice", wrong]).contains("a number from 0 to 19"))
        }
    }

    @Test func `keeps all for ever unless it is told for how long`() throws {
        let usual = try configure(["--dev"])
        #expect(usual.retention == RetentionSettings())
        let lines = "keep-streams = \"forever\"\nkeep-recordings = \"forever\"\nkeep-clips = \"forever\"\n"
        #expect(usual.summary.contains(lines + "keep-comments = \"forever\"\n"))
        let some = try configure(
            ["--dev", "--keep-recordings", "30d", "--keep-comments=forever"], file: "keep-streams = \"36h\"\n"
        )
        #expect(some.retention.recordings == 2_592_000 && some.retention.comments == nil)
        // Clips are kept as long as recordings, where nothing else is said.
        #expect(some.retention.clips == 2_592_000)
        #expect(
            try configure(["--dev", "--keep-recordings", "30d", "--keep-clips", "1d"]).retention.clips
                == 86_400)
        #expect(
            try configure(["--dev", "--keep-recordings", "30d", "--keep-clips", "forever"]).retention.clips
                == nil)
        #expect(some.retention.streams == 129_600 && some.summary.contains("keep-streams = \"36h\"\n"))
        for bad in ["0d", "never", "1 week", "36501d"] {
            #expect(
                complaint(["--dev", "--keep-recordings", bad])
                    == "--keep-recordings must be forever or a duration such as 30d, 12h or 90m, not \(bad)")
        }
    }

    @Test func `says that a disk is slow that does not finish a write`() {
        var statistics = StoreStatistics()
        #expect(DataService.hindrance(statistics) == nil)
        statistics.writing = .milliseconds(4_999)
        #expect(DataService.hindrance(statistics) == nil)
        statistics.writing = .milliseconds(7_500)
        #expect(DataService.hindrance(statistics) == "the disk has not finished a write for 7 seconds")
        statistics.failure = "the disk is full"
        #expect(DataService.hindrance(statistics) == "the disk is full")
    }

    @Test func `weighs the feed's order as it is told`() throws {
        #expect(try configure(["--dev"]).feedWeights == FeedWeights())
        let configuration = try configure([
            "--dev", "--feed-viewers-weight", "-3", "--feed-age-weight=0", "--feed-boost-weight", "1000",
        ])
        #expect(
            configuration.feedWeights == FeedWeights(perDoublingOfViewers: -3, perHour: 0, perBoost: 1_000))
        #expect(configuration.summary.contains("feed-viewers-weight = -3\nfeed-age-weight = 0\n"))
        for bad in ["1001", "-1001", "1.5", "much"] {
            #expect(
                complaint(["--dev", "--feed-age-weight", bad])
                    == "--feed-age-weight must be a number from -1000 to 1000, not \(bad)")
        }
    }

    @Test func `takes everything from flags`() throws {
        let configuration = try configure([
            "--http", "[::1]:80", "--udp=10.0.0.1:9000", "--public-address", "203.0.113.7,2001:db8::1",
            "--public-address", "203.0.113.8", "--workers", "2", "--max-sessions", "7",
            "--max-sessions-per-address", "3",
            "--max-compositions", "0", "--max-renditions", "3", "--max-conversions", "4", "--max-hls", "5",
            "--hls-part", "200", "--max-dvr", "600",
            "--max-restreams", "6", "--restream-networks", "all", "--max-clips", "7",
            "--data",
            "/var/lib/rostrum",
            "--key-id", "k1", "--secret", "0123456789abcdef0123456789abcdef", "--viewers", "public",
            "--tls-certificate", "a.pem", "--tls-key", "a.key", "--ice-server", "stun:stun.example.org:3478",
            "--ice-server", "turn:turn.example.org?transport=udp,ann,pass,word", "--srtp-engine", "libsrtp2",
            "--log-level", "debug", "--log-format", "json", "--transcoder", "off",
        ])
        #expect(configuration.http.description == "[::1]:80")
        #expect(configuration.udp.description == "10.0.0.1:9000")
        #expect(
            configuration.publicAddresses.map(\.description) == ["203.0.113.7", "2001:db8::1", "203.0.113.8"])
        #expect(configuration.workers == 2)
        #expect(configuration.maximumSessions == 7)
        #expect(configuration.maximumSessionsPerAddress == 3)
        #expect(configuration.maximumCompositions == 0)
        #expect(configuration.maximumRenditions == 3)
        #expect(configuration.maximumConversions == 4)
        #expect(configuration.maximumPackagings == 5)
        #expect(configuration.packagingTiming.partMilliseconds == 200)
        #expect(configuration.maximumDVRSeconds == 600)
        #expect(configuration.maximumClips == 7)
        #expect(configuration.maximumRestreams == 6 && configuration.restreamNetworks == .all)
        #expect(configuration.dataDirectory == "/var/lib/rostrum")
        #expect(configuration.key.id == "k1")
        #expect(configuration.key.secret?.exposed == "0123456789abcdef0123456789abcdef")
        #expect(configuration.viewers == .everyone)
        #expect(configuration.tls == HTTPServerSettings.TLSFiles(certificate: "a.pem", key: "a.key"))
        #expect(
            configuration.iceServers.map(\.url) == [
                "stun:stun.example.org:3478", "turn:turn.example.org?transport=udp",
            ])
        #expect(configuration.iceServers.last?.credential?.exposed == "pass,word")
        #expect(configuration.srtpEngine == .libsrtp2)
        #expect(configuration.transcoding == .off)
        #expect(configuration.logLevel == .debug)
        #expect(configuration.logFormat == .json)
        #expect(!configuration.isDevelopment)
    }

    @Test func `takes the same from the environment and from a file`() throws {
        let environment = try configure(environment: [
            "ROSTRUM_DEV": "1", "ROSTRUM_HTTP": ":81", "ROSTRUM_PUBLIC_ADDRESS": "203.0.113.7,203.0.113.8",
            "ROSTRUM_ICE_SERVER": "stun:a:1 stun:b:2", "ROSTRUM_LOG_FORMAT": "json", "ROSTRUM_UNKNOWN": "x",
            "HOME": "/root",
        ])
        let file = try configure(
            file: """
                # Rostrum
                dev = true
                http=":81"   # everyone
                public-address = "203.0.113.7,203.0.113.8"
                  ice-server = [
                    "stun:a:1", 'stun:b:2',
                ]\r

                log-format = "json"
                """)
        for configuration in [environment, file] {
            #expect(configuration.isDevelopment)
            #expect(configuration.http.description == "0.0.0.0:81")
            #expect(configuration.publicAddresses.count == 2)
            #expect(configuration.iceServers.map(\.url) == ["stun:a:1", "stun:b:2"])
            #expect(configuration.logFormat == .json)
        }
    }

    @Test func `knows where to post webhooks, and shows it without passwords`() throws {
        let configuration = try configure([
            "--dev", "--webhook", "https://u:p@a.example/h?k=1,http://b:81", "--webhook", "http://b:81",
            "--webhook-secret", "0123456789abcdef",
        ])
        #expect(configuration.webhooks?.urls == ["https://u:p@a.example/h?k=1", "http://b:81"])
        #expect(configuration.webhooks?.secret.exposed == "0123456789abcdef")
        #expect(configuration.summary.contains("webhook = [\"https://a.example/h\", \"http://b:81\"]\n"))
        #expect(!configuration.summary.contains("0123456789abcdef"))
        #expect(try configure(["--dev"]).webhooks == nil)
    }

    @Test func `knows who is asked about comments, and what counts without an answer`() throws {
        #expect(try configure(["--dev"]).summary.contains("review-default = \"allow\"\n"))
        let configuration = try configure([
            "--dev", "--review-webhook", "http://u:p@b:81/r", "--review-default", "deny", "--webhook-secret",
            "0123456789abcdef",
        ])
        #expect(configuration.webhooks?.reviewer == "http://u:p@b:81/r")
        #expect(configuration.webhooks?.urls == [])
        #expect(configuration.summary.contains("review-default = \"deny\"\n"))
        #expect(configuration.summary.contains("review-webhook = \"http://b:81/r\"\n"))
        #expect(Server.nodeConfiguration(configuration).reportsEvents == false)
    }

    @Test func `keeps data in a directory, but not while trying things out`() throws {
        let key = ["--key-id", "k", "--secret", "0123456789abcdef0123456789abcdef"]
        #expect(try configure(key).dataDirectory == "data")
        #expect(try configure(["--dev"]).dataDirectory == nil)
        #expect(try configure(["--dev", "--data", "/tmp/x"]).dataDirectory == "/tmp/x")
    }

    @Test func `lets flags win over the environment, and that over the file`() throws {
        let file = "http = '127.0.0.1:1'\nudp = '127.0.0.1:1'\nlog-level = 'error'\ndev = true"
        let environment = ["ROSTRUM_HTTP": "127.0.0.1:2", "ROSTRUM_UDP": "127.0.0.1:2"]
        let configuration = try configure(["--http", "127.0.0.1:3"], environment: environment, file: file)
        #expect(configuration.http.port == 3)
        #expect(configuration.udp.port == 2)
        #expect(configuration.logLevel == .error)
        #expect(
            !(try configure(
                ["--dev=false", "--key-id", "k", "--secret", "0123456789abcdef0123456789abcdef"], file: file))
                .isDevelopment)
    }

    @Test func `keeps secrets out of its summary`() throws {
        let configuration = try configure(
            [
                "--key-id", "k1", "--secret", "hush-hush-hush-hush-hush-hush-hu", "--ice-server",
                "turn:a,ann,whisper", "--ice-server", "turn:b", "--ice-server-secret", "murmur", "--admin",
                "127.0.0.1:9090", "--trusted-proxy", "127.0.0.1,10.1.2.3/8", "--trusted-proxy", "fd00::/8",
                "--tls-key", "k",
                "--tls-certificate", "c",
            ])
        #expect(!configuration.summary.contains("hush"))
        #expect(!configuration.summary.contains("whisper"))
        #expect(!configuration.summary.contains("murmur"))
        #expect(
            configuration.summary.contains(
                "trusted-proxy = [\"127.0.0.1/32\", \"10.0.0.0/8\", \"fd00::/8\"]\n"))
        #expect(configuration.summary.contains("admin = \"127.0.0.1:9090\"\n"))
        #expect(configuration.summary.contains("key-id = \"k1\"\n"))
        // What it says can be read again.
        let again = try configure(
            ["--secret", "0123456789abcdef0123456789abcdef"], file: configuration.summary)
        #expect(again.summary == configuration.summary)
    }

    @Test(arguments: [
        (["--htpp", ":80"], "--htpp; did you mean http?"),
        (["--max-session", "1"], "did you mean max-sessions?"),
        (["--nonsense"], "rostrum --help"), (["--http"], "ADDRESS:PORT"),
        (["--dev", "--http", "80"], "127.0.0.1:8080"),
        (["--dev", "--http", "example.org:80"], "127.0.0.1:8080"),
        (["--dev", "--http", ":70000"], "127.0.0.1:8080"),
        (["--http", ":1", "--http", ":2"], "set more than once"), (["serve"], "begin with --"),
        (["--http="], "empty"),
        (["--dev", "--workers", "0"], "1 to 256"), (["--dev", "--workers", "x"], "1 to 256"),
        (["--dev", "--udp", ":7000-7002", "--workers", "4"], "too few ports"),
        (["--dev", "--udp", ":7003-7000"], "the lower first"),
        (["--dev", "--udp", ":7000-70000"], "is not a port range"),
        (["--dev", "--udp", ":0-9"], "is not a port range"),
        (["--dev", "--udp", "host:1-2"], "not an ADDRESS:PORT"),
        (["--dev=perhaps"], "true or false"),
        (["--dev", "--tcp", "no"], "--tcp"),
        (["--dev", "--log-level", "loud"], "debug, info, warning, error"),
        (["--dev", "--viewers", "x"], "public, token"),
        (["--dev", "--public-address", "0.0.0.0"], "203.0.113.7"),
        (["--dev", "--public-address", "x"], "203.0.113.7"),
        (["--dev", "--tls-key", "a"], "--tls-certificate"),
        (["--dev", "--tls-certificate", "a"], "--tls-key"),
        (["--dev", "--ice-server", "http://a"], "stun:HOST:PORT"),
        (["--dev", "--ice-server", "turn:a,b"], "USER,PASSWORD"),
        (["--dev", "--ice-server", "turn:a>; rel=x"], "stun:HOST:PORT"),
        (["--dev", "--srtp-engine", "nss"], "libsrtp2"), (["--dev", "--transcoder", "no"], "on, off"),
        ([], "--dev"), (["--secret-file", "/nonexistent"], "/nonexistent, given by --secret-file"),
        (["--secret-file", "/dev/null"], "first line of /dev/null"), (["--key-id", "k"], "ROSTRUM_SECRET"),
        (["--secret", "s"], "--key-id"),
        (["--dev", "--max-sessions", "-1"], "1 to 1000000"),
        (["--dev", "--max-sessions-per-address", "0"], "1 to 1000000"),
        (["--dev", "--max-compositions", "-1"], "0 to 10000"),
        (["--dev", "--max-renditions", "-1"], "0 to 10000"),
        (["--dev", "--max-conversions", "-1"], "0 to 10000"),
        (["--dev", "--rtmps", ":1936"], "--tls-certificate"),
        (["--dev", "--srt-passphrase", "nine char"], "10 to 79 bytes"),
        (["--dev", "--srt-latency", "9000"], "from 20 to 8000"),
        (["--dev", "--turn-tls", ":5349"], "--tls-certificate"),
        (["--dev", "--http", ":443", "--turn-tls", ":443"], "--tls-certificate"),
        (["--dev", "--http", ":443", "--rtmp", ":443"], "--http and --rtmp both name 0.0.0.0:443"),
        (["--dev", "--admin", ":9", "--rtmp", ":9"], "--admin and --rtmp"),
        (["--dev", "--udp", ":9", "--admin", ":9"], "--tcp and --admin"),
        (["--dev", "--webhook", "http://a/"], "ROSTRUM_WEBHOOK_SECRET"),
        (["--dev", "--webhook", "http://a/", "--webhook-secret", "short"], "16 bytes"),
        (
            ["--dev", "--webhook", "a.example", "--webhook-secret", "0123456789abcdef"],
            "https://example.org/hook"
        ),
        (
            ["--key-id", "k", "--secret", "0123456789abcdef0123456789abcde"],
            "31 bytes, but needs at least 32"
        ),
        (["--dev", "--trusted-proxy", "10.0.0.0/33"], "10.0.0.0/8"),
        (["--dev", "--trusted-proxy", "nginx"], "127.0.0.1 or"),
        (["--dev", "--admin", "9090"], "ADDRESS:PORT"),
        (["--dev", "--ice-server-secret", "s"], "--ice-server turn:HOST:PORT"),
        (["--dev", "--ice-server", "turn:a,b,c", "--ice-server-secret", "s"], "--ice-server turn:HOST:PORT"),
        (["--dev", "--webhook-secret", "0123456789abcdef"], "--webhook"),
        (["--dev", "--review-webhook", "http://a/"], "ROSTRUM_WEBHOOK_SECRET"),
        (
            ["--dev", "--review-webhook", "http://a/,http://b/", "--webhook-secret", "0123456789abcdef"],
            "one URL"
        ),
        (["--dev", "--review-default", "maybe"], "allow, deny"),
    ])
    func `says how to mend what makes no sense`(_ flags: [String], _ hint: String) {
        let text = complaint(flags)
        #expect(text.contains(hint), "\(text)")
    }

    @Test func `says where in the file or environment the mistake is`() {
        #expect(complaint(file: "dev = true\n\nhtpp = 'x'").contains("line 3 of rostrum.toml"))
        #expect(complaint(file: "dev").contains("line 1 of rostrum.toml"))
        #expect(complaint(file: "config = 'other'").contains("unknown option config"))
        #expect(complaint(file: "dev = true\nworkers = 'many'").contains("workers in line 2 of rostrum.toml"))
        #expect(
            complaint(environment: ["ROSTRUM_DEV": "1", "ROSTRUM_WORKERS": "many"]).contains(
                "ROSTRUM_WORKERS"))
    }

    @Test func `tells requests from options`() throws {
        let (values, requests) = try OptionValues.parse(arguments: [
            "--dev", "--check-config", "-h", "--version",
        ])
        #expect(requests == ["--check-config", "--help", "--version"])
        #expect(values["dev"]?.texts == ["true"])
    }

    @Test func `explains every option`() {
        for option in Option.all {
            #expect(Help.full.contains("--\(option.name)"))
            #expect(Help.full.contains(option.variable))
            #expect(!option.help.isEmpty)
        }
        #expect(Help.full.split(separator: "\n").allSatisfy { $0.count <= 110 })
    }

    @Test func `survives random files`() {
        var random = SeededGenerator(seed: 5)
        let pieces = [
            "http", "=", " ", "\n", "#", "\"", "dev", "true", ":80", "\r\n", "ice-server", "é", "\t",
            "stun:a:1", "'", "[", "]", ",", "workers", "4",
        ]
        for _ in 0..<5_000 {
            let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            _ = complaint(file: text.joined())
        }
    }
}
