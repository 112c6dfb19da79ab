import Crypto
import Testing

@testable import sfu_bench

@Suite struct `An option of the bench` {
    private func parsed(_ words: [String], environment: [String: String] = [:]) throws -> Options {
        guard case .run(let options) = try CommandLineParser.parse(words, environment: environment) else {
            Issue.record("help instead of a run")
            return Options(.load)
        }
        return options
    }

    private func parsed(_ line: String) throws -> Options {
        try parsed(line.split(separator: " ").map(String.init))
    }

    private func complaint(_ words: [String], environment: [String: String] = [:]) -> String {
        do {
            _ = try CommandLineParser.parse(words, environment: environment)
            return "none"
        } catch {
            return error.description
        }
    }

    private func complaint(_ line: String) -> String {
        complaint(line.split(separator: " ").map(String.init))
    }

    /// The names of the options that a command line has.
    private static func names(in line: String) -> [String] {
        line.split(separator: " ").filter { $0.hasPrefix("--") }.map(String.init)
    }

    @Test func `does what it says, each of them`() throws {
        var tried: Set<String> = []
        func check(_ line: String, _ holds: (Options) -> Bool) throws {
            tried.formUnion(Self.names(in: line))
            let given = try parsed(line)
            let isGood = holds(given)
            #expect(isGood, "\(line)")
        }
        try check("load --stream talk") { $0.target.stream == "talk" }
        try check("load --streams 3") { $0.target.streams == 3 }
        try check("publish --whip /a/{stream}") { $0.target.whip == "/a/{stream}" }
        try check("play --whep /b/{stream}") { $0.target.whep == "/b/{stream}" }
        try check("feed --feed /c/{stream}") { $0.target.feed == "/c/{stream}" }
        try check("load --token abc") { $0.target.token == "abc" }
        try check("load --key-id main --secret s3") {
            $0.target.keyID == "main" && $0.target.secret == "s3"
        }
        try check("load --transport tcp") { $0.target.transport == .tcp }
        try check("load --transport turn") { $0.target.transport == .turn }
        try check("load --i-own-this-server") { $0.target.isOwned }
        try check("publish --protocol rtmp --rtmp rtmp://127.0.0.1/live/key") {
            $0.streamProtocol == .rtmp && $0.target.rtmp == "rtmp://127.0.0.1/live/key"
        }
        try check("publish --protocol srt --srt srt://127.0.0.1:9710?streamid=x") {
            $0.streamProtocol == .srt && $0.target.srt == "srt://127.0.0.1:9710?streamid=x"
        }
        try check("play --protocol hls --hls /d/{stream} --decoders 0 --whole-segments") {
            $0.target.hls == "/d/{stream}" && $0.audience.decoders == 0 && $0.audience.loadsWholeSegments
        }
        try check("load --bitrate 1.25M") { $0.media.bitrate == 1_250_000 }
        try check("load --fps 24") { $0.media.framesPerSecond == 24 }
        try check("load --layers 2") { $0.media.layers == 2 }
        try check("load --key-frame-every 2500ms") { $0.media.keyFrameInterval == 2.5 }
        try check("load --audio-bitrate 64k") { $0.media.audioBitrate == 64_000 }
        try check("load --burst 0") { $0.media.burstMilliseconds == 0 }
        try check("load --file a.ivf --audio-file b.ogg") {
            $0.media.videoFile == "a.ivf" && $0.media.audioFile == "b.ogg"
        }
        try check("load --viewers 7") { $0.audience.viewers == 7 }
        try check("load --join-rate 0.5") { $0.audience.joinRate == 0.5 }
        try check("join-storm --playing 9 --handshakes-only") {
            $0.audience.playing == 9 && $0.audience.handshakesOnly
        }
        try check("load --decrypt-every 1") { $0.audience.decryptEvery == 1 }
        try check("load --nack") { $0.audience.asksForRepair && !$0.audience.tellsOfPackets }
        try check("load --transport-cc") { $0.audience.tellsOfPackets && !$0.audience.asksForRepair }
        try check("load --gro") { $0.audience.coalesces }
        try check("load --srtp gcm256") { $0.audience.srtp.profiles == [.aeadAES256GCM] }
        try check("load --srtp cm") { $0.audience.srtp.profiles == [.aes128CMHMACSHA1_80] }
        try check("load --ramp 50 --ramp-max 500") {
            $0.audience.ramp == 50 && $0.audience.rampMaximum == 500
        }
        try check("network --profile lte,train,lte") {
            $0.network.profiles.map(\.name) == ["lte", "train", "lte"]
        }
        try check("network --reports-only") { $0.network.feedback == .reports }
        try check("network --no-publisher") { !$0.network.isPublishing }
        try check("feed --swipe-rate 12.5") { $0.audience.swiping.rate == 12.5 }
        try check("feed --preload on-swipe") { $0.audience.swiping.preload == .onSwipe }
        try check("feed --jumps 50") { $0.audience.swiping.jumps == 0.5 }
        try check("feed --turns 25") { $0.audience.swiping.turns == 0.25 }
        try check("feed --calls-off 100") { $0.audience.swiping.callsOff == 1 }
        try check("feed --seed 77") { $0.audience.swiping.seed == 77 }
        try check("sync --clients 5 --sample 2 --commands 0") {
            $0.following.clients == 5 && $0.following.sample == 2 && $0.following.commands == 0
        }
        try check("sync --pause 75ms --hold 1m") {
            $0.following.pause == 0.075 && $0.following.hold == 60
        }
        try check("interact --hearts 20 --tap-interval 2s") {
            $0.interacting.hearts == 20 && $0.interacting.tapInterval == 2
        }
        try check("interact --comments 1.5 --gifts 2.5 --votes 3.5 --quiet-time 0") {
            $0.interacting.comments == 1.5 && $0.interacting.gifts == 2.5 && $0.interacting.votes == 3.5
                && $0.interacting.quiet == 0
        }
        try check("restart --command true --ready /live") {
            $0.restart.command == "true" && $0.restart.ready == "/live"
        }
        try check("restart --restart-timeout 90 --return-timeout 1m") {
            $0.restart.within == 90 && $0.restart.comeBack == 60
        }
        try check("load --duration 20 --warm-up 0 --connect-timeout 2s") {
            $0.timing.duration == 20 && $0.timing.warmUp == 0 && $0.timing.connect == 2
        }
        try check("load --threads 4 --cpus 0-3 --server-pid 99 --metrics /m") {
            $0.machine.threads == 4 && $0.machine.cpus == [0, 1, 2, 3] && $0.machine.serverPID == 99
                && $0.machine.metrics == "/m"
        }
        try check("load --json - --html a.html --quiet") {
            $0.report.json == "-" && $0.report.html == "a.html" && $0.report.isQuiet
        }
        // A new option needs a line above.
        #expect(tried == Set(OptionDefinition.table.map(\.name)))
    }

    @Test(arguments: [
        ("load", "--viewers", "0", "20000", "20001"), ("load", "--streams", "1", "1000", "1001"),
        ("load", "--fps", "1", "120", "121"), ("load", "--layers", "1", "3", "4"),
        ("load", "--burst", "0", "100", "101"), ("load", "--join-rate", "0.1", "5000", "5000.1"),
        ("join-storm", "--playing", "0", "20000", "20001"),
        ("load", "--decrypt-every", "1", "10000", "10001"), ("load", "--ramp", "1", "10000", "10001"),
        ("load", "--ramp-max", "1", "20000", "20001"), ("load", "--threads", "1", "64", "65"),
        ("load", "--server-pid", "1", "4194304", "4194305"), ("load", "--duration", "1", "24h", "24.1h"),
        ("load", "--warm-up", "0", "10m", "601"), ("load", "--connect-timeout", "1000ms", "2m", "121s"),
        ("load", "--key-frame-every", "0", "600s", "601s"), ("load", "--bitrate", "20k", "50M", "50.1M"),
        ("load", "--audio-bitrate", "10k", "400k", "401k"),
        ("feed", "--seed", "0", "1000000000", "1000000001"),
        ("feed", "--swipe-rate", "0", "100000", "100001"), ("feed", "--jumps", "0", "100", "100.5"),
        ("sync", "--clients", "1", "50000", "50001"), ("sync", "--sample", "0", "1000", "1001"),
        ("sync", "--commands", "0", "100000", "100001"), ("sync", "--pause", "0", "1m", "61s"),
        ("sync", "--hold", "0", "24h", "25h"), ("interact", "--hearts", "0", "20", "21"),
        ("interact", "--tap-interval", "500ms", "2s", "2.1"), ("interact", "--gifts", "0", "1e5", "100001"),
        ("interact", "--quiet-time", "0", "10m", "11m"), ("restart", "--restart-timeout", "1", "1h", "61m"),
        ("restart", "--return-timeout", "1", "10m", "601"),
    ])
    func `takes its bounds themselves, and nothing beyond`(
        command: String, option: String, lowest: String, highest: String, beyond: String
    ) {
        // Few viewers, for the sum of all streams is bounded too.
        let crowd = option == "--streams" || option == "--playing" ? ["--viewers", "1"] : []
        #expect(complaint([command, option, lowest] + crowd) == "none")
        #expect(complaint([command, option, highest] + crowd) == "none")
        for wrong in [beyond, "-1"] {
            let words = complaint([command, "\(option)=\(wrong)"] + crowd)
            #expect(words.hasPrefix(option) && words.contains("not \"\(wrong)\""), "\(words)")
        }
    }

    @Test(arguments: [
        "load --viewers 1.5", "load --viewers 1e3", "load --viewers 0x10", "load --fps 99999999999999999999",
        "load --join-rate nan", "load --join-rate inf", "load --join-rate 1,5", "load --duration infs",
        "load --duration nan", "load --duration ms", "load --duration s", "load --duration 5M",
        "load --duration 5min", "load --duration 1h30m", "load --bitrate k", "load --bitrate M",
        "load --bitrate 1e400", "load --bitrate nank", "load --bitrate 1.5MB", "load --bitrate 19999",
        "load --bitrate -1k", "load --cpus a", "load --cpus -1", "load --cpus 1-", "load --cpus 1-2-3",
        "load --cpus 1,,2", "load --cpus 0,1024", "load --cpus 1.5", "feed --jumps nan", "feed --seed -1",
        "load --transport sctp", "load --transport UDP", "feed --preload never", "load --srtp GCM",
        "network --profile dsl", "network --profile ,", "network --profile LTE", "play --protocol HLS",
        "sync --html a.html", "demo --json a.json", "demo --warm-up 1", "load -viewers 3", "load - 3",
        "load -- 3", "load --=3", "load --quiet=", "load --i-own-this-server=no",
        "load http://", "load http:///x", "load http://[::1",
    ])
    func `refuses nonsense`(line: String) {
        #expect(complaint(line) != "none")
    }

    @Test func `may be empty only where that means something`() {
        for option in [
            "--token", "--key-id", "--secret", "--json", "--html", "--file", "--audio-file", "--metrics",
        ] {
            let words = complaint(["load", "\(option)="])
            #expect(words == "\(option) is empty; give a value, or leave it out")
            #expect(complaint(["load", option, ""]) == words)
        }
        #expect(complaint(["publish", "--protocol", "rtmp", "--rtmp="]).hasPrefix("--rtmp is empty"))
        #expect(complaint(["publish", "--protocol", "srt", "--srt="]).hasPrefix("--srt is empty"))
        for option in ["--stream", "--viewers", "--duration", "--bitrate", "--cpus", "--streams", "--srtp"] {
            #expect(complaint(["load", "\(option)="]).hasPrefix(option))
        }
    }

    @Test func `is not overridden by an empty variable of the environment`() throws {
        for name in ["SFU_BENCH_TOKEN", "SFU_BENCH_SECRET"] {
            let words = complaint(["load"], environment: [name: ""])
            #expect(words == "\(name) is empty; set a value, or unset it")
            guard case .help = try CommandLineParser.parse(["load", "-h"], environment: [name: ""]) else {
                Issue.record("no help with an empty \(name)")
                continue
            }
        }
        let given = try parsed(["load", "--token", "t"], environment: ["SFU_BENCH_TOKEN": ""])
        #expect(given.target.token == "t")
    }

    @Test func `counts in its last value`() throws {
        #expect(try parsed("load --viewers 3 --viewers=4").audience.viewers == 4)
        #expect(try parsed("feed --streams a,b --streams 3").target.streamNames.count == 3)
        #expect(try parsed("feed --streams 3 --streams a,b").target.streamNames == ["a", "b"])
        #expect(try parsed("network --profile lte --profile train").network.profiles.map(\.name) == ["train"])
    }

    @Test func `may have an equals sign, a blank or leading dashes in its value`() throws {
        #expect(try parsed(["load", "--token=a=b="]).target.token == "a=b=")
        #expect(try parsed(["load", "--token", "--viewers"]).target.token == "--viewers")
        #expect(try parsed(["restart", "--command", "a b=c"]).restart.command == "a b=c")
        #expect(complaint(["load", "--token"]) == "--token needs a value: --token TOKEN")
    }

    @Test func `names all networks, each of them, and no more than a hundred`() throws {
        let known = NetworkProfile.all.map(\.name)
        #expect(try parsed("network --profile all").network.profiles.map(\.name) == known)
        let each = try parsed("network --profile " + known.joined(separator: ",")).network.profiles
        #expect(each.map(\.name) == known)
        // One wrong name behind as many right ones as there are.
        let longer = "network --profile " + (known + ["nonsense"]).joined(separator: ",")
        #expect(complaint(longer).contains("not \"nonsense\""))
        func many(_ count: Int) -> String { repeatElement("lte", count: count).joined(separator: ",") }
        #expect(try parsed("network --profile " + many(100)).network.profiles.count == 100)
        #expect(complaint("network --profile " + many(101)).contains("at most 100 names, not 101"))
    }

    /// Load on somebody else's server must be impossible by accident.
    @Test(arguments: [
        "load http://127.0.0.1@example.org", "load http://localhost.example.org", "load http://0.0.0.0:8080",
        "load http://2130706433", "load https://127.0.0.1.example.org", "load --whep //example.org/x",
        "load --whip http://127.0.0.1@example.org/x", "feed --feed //example.org/{stream}",
        "feed --whip http://example.org/x", "interact http://example.org", "network http://example.org",
        "publish --protocol rtmp http://example.org", "play --protocol hls http://example.org",
        "publish --protocol srt http://example.org",
    ])
    func `does not lead to another machine, however it is written`(line: String) {
        #expect(complaint(line).contains("is not this machine"))
    }

    @Test func `may name streams of a feed, which go into URLs`() throws {
        let longest = String(repeating: "x", count: 64)
        #expect(try parsed("feed --streams \(longest),a-_9").target.streamNames == [longest, "a-_9"])
        for wrong in ["\(longest)y,a", "a,ä", "a,b.c", "a,b%2F", "a,\u{661}", ",,", "a,", "a,b,a"] {
            #expect(complaint(["feed", "--streams", wrong]).hasPrefix("--streams must be"), "\(wrong)")
        }
        let many = (1...1_000).map { "s\($0)" }.joined(separator: ",")
        #expect(try OptionValue.names(many, "--streams").count == 1_000)
        #expect(throws: UsageError.self) { try OptionValue.names(many + ",t", "--streams") }
    }

    @Test func `counts the name of a stream in bytes`() throws {
        #expect(try parsed("load --stream " + String(repeating: "x", count: 64)).target.stream.count == 64)
        let wrong = complaint("load --stream " + String(repeating: "ä", count: 33))
        #expect(wrong.hasPrefix("--stream must be"))
    }
}

@Suite struct `The rate of swipes` {
    private func interval(_ rate: Double?, viewers: Int) -> Int64 {
        var swiping = SwipingOptions()
        swiping.rate = rate
        return swiping.interval(viewers: viewers)
    }

    @Test func `is shared by all viewers`() {
        #expect(interval(10, viewers: 20) == 2_000_000_000)
        #expect(interval(20, viewers: 20) == 1_000_000_000)
        #expect(interval(0.5, viewers: 3) == 6_000_000_000)
    }

    @Test func `is one in two seconds for each viewer if none is given, and may be none`() {
        #expect(interval(nil, viewers: 1) == 2_000_000_000)
        #expect(interval(nil, viewers: 500) == 2_000_000_000)
        #expect(interval(0, viewers: 500) == 0)
        #expect(interval(10, viewers: 0) == 100_000_000)
    }

    @Test(arguments: [1e-5, 1e-12, 1e-300, Double.leastNonzeroMagnitude])
    func `may be as low as one likes`(rate: Double) {
        #expect(interval(rate, viewers: 20_000) == 86_400_000_000_000)
    }

    @Test func `is never so high that viewers do not swipe at all`() {
        #expect(interval(100_000, viewers: 1) == 10_000)
    }
}

@Suite struct `The pause between commands` {
    @Test func `is longer than a server may gather changes`() {
        var following = FollowingOptions()
        following.clients = 200
        #expect(following.usualPause == 0.05)
        following.clients = 201
        #expect(abs(following.usualPause - 0.12) < 1e-9)
        following.clients = 10_000
        #expect(abs(following.usualPause - 0.52) < 1e-9)
    }
}
