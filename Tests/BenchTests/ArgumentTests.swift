import Base
import Foundation
import Net
import Restream
import Testing

@testable import sfu_bench

@Suite struct `The command line` {
    private func options(_ line: String, environment: [String: String] = [:]) throws -> Options {
        let words = line.split(separator: " ").map(String.init)
        guard case .run(let options) = try CommandLineParser.parse(words, environment: environment) else {
            Issue.record("help instead of a run")
            return Options(.load)
        }
        return options
    }

    private func complaint(_ line: String) -> String {
        let words = line.split(separator: " ").map(String.init)
        do {
            _ = try CommandLineParser.parse(words)
            return "none"
        } catch {
            return error.description
        }
    }

    @Test func `has a default for everything but the command`() throws {
        let load = try options("load")
        #expect(load.audience.viewers == 100)
        #expect(load.server.url.absoluteString == "http://127.0.0.1:8080")
        #expect(load.media.bitrate == 1_500_000)
        #expect(try options("join-storm").audience.handshakesOnly == false)
        #expect(try options("join-storm --handshakes-only").audience.handshakesOnly)
        #expect(try options("join-storm").audience.viewers == 300)
        #expect(try options("play").audience.viewers == 1)
    }

    @Test func `lets viewers of a restarted server wait for publishers, as pages do`() throws {
        let restart = try options("restart --command=true --streams 20 --viewers 25 --return-timeout 5s")
        #expect(restart.target.whep == "/whep/{stream}?wait=60" && restart.restart.ready == "/readyz")
        #expect(restart.restart.command == "true" && restart.restart.comeBack == 5)
        #expect(restart.audience.viewers == 25 && restart.target.streamNames.count == 20)
        #expect(try options("restart").restart.command == nil)
    }

    @Test func `takes values behind a blank or an equals sign`() throws {
        let spaced = try options("load http://127.0.0.1:9000 --viewers 300 --bitrate 2.5M --duration 2m")
        let joined = try options("load 127.0.0.1:9000 --viewers=300 --bitrate=2500k --duration=120s")
        #expect(spaced == joined)
        #expect(spaced.media.bitrate == 2_500_000)
        #expect(spaced.timing.duration == 120)
    }

    @Test func `takes times in any unit`() throws {
        #expect(try options("load --warm-up 500ms").timing.warmUp == 0.5)
        #expect(try options("load --warm-up 1.5").timing.warmUp == 1.5)
        #expect(try options("load --duration 1h").timing.duration == 3_600)
    }

    @Test func `takes lists of CPUs`() throws {
        #expect(try options("load --cpus 1").machine.cpus == [1])
        #expect(try options("load --cpus 0,2-4").machine.cpus == [0, 2, 3, 4])
        #expect(complaint("load --cpus 3-1").contains("CPU numbers"))
    }

    @Test(arguments: [
        ("", "no command given"), ("flood", "unknown command"), ("load --viewers", "needs a value"),
        ("load --viewers many", "whole number"), ("load --viewers -1", "from 0 to 20000"),
        ("load --viewers 999999", "from 0 to 20000"), ("load --veiwers 3", "unknown option --veiwers"),
        ("load --viewer 3", "did you mean --viewers?"), ("load a b", "more than one server"),
        ("load --gro=yes", "takes no value"), ("publish --viewers 3", "does not apply to publish"),
        ("sync --viewers 3", "does not apply to sync"), ("load --clients 3", "does not apply to load"),
        ("sync --clients 0", "from 1 to"), ("play --bitrate 1M", "does not apply to play"),
        ("load ftp://127.0.0.1", "is not a server"),
        ("load --bitrate 10", "from 20000 to"), ("load --duration 10x", "a duration such as"),
        ("load --duration 9999h", "from 1 s to 86400 s"), ("load --key-id dev", "needs --secret"),
        ("load --srtp rot13", "gcm256"), ("load --bitrate 0 --audio-bitrate 0", "nothing to publish"),
        ("load --streams 1000 --viewers 1000", "50000"), ("load --decrypt-every 0", "from 1 to"),
        ("play --protocol rtmp", "must be whep or hls"), ("publish --protocol hls", "must be whip or rtmp"),
        ("load --protocol hls", "does not apply to load"),
        ("play --hls /x", "does not apply to --protocol whep"),
        ("play --nack --protocol hls", "does not apply to --protocol hls"),
        ("publish --protocol rtmp --layers=3", "does not apply to --protocol rtmp"),
        ("publish --protocol rtmp --rtmp http://127.0.0.1/live/key", "is not an RTMP URL"),
        ("publish --protocol rtmp --rtmp rtmp://127.0.0.1/live/key --streams 2", "{stream}"),
        ("publish --protocol rtmp --bitrate 0", "--bitrate must not be 0"),
        ("publish --protocol srt --rtmp rtmp://127.0.0.1/live/key", "does not apply to --protocol srt"),
        ("publish --protocol srt --srt srt://127.0.0.1:9710", "is not an SRT URL"),
        ("publish --protocol srt --srt srt://127.0.0.1?streamid=x", "is not an SRT URL"),
        ("publish --protocol srt --srt srt://127.0.0.1:9710?streamid=x --streams 2", "{stream}"),
        ("publish --protocol srt --srt srt://127.0.0.1:9710?streamid=x&latency=9", "from 20 to 8000"),
        ("publish --protocol srt --srt srt://127.0.0.1:9710?streamid=x&passphrase=short", "10 to 79"),
        ("publish --protocol srt --bitrate 0", "--bitrate must not be 0"),
        ("play --protocol hls http://127.0.0.1/a.m3u8 --streams 2", "one playlist is one stream"),
        ("load --command true", "does not apply to load"), ("restart --command=", "must be a command"),
        ("restart --restart-timeout 0", "from 1 s to"), ("restart --return-timeout 1h", "to 600 s"),
        ("restart --protocol whip", "does not apply to restart"),
        ("restart --ramp 3", "does not apply to restart"),
    ])
    func `says what is wrong`(line: String, words: String) {
        #expect(complaint(line).contains(words))
    }

    @Test(arguments: [
        "load http://192.0.2.1:80", "load http://example.org", "sync http://192.0.2.1",
        "load --whep http://example.org/x", "play --protocol hls http://example.org/x.m3u8",
        "play --protocol hls --hls http://example.org/{stream}.m3u8",
        "publish --protocol rtmp --rtmp rtmp://example.org/live/key",
        "publish --protocol srt --srt srt://example.org:9710?streamid=x",
        "restart --ready http://example.org/ready",
    ])
    func `refuses targets on other machines unless told they are one's own`(line: String) throws {
        #expect(complaint(line).contains("--i-own-this-server"))
        #expect(try options(line + " --i-own-this-server").target.isOwned)
    }

    @Test(arguments: ["127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "127.9.9.9:1"])
    func `knows loopback by all its names`(server: String) throws {
        #expect(try options("load " + server).server.isLoopback)
    }

    @Test func `keeps secrets out of the list of processes`() throws {
        let environment = ["SFU_BENCH_TOKEN": "t", "SFU_BENCH_SECRET": "s"]
        #expect(try options("load", environment: environment).target.token == "t")
        #expect(try options("load --secret x", environment: environment).target.secret == "x")
    }

    @Test func `makes endpoints out of paths and URLs`() throws {
        let server = try ServerAddress(parsing: "http://127.0.0.1:8889")
        #expect(
            try server.endpoint("/whep/{stream}", stream: "a").absoluteString
                == "http://127.0.0.1:8889/whep/a")
        #expect(
            try server.endpoint("http://localhost:1/{stream}/whep", stream: "b").absoluteString
                == "http://localhost:1/b/whep")
    }

    @Test func `takes a playlist for what it is`() throws {
        let playlist = try options("play --protocol hls http://127.0.0.1:8889/s/index.m3u8?t=1")
        #expect(try playlist.playlistURL(of: "s").absoluteString == "http://127.0.0.1:8889/s/index.m3u8?t=1")
        let server = try options("play http://127.0.0.1:8889 --protocol hls")
        #expect(try server.playlistURL(of: "s").absoluteString == "http://127.0.0.1:8889/hls/s/index.m3u8")
    }

    @Test func `takes an address as encoders have it apart`() throws {
        let destination = try RTMPDestination(parsing: "rtmp://127.0.0.1:19350/live/talk?token=a/b.c")
        #expect(destination.address.description == "rtmp://127.0.0.1:19350/live")
        #expect(destination.key.exposed == "talk?token=a/b.c")
    }

    /// Output of the tool gets into logs and reports.
    @Test(arguments: [
        "rtmp://h/live/s3cret/", "rtmp://h/s3cret", "rtmp://u:s3cret@h/live/x", "rtmp:s3cret",
        "h/live/s3cret", "rtmp://h:0/live/s3cret", "rtmp://h/live/s3cret key", "s3cret",
        "srt://h:9710?streamid=s3cret&mode=listener", "srt://h?streamid=s3cret",
        "srt://h:1?passphrase=s3cret",
        "srt://h:1?streamid=x&passphrase=s3cret", "srt://h:1?streamid=s3cret&latency=s3cret",
    ])
    func `repeats nothing of an address of encoders in a complaint`(text: String) {
        func parse() throws {
            if text.hasPrefix("srt") {
                _ = try SRTDestination(parsing: text)
            } else {
                _ = try RTMPDestination(parsing: text)
            }
        }
        let error = #expect(throws: UsageError.self) { try parse() }
        let complaint = error.map { "\($0)" } ?? "s3cret"
        #expect(!complaint.contains("s3cret"), "\(complaint)")
    }

    @Test func `takes an address of SRT with all that it says`() throws {
        let destination = try SRTDestination(
            parsing: "srt://[::1]:9710?streamid=%23!::r%3Dtalk,m%3Dpublish,s%3Da.b&latency=120&mode=caller")
        #expect(destination.host == "::1" && destination.port == 9_710)
        #expect(destination.streamID.exposed == "#!::r=talk,m=publish,s=a.b")
        #expect(destination.settings.latency == 120 && destination.settings.passphrase == nil)
        let plain = try SRTDestination(parsing: "srt://h:1?streamid=publish:s:k&passphrase=0123456789")
        #expect(plain.settings.passphrase?.exposed == "0123456789" && plain.settings.latency == 200)
    }

    /// The server's answer decides where an encoder goes, and a server on loopback may be a tunnel.
    @Test func `goes where an answer says only on this machine, or if the user owns the server`() throws {
        let own = [try #require(IPAddress("192.0.2.7"))]
        for host in ["127.0.0.1", "[::1]", "localhost", "192.0.2.7"] {
            try ServerAddress.checkNamed(host, isOwned: false, own: own)
        }
        for host in ["192.0.2.8", "live.example.org", ""] {
            #expect(throws: RunFailure.self) {
                try ServerAddress.checkNamed(host, isOwned: false, own: own)
            }
            try ServerAddress.checkNamed(host, isOwned: true, own: own)
        }
    }

    @Test func `numbers streams only if there are several`() throws {
        #expect(try options("load --stream s").target.streamNames == ["s"])
        #expect(try options("load --stream s --streams 3").target.streamNames == ["s-1", "s-2", "s-3"])
    }

    @Test(arguments: Command.allCases)
    func `explains every option of every command`(command: Command) throws {
        guard case .help(let text) = try CommandLineParser.parse([command.rawValue, "--help"]) else {
            Issue.record("no help for \(command.rawValue)")
            return
        }
        // By whole names: one may begin with another.
        let names = text.split(separator: "\n").filter { $0.hasPrefix("  --") }
            .compactMap { $0.split(separator: " ").first.map(String.init) }
        for option in OptionDefinition.table {
            #expect(names.contains(option.name) == option.commands.contains(command), "\(option.name)")
        }
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }
}
