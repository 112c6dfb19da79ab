import Testing

@testable import sfu_bench

/// What only all words of a command line together show.
@Suite struct `A command line as a whole` {
    private func complaint(_ line: String, environment: [String: String] = [:]) -> String {
        let words = line.split(separator: " ").map(String.init)
        do {
            _ = try CommandLineParser.parse(words, environment: environment)
            return "none"
        } catch {
            return error.description
        }
    }

    @Test(arguments: [
        ("load --ramp 1 --ramp-max 20000 --streams 3", "60000 viewers"),
        ("load --ramp 1 --streams 17", "51000 viewers"),
        ("join-storm --viewers 20000 --playing 20000 --streams 2", "80000 viewers"),
        ("churn --viewers 501 --streams 100", "50100 viewers"),
        ("restart --viewers 20000 --streams 3", "60000 viewers"),
        ("play --protocol hls --viewers 20000 --streams 3", "60000 viewers"),
    ])
    func `has no more viewers at any time than this tool can be`(line: String, words: String) {
        #expect(complaint(line).hasPrefix(words + " are too many"))
    }

    @Test(arguments: [
        // A ramp's end counts only where there is one, and instead of what it begins with.
        "load --ramp-max 20000 --streams 3", "load --viewers 20000 --ramp 1 --ramp-max 20000 --streams 2",
        "join-storm --viewers 20000 --playing 20000", "churn --viewers 500 --streams 100",
        // Viewers of a feed are those of all streams.
        "feed --viewers 20000 --streams 1000", "sync --clients 50000", "publish --streams 1000",
    ])
    func `has as many viewers as that`(line: String) {
        #expect(complaint(line) == "none")
    }

    @Test(arguments: [
        "load --whip http://127.0.0.1/{stream} http://example.org",
        "load --whep http://127.0.0.1/{stream} http://example.org",
        "load --whip http://example.org/{stream}", "network --no-publisher --whip http://example.org/x",
        "feed --feed http://127.0.0.1/{stream} http://example.org", "restart --ready http://192.0.2.1/readyz",
        "publish --protocol srt --srt srt://[2001:db8::1]:9710?streamid=x", "load http://[2001:db8::1]",
    ])
    func `is refused if any part of its load leads elsewhere`(line: String) {
        #expect(complaint(line).contains("is not this machine"))
        #expect(complaint(line + " --i-own-this-server") == "none")
    }

    @Test(arguments: [
        // Live streams are not published.
        "feed --streams a,b --whip http://example.org/x",
        "publish --protocol rtmp --rtmp rtmp://127.0.0.1/live/key http://example.org",
        "publish --protocol srt --srt srt://[::1]:9710?streamid=x http://example.org",
        "play --protocol hls --hls http://127.0.0.1:9/{stream}.m3u8 http://example.org",
        "publish --protocol srt --streams 2 --srt srt://127.0.0.1:9710?streamid={stream}",
        "publish --protocol rtmp --streams 2 --rtmp rtmp://127.0.0.1/live/{stream}",
    ])
    func `may name a server to which no load goes`(line: String) {
        #expect(complaint(line) == "none")
    }

    @Test(arguments: [
        ("interact --viewers 0", "interact needs an audience"), ("interact --viewers 19", "--comments needs"),
        ("interact --viewers 5 --comments 5.5", "--comments needs"),
        ("feed --bitrate 0", "a feed needs video"),
        ("feed --streams a,b --bitrate 0", "a feed needs video"),
        ("network --bitrate 0 --audio-bitrate 0", "nothing to publish"),
        ("publish --protocol srt --bitrate 0 --audio-bitrate 0", "nothing to publish"),
        ("load --layers 2 --file a.ivf", "--layers needs synthetic video"),
        ("network --file a.ivf", "--layers needs synthetic video"),
        ("load http://example.org --key-id a", "example.org is not this machine"),
        ("load --secret s --key-id", "--key-id needs a value: --key-id ID"),
    ])
    func `is refused where its parts do not fit together`(line: String, words: String) {
        #expect(complaint(line).hasPrefix(words), "\(complaint(line))")
    }

    @Test(arguments: [
        "interact --viewers 20", "interact --viewers 1 --comments 0", "load --bitrate 0",
        "load --audio-bitrate 0", "load --layers 1 --file a.ivf", "network --layers 1 --file a.ivf",
        "publish --protocol rtmp --audio-bitrate 0",
    ])
    func `is accepted where they just fit`(line: String) {
        #expect(complaint(line) == "none")
    }

    @Test func `has a key for the secret of its environment`() {
        #expect(complaint("load --key-id a", environment: ["SFU_BENCH_SECRET": "s"]) == "none")
        #expect(complaint("load --key-id a", environment: ["SFU_BENCH_TOKEN": "t"]).contains("--secret too"))
    }

    @Test(arguments: [
        ("load --view 3", "unknown option --view (did you mean --viewers?)"),
        ("load ---viewers 3", "unknown option ---viewers (did you mean --viewers?)"),
        ("load --viewers3=4", "unknown option --viewers3 (did you mean --viewers?)"),
        ("load --zzz", "unknown option --zzz"), ("load -", "unknown option -"),
        // Only what the command has is suggested.
        ("publish --viewer 3", "unknown option --viewer"),
        ("sync --client 3", "unknown option --client (did you mean --clients?)"),
    ])
    func `says which option may be meant`(line: String, words: String) {
        #expect(complaint(line) == words)
    }

    @Test func `asks for help anywhere but in the place of a value`() throws {
        let help = CommandLineParser.Outcome.help(HelpText.text(for: .load))
        for line in [
            ["load", "-h"], ["load", "--viewers", "3", "--help"], ["load", "a", "--help", "b", "c"],
        ] {
            let outcome = try CommandLineParser.parse(line)
            #expect(outcome == help, "\(line)")
        }
        for line in [["help"], ["-h", "load"], ["--help"]] {
            let outcome = try CommandLineParser.parse(line)
            #expect(outcome == .help(HelpText.overview), "\(line)")
        }
        #expect(complaint("load --viewers --help").hasPrefix("--viewers must be a whole number"))
        #expect(complaint("load --nonsense --help").hasPrefix("unknown option --nonsense"))
    }
}
