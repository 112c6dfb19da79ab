import Crypto
import Wire

/// What `sfu-bench` is asked to do.
enum Command: String, CaseIterable, Sendable {
    case publish, play, load, churn, feed, sync, interact, network, restart, demo
    case joinStorm = "join-storm"

    var summary: String {
        switch self {
        case .publish:
            "publish synthetic video and audio to one or many streams (WHIP, or a film by RTMP or SRT)"
        case .play: "play one or many streams with any number of viewers (WHEP, HLS)"
        case .load: "publish and play at once, and measure what the server does with it"
        case .joinStorm: "let many viewers join at the same moment, while others already play"
        case .churn: "let viewers come and go at a steady rate"
        case .feed: "let viewers swipe through a story feed of many streams"
        case .demo: "keep a few streams with a lively audience on a server with --dev, for a first look"
        case .network: "watch over one impaired network after another, in user space, and tell what is seen"
        case .restart: "restart the server, and time how publishers and viewers come back as pages do"
        case .interact: "comment, tap, give and vote with a large audience, and count what each of them hears"
        case .sync: "follow one of Rostrum's streams with many WebSockets, and time what is commanded"
        }
    }

    var publishes: Bool { ![.play, .sync, .interact, .demo].contains(self) }
    var plays: Bool { ![.publish, .sync, .interact, .demo].contains(self) }

    /// The order of `--help`.
    static let listed: [Command] = [
        .publish, .play, .load, .joinStorm, .churn, .restart, .feed, .network, .sync, .interact, .demo,
    ]
}

/// All that the command line says of one run.
struct Options: Equatable, Sendable {
    var command: Command
    /// Of `publish` and `play`.
    var streamProtocol: StreamProtocol?
    var server = ServerAddress.standard
    var target = TargetOptions()
    var media = MediaOptions()
    var audience = AudienceOptions()
    var timing = TimingOptions()
    var machine = MachineOptions()
    var report = ReportOptions()
    var following = FollowingOptions()
    var interacting = InteractingOptions()
    var network = NetworkOptions()
    var restart = RestartOptions()

    init(_ command: Command) {
        self.command = command
        streamProtocol = StreamProtocol.of(command).first
        audience.viewers =
            switch command {
            case .publish, .sync, .demo: 0
            case .play, .network: 1
            case .load, .churn, .restart: 100
            case .joinStorm: 300
            case .feed: 20
            case .interact: 1_000
            }
        if command == .restart { target.whep = RestartOptions.whep }
        if command == .demo { timing.duration = 86_400 }
        if command == .network {
            media.layers = MediaOptions.rids.count
            media.bitrate = 2_000_000
            timing.duration = 86_400
        }
        guard command == .feed else { return }
        target.streams = 8
        audience.decryptEvery = 1
    }
}

/// Where streams are published and played, and with what right.
struct TargetOptions: Equatable, Sendable {
    /// With several streams, `-1`, `-2` … follow.
    var stream = "bench"
    var streams = 1
    /// Streams that are live already, for a feed.
    var liveStreams: [String] = []
    /// Where a session of the feed begins; `{stream}` is where the viewer starts.
    var feed = "/v1/feed/sessions?stream={stream}"
    /// `{stream}` stands for the stream's name.
    var whip = "/whip/{stream}"
    var whep = "/whep/{stream}"
    var hls = "/hls/{stream}/index.m3u8"
    /// With the key; nil for what the server tells encoders.
    var rtmp: String?
    /// With the stream ID; nil for what the server tells encoders.
    var srt: String?
    var token: String?
    var keyID: String?
    var secret: String?
    var transport = ClientTransport.udp
    /// Allows targets that are not this machine.
    var isOwned = false

    /// The names of all streams.
    var streamNames: [String] {
        guard liveStreams.isEmpty else { return liveStreams }
        return streams == 1 ? [stream] : (1...max(streams, 1)).map { "\(stream)-\($0)" }
    }
}

/// What publishers send.
struct MediaOptions: Equatable, Sendable {
    /// Of video, in bits a second, of its best layer; 0 for none.
    var bitrate = 1_500_000
    var framesPerSecond = 30
    /// Of simulcast.
    var layers = 1
    /// Names of the layers, the best one first.
    static let rids = ["f", "h", "q"]
    /// Seconds between key frames that nobody asked for; 0 for none, as browsers do.
    var keyFrameInterval = 0.0
    /// In bits a second; 0 for none.
    var audioBitrate = 48_000
    /// Milliseconds between the bursts in which a frame leaves.
    var burstMilliseconds = 5
    /// An IVF or WebM file with VP8, played in a loop instead of synthetic video; WebM brings its sound along.
    var videoFile: String?
    /// An Ogg or WebM file with Opus, played in a loop instead of synthetic audio.
    var audioFile: String?
}

/// How viewers come, and what they do with what they get.
struct AudienceOptions: Equatable, Sendable {
    /// Of each stream.
    var viewers = 0
    /// Joins a second.
    var joinRate = 100.0
    /// Viewers that play before the storm begins, of each stream.
    var playing = 0
    /// Those who join in a storm connect, and leave without media.
    var handshakesOnly = false
    /// One packet in so many is decrypted.
    var decryptEvery = 20
    /// Viewers by HLS who look at the pictures.
    var decoders = 1
    var loadsWholeSegments = false
    var asksForRepair = false
    /// Tells of each packet when it came, so that the server knows what the path takes.
    var tellsOfPackets = false
    /// Lets the kernel hand over runs of datagrams as one (UDP_GRO).
    var coalesces = false
    var srtp: SRTPChoice = .any
    /// Raise viewers until the limits are passed; the step, in viewers of each stream.
    var ramp: Int?
    var rampMaximum = 3_000
    var swiping = SwipingOptions()
}

/// How viewers move through a feed.
struct SwipingOptions: Equatable, Sendable {
    enum Preload: String, CaseIterable, Sendable {
        case eager
        case onSwipe = "on-swipe"
    }

    var preload = Preload.eager
    /// A second, of all viewers together; nil for one of each viewer in two seconds.
    var rate: Double?
    /// Of all swipes, those that go anywhere, 0 to 1.
    var jumps = 0.1
    /// Of the others, those that turn back.
    var turns = 0.2
    /// Of the others, those that are called off.
    var callsOff = 0.05
    var seed: UInt64 = 1
}

/// How many follow a stream, and what is commanded meanwhile.
struct FollowingOptions: Equatable, Sendable {
    var clients = 1_000
    /// Of them, those that a thread of their own reads.
    var sample = 20
    var commands = 100
    /// Between one command's last change and the next command, in seconds; nil for `usualPause`.
    var pause: Double?
    /// How long all must stay connected after the commands, in seconds.
    var hold = 0.0

    /// As long as a server may gather changes for so many, and a little more; in seconds.
    var usualPause: Double { clients > 200 ? max(0.1, Double(clients) * 50e-6) + 0.02 : 0.05 }
}

/// What an audience does.
struct InteractingOptions: Equatable, Sendable {
    /// What each viewer taps in a second.
    var hearts = 2
    /// Between two messages in which a viewer tells what they tapped, in seconds; pages wait for half a second.
    var tapInterval = 0.5
    /// A second, of all viewers together.
    var comments = 20.0
    var gifts = 10.0
    var votes = 50.0
    /// How long nobody does anything before, in seconds.
    var quiet = 5.0

    /// Taps a second that a server counts of one person.
    static let mostHearts = 20
}

/// Which SRTP profiles clients offer.
enum SRTPChoice: String, CaseIterable, Sendable {
    case any, gcm, gcm256, cm

    var profiles: [SRTPProfile] {
        switch self {
        case .any: SRTPProfile.preference
        case .gcm: [.aeadAES128GCM]
        case .gcm256: [.aeadAES256GCM]
        case .cm: [.aes128CMHMACSHA1_80]
        }
    }
}

/// In seconds.
struct TimingOptions: Equatable, Sendable {
    /// How long to measure.
    var duration = 10.0
    /// Between the last join and the beginning of the measurement.
    var warmUp = 3.0
    /// For one viewer or publisher to connect.
    var connect = 15.0
}

struct MachineOptions: Equatable, Sendable {
    var threads = 1
    /// CPUs that the threads are pinned to, in turn.
    var cpus: [Int] = []
    var serverPID: Int?
    /// Where the server tells its numbers; nil for `/metrics`.
    var metrics: String?
}

struct ReportOptions: Equatable, Sendable {
    /// `-` for standard output.
    var json: String?
    var html: String?
    var isQuiet = false
}
