import Crypto
import Wire

/// The commands of `sfu-bench`.
enum Command: String, CaseIterable, Sendable {
    case publish, play, load, churn, feed, sync, interact, network, restart, demo
    case joinStorm = "join-storm"

    /// Completes the sentence "Will …" in `--help`.
    var summary: String {
        switch self {
        case .publish:
            "publish synthetic video and audio to one or more streams (over WHIP, RTMP or SRT)"
        case .play: "play one or more streams with any number of viewers (over WHEP or HLS)"
        case .load: "publish and play at the same time, and measure the server"
        case .joinStorm: "have many viewers join at the same moment, while others already play"
        case .churn: "have viewers come and go at a steady rate"
        case .feed: "have viewers swipe through a story feed of many streams"
        case .demo: "run a few demo streams with a lively audience on a server started with --dev"
        case .network: "watch over one emulated bad network after another, and report what viewers see"
        case .restart: "restart the server, and time how publishers and viewers come back, as pages do"
        case .interact:
            "comment, tap, give and vote with a large audience, and count what each viewer receives"
        case .sync: "follow a Rostrum stream with many WebSockets, and time commands until all see them"
        }
    }

    /// Whether the command can publish; some do so only unless live streams are named.
    var publishes: Bool { ![.play, .sync, .interact, .demo].contains(self) }
    /// Whether its viewers play media.
    var plays: Bool { ![.publish, .sync, .interact, .demo].contains(self) }

    /// In the order of `--help`.
    static let listed: [Command] = [
        .publish, .play, .load, .joinStorm, .churn, .restart, .feed, .network, .sync, .interact, .demo,
    ]
}

/// The whole configuration of a run, as the command line gives it.
struct Options: Equatable, Sendable {
    var command: Command
    /// Of `publish` and `play`; nil for all other commands, which use WebRTC or none.
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

    /// The defaults of a command.
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
            // Each profile has a length of its own; the duration only limits it.
            timing.duration = 86_400
        }
        guard command == .feed else { return }
        target.streams = 8
        // Swipes are measured by content, so every packet of a viewer is decrypted.
        audience.decryptEvery = 1
    }
}

/// Where streams are published and played, and with which credentials.
struct TargetOptions: Equatable, Sendable {
    /// With several streams, their names are this one with `-1`, `-2` and so on.
    var stream = "bench"
    var streams = 1
    /// Names of live streams to swipe through, instead of publishing any.
    var liveStreams: [String] = []
    /// Where a feed session begins; `{stream}` is the one that the viewer starts with.
    var feed = "/v1/feed/sessions?stream={stream}"
    /// `{stream}` stands for the stream's name.
    var whip = "/whip/{stream}"
    var whep = "/whep/{stream}"
    var hls = "/hls/{stream}/index.m3u8"
    /// With the stream key; nil to use the address that the server gives encoders.
    var rtmp: String?
    /// With the stream ID; nil to use the address that the server gives encoders.
    var srt: String?
    /// For every request; takes precedence over a secret.
    var token: String?
    /// Names the key of the secret in tokens that are signed here.
    var keyID: String?
    var secret: String?
    var transport = ClientTransport.udp
    /// Allows targets that are not on this machine.
    var isOwned = false

    /// The names of all streams of the run.
    var streamNames: [String] {
        guard liveStreams.isEmpty else { return liveStreams }
        return streams == 1 ? [stream] : (1...max(streams, 1)).map { "\(stream)-\($0)" }
    }
}

/// What publishers send.
struct MediaOptions: Equatable, Sendable {
    /// Of the video's best layer, in bits a second; 0 for no video.
    var bitrate = 1_500_000
    var framesPerSecond = 30
    /// Simulcast layers; 1 for no simulcast.
    var layers = 1
    /// RIDs of the layers, the best one first.
    static let rids = ["f", "h", "q"]
    /// Seconds between key frames that are sent without a request; 0 for none, as in browsers.
    var keyFrameInterval = 0.0
    /// In bits a second; 0 for no audio.
    var audioBitrate = 48_000
    /// Milliseconds between the bursts in which a frame is sent; 0 to send it as a whole.
    var burstMilliseconds = 5
    /// An IVF or WebM file with VP8, repeated instead of synthetic video; the sound of a WebM file is used, too.
    var videoFile: String?
    /// An Ogg or WebM file with Opus, repeated instead of synthetic audio.
    var audioFile: String?
}

/// How viewers join, and how they treat what they receive.
struct AudienceOptions: Equatable, Sendable {
    /// Of each stream; in a feed, of all.
    var viewers = 0
    /// Joins a second.
    var joinRate = 100.0
    /// Viewers of each stream that are playing when a storm begins.
    var playing = 0
    /// Whether the viewers of a storm connect and leave, without media.
    var handshakesOnly = false
    /// One packet in this many is decrypted, to measure latency; in a feed, all packets of one viewer in this many.
    var decryptEvery = 20
    /// HLS viewers that decode pictures and read the marks in them.
    var decoders = 1
    /// HLS viewers load segments, not parts.
    var loadsWholeSegments = false
    /// Viewers send NACKs and PLIs.
    var asksForRepair = false
    /// Viewers send transport-wide feedback, by which the server measures the path.
    var tellsOfPackets = false
    /// Viewers receive runs of datagrams as one (UDP_GRO).
    var coalesces = false
    var srtp: SRTPChoice = .any
    /// The step by which viewers of each stream are added until a limit is exceeded; nil for no ramp.
    var ramp: Int?
    /// Viewers of each stream at which a ramp ends.
    var rampMaximum = 3_000
    var swiping = SwipingOptions()
}

/// How viewers move through a feed.
struct SwipingOptions: Equatable, Sendable {
    /// When a viewer's neighbour is loaded.
    enum Preload: String, CaseIterable, Sendable {
        /// As soon as a stream is in focus.
        case eager
        /// When a swipe begins.
        case onSwipe = "on-swipe"
    }

    var preload = Preload.eager
    /// Swipes a second of all viewers together; nil for one swipe of each viewer in two seconds.
    var rate: Double?
    /// Share of all swipes that jump to any stream, 0 to 1.
    var jumps = 0.1
    /// Share of the other swipes that turn back.
    var turns = 0.2
    /// Share of the swipes without a jump that are called off.
    var callsOff = 0.05
    /// The same seed gives the same moves.
    var seed: UInt64 = 1

    /// Nanoseconds between two swipes of one viewer, at most a day; 0 if viewers do not swipe.
    /// - Parameter viewers: who together make `rate` swipes a second.
    func interval(viewers: Int) -> Int64 {
        guard let rate else { return 2_000_000_000 }
        guard rate > 0 else { return 0 }
        return Int64(min(Double(max(viewers, 1)) / rate, 86_400) * 1e9)
    }
}

/// How many clients follow a stream, and which commands they see.
struct FollowingOptions: Equatable, Sendable {
    var clients = 1_000
    /// Clients among these that are read by a separate thread.
    ///
    /// Their times are not delayed by what the other clients cost this tool.
    var sample = 20
    /// Durable commands, one after the other.
    var commands = 100
    /// Seconds between the last change that a command caused and the next command; nil for `usualPause`.
    var pause: Double?
    /// Seconds for which all clients must stay connected after the commands.
    var hold = 0.0

    /// A little longer than a server may hold changes back, in seconds.
    ///
    /// Rostrum holds them for 50 µs for each follower. A shorter pause would measure commands together that it
    /// gathered.
    var usualPause: Double { clients > 200 ? max(0.1, Double(clients) * 50e-6) + 0.02 : 0.05 }
}

/// What the audience of `interact` does.
struct InteractingOptions: Equatable, Sendable {
    /// Taps a second of each viewer.
    var hearts = 2
    /// Seconds between two messages that report a viewer's taps; pages wait for half a second.
    var tapInterval = 0.5
    /// A second, of all viewers together, like gifts and votes.
    var comments = 20.0
    var gifts = 10.0
    var votes = 50.0
    /// Seconds without any activity before, from which the cost of a quiet stream is measured.
    var quiet = 5.0

    /// The most taps a second of one person that a server counts.
    static let mostHearts = 20
}

/// The SRTP profiles that clients offer.
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

/// Durations of a run, in seconds.
struct TimingOptions: Equatable, Sendable {
    /// Of the measurement.
    var duration = 10.0
    /// Between the last join and the start of the measurement.
    var warmUp = 3.0
    /// Limit for one client to get its first media.
    var connect = 15.0
}

/// How this tool uses the machine, and how it observes the server.
struct MachineOptions: Equatable, Sendable {
    /// Generator threads.
    var threads = 1
    /// CPUs that the threads are pinned to, in turn; empty for any.
    var cpus: [Int] = []
    /// Nil to look for the process that listens on the server's port.
    var serverPID: Int?
    /// Path or URL of the server's metrics; nil for `/metrics`.
    var metrics: String?
}

/// Where the report goes besides the terminal; paths are nil for none.
struct ReportOptions: Equatable, Sendable {
    /// A path, or `-` for standard output.
    var json: String?
    var html: String?
    /// No progress on standard error.
    var isQuiet = false
}
