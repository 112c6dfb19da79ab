import Wire

/// One option of the command line: its name, its description in `--help`, and its effect.
struct OptionDefinition: Sendable {
    /// Sections of `--help`, in this order.
    enum Group: String, CaseIterable, Sendable {
        case target = "Target"
        case media = "Media to publish"
        case audience = "Viewers"
        case restart = "Restart"
        case timing = "Timing"
        case machine = "Machine"
        case report = "Report"
    }

    /// With its leading dashes.
    let name: String
    /// What stands for the value in `--help`; nil for a switch, which has no value.
    let placeholder: String?
    let help: String
    let group: Group
    /// The commands that accept the option.
    let commands: Set<Command>
    /// Puts the value, which is empty for a switch, into the options; throws if it is not valid.
    let apply: @Sendable (inout Options, String) throws(UsageError) -> Void

    init(
        _ name: String, _ placeholder: String?, _ group: Group, for commands: Set<Command> = measuring,
        _ help: String, _ apply: @escaping @Sendable (inout Options, String) throws(UsageError) -> Void
    ) {
        self.name = name
        self.placeholder = placeholder
        self.group = group
        self.commands = commands
        self.help = help
        self.apply = apply
    }

    static let all = Set(Command.allCases)
    static let publishing = all.filter(\.publishes)
    static let playing = all.filter(\.plays)
    /// Commands that end with a report.
    static let measuring = all.subtracting([.demo])
    /// Commands with media.
    static let media = measuring.subtracting([.sync, .interact])
    /// Commands with an audience of any size.
    static let crowds = playing.subtracting([.network])
}

extension OptionDefinition {
    /// All options, in the order of `--help`.
    static let table =
        targetOptions + protocolOptions + mediaOptions + audienceOptions + networkOptions + swipingOptions
        + followingOptions
        + interactingOptions + restartOptions + timingOptions + machineOptions + reportOptions

    private static let targetOptions = [
        OptionDefinition("--stream", "NAME", .target, "name of the stream (default bench)") {
            options, text throws(UsageError) in
            guard !text.isEmpty, text.utf8.count <= 64 else {
                throw UsageError("--stream must be a name of 1 to 64 bytes")
            }
            options.target.stream = text
        },
        OptionDefinition(
            "--streams", "N", .target, for: media.subtracting([.network]),
            "number of streams, NAME-1 to NAME-N (default 1, feed 8); for feed, also names of live ones: a,b,c"
        ) { options, text throws(UsageError) in
            if options.command == .feed, text.contains(",") {
                options.target.liveStreams = try OptionValue.names(text, "--streams")
                return
            }
            options.target.streams = try OptionValue.count(text, "--streams", 1...1_000)
            // The last one counts, as with all options.
            options.target.liveStreams = []
        },
        OptionDefinition(
            "--whip", "PATH", .target, for: publishing,
            "WHIP endpoint, a path or URL; {stream} is the stream's name (default /whip/{stream})"
        ) { options, text in options.target.whip = text },
        OptionDefinition(
            "--whep", "PATH", .target, for: playing.subtracting([.feed]),
            "WHEP endpoint (default /whep/{stream}; restart \(RestartOptions.whep), as pages do)"
        ) { options, text in options.target.whep = text },
        OptionDefinition(
            "--feed", "PATH", .target, for: [.feed],
            "endpoint where viewers enter the feed (default /v1/feed/sessions?stream={stream})"
        ) { options, text in options.target.feed = text },
        OptionDefinition(
            "--token", "TOKEN", .target,
            "bearer token for every request (or SFU_BENCH_TOKEN); with neither a token nor a secret, tokens come "
                + "from a server started with --dev"
        ) { options, text throws(UsageError) in
            options.target.token = try OptionValue.text(text, "--token")
        },
        // Rostrum with `--dev` has a key of this name.
        OptionDefinition("--key-id", "ID", .target, "name of the key to sign tokens with (default dev)") {
            options, text throws(UsageError) in
            options.target.keyID = try OptionValue.text(text, "--key-id")
        },
        OptionDefinition(
            "--secret", "SECRET", .target, "secret to sign tokens with (or SFU_BENCH_SECRET)"
        ) { options, text throws(UsageError) in
            options.target.secret = try OptionValue.text(text, "--secret")
        },
        OptionDefinition(
            "--transport", "NAME", .target, for: media,
            "transport: udp, tcp (ICE-TCP, RFC 6544), or turn, the server's own relay over UDP (default udp)"
        ) { options, text throws(UsageError) in
            guard let transport = ClientTransport(rawValue: text) else {
                throw UsageError("--transport must be udp, tcp or turn, not \"\(text)\"")
            }
            options.target.transport = transport
        },
        OptionDefinition(
            "--i-own-this-server", nil, .target, "allow a server that is not on this machine"
        ) { options, _ in options.target.isOwned = true },
    ]

    private static let mediaOptions = [
        OptionDefinition(
            "--bitrate", "BITS", .media, for: publishing,
            "video bit rate in bit/s, such as 1500k; 0 for no video (default 1500k, network 2M)"
        ) { options, text throws(UsageError) in
            options.media.bitrate = try OptionValue.bitrate(text, "--bitrate", 20_000...50_000_000)
        },
        OptionDefinition("--fps", "N", .media, for: publishing, "frames per second (default 30)") {
            options, text throws(UsageError) in
            options.media.framesPerSecond = try OptionValue.count(text, "--fps", 1...120)
        },
        OptionDefinition(
            "--layers", "N", .media, for: publishing,
            "simulcast layers of synthetic video, each half the size of the one before (default 1, network 3)"
        ) { options, text throws(UsageError) in
            options.media.layers = try OptionValue.count(text, "--layers", 1...MediaOptions.rids.count)
        },
        OptionDefinition(
            "--key-frame-every", "TIME", .media, for: publishing,
            "interval of extra key frames; 0 for those on request only, or every 2 s over RTMP and SRT (default 0)"
        ) { options, text throws(UsageError) in
            options.media.keyFrameInterval = try OptionValue.seconds(text, "--key-frame-every", 0...600)
        },
        OptionDefinition(
            "--audio-bitrate", "BITS", .media, for: publishing,
            "audio bit rate in bit/s, as Opus, or AAC over RTMP and SRT; 0 for no audio (default 48k)"
        ) { options, text throws(UsageError) in
            options.media.audioBitrate = try OptionValue.bitrate(text, "--audio-bitrate", 10_000...400_000)
        },
        OptionDefinition(
            "--burst", "MS", .media, for: publishing,
            "milliseconds between the bursts of a frame; 0 to send all at once (default 5, as browsers do)"
        ) { options, text throws(UsageError) in
            options.media.burstMilliseconds = try OptionValue.count(text, "--burst", 0...100)
        },
        OptionDefinition(
            "--file", "FILE", .media, for: publishing,
            "IVF or WebM file with VP8 to publish instead of synthetic media, with a WebM file's Opus"
        ) { options, text throws(UsageError) in
            options.media.videoFile = try OptionValue.text(text, "--file")
        },
        OptionDefinition(
            "--audio-file", "FILE", .media, for: publishing, "Ogg or WebM file with Opus to publish"
        ) { options, text throws(UsageError) in
            options.media.audioFile = try OptionValue.text(text, "--audio-file")
        },
    ]

    private static let audienceOptions = [
        OptionDefinition(
            "--viewers", "N", .audience, for: crowds.union([.interact]),
            "viewers per stream (default play 1; load, churn and restart 100; join-storm 300; interact 1000); for "
                + "feed, viewers in total (default 20)"
        ) { options, text throws(UsageError) in
            options.audience.viewers = try OptionValue.count(text, "--viewers", 0...20_000)
        },
        OptionDefinition(
            "--join-rate", "N", .audience, for: crowds.subtracting([.joinStorm]),
            "joins per second (default 100)"
        ) { options, text throws(UsageError) in
            options.audience.joinRate = try OptionValue.number(text, "--join-rate", 0.1...5_000)
        },
        OptionDefinition(
            "--playing", "N", .audience, for: [.joinStorm],
            "viewers per stream that already play when the storm begins (default 0)"
        ) { options, text throws(UsageError) in
            options.audience.playing = try OptionValue.count(text, "--playing", 0...20_000)
        },
        OptionDefinition(
            "--handshakes-only", nil, .audience, for: [.joinStorm],
            "negotiate first, then connect (ICE and DTLS), \(HandshakeLine<ClientSetup>.width) at a time per thread, and leave "
                + "without media: measures the server's CPU per handshake, and handshakes per second"
        ) { options, _ in options.audience.handshakesOnly = true },
        OptionDefinition(
            "--decrypt-every", "K", .audience, for: crowds,
            "decrypt one packet in K, to measure latency (default 20); for feed, all of one viewer in K (default 1)"
        ) { options, text throws(UsageError) in
            options.audience.decryptEvery = try OptionValue.count(text, "--decrypt-every", 1...10_000)
        },
        OptionDefinition(
            "--nack", nil, .audience, for: crowds.subtracting([.feed]), "request lost packets again"
        ) { options, _ in
            options.audience.asksForRepair = true
        },
        OptionDefinition(
            "--transport-cc", nil, .audience, for: crowds.subtracting([.feed]),
            "report when each packet arrived, as browsers do, so that the server adapts to the path"
        ) { options, _ in options.audience.tellsOfPackets = true },
        OptionDefinition(
            "--gro", nil, .audience, for: crowds,
            "accept coalesced datagrams (UDP_GRO): cheaper for both ends than any real network"
        ) { options, _ in options.audience.coalesces = true },
        OptionDefinition(
            "--srtp", "PROFILE", .audience, for: media,
            "SRTP profiles to offer: any, or only gcm, gcm256 or cm (default any)"
        ) { options, text throws(UsageError) in
            guard let choice = SRTPChoice(rawValue: text) else {
                throw UsageError("--srtp must be any, gcm, gcm256 or cm, not \"\(text)\"")
            }
            options.audience.srtp = choice
        },
        OptionDefinition(
            "--ramp", "STEP", .audience, for: [.load],
            "add STEP viewers per stream after each measurement, until loss > 0.1 % or p99 latency > 50 ms"
        ) { options, text throws(UsageError) in
            options.audience.ramp = try OptionValue.count(text, "--ramp", 1...10_000)
        },
        OptionDefinition(
            "--ramp-max", "N", .audience, for: [.load], "viewers per stream to stop at (default 3000)"
        ) { options, text throws(UsageError) in
            options.audience.rampMaximum = try OptionValue.count(text, "--ramp-max", 1...20_000)
        },
    ]

    private static let timingOptions = [
        OptionDefinition(
            "--duration", "TIME", .timing, for: media.union([.demo, .interact]),
            "time to measure, such as 10s or 5m (default 10s; network: the length of each profile); for restart, "
                + "after all are back; for demo, time to run (default 24h)"
        ) { options, text throws(UsageError) in
            options.timing.duration = try OptionValue.seconds(text, "--duration", 1...86_400)
        },
        OptionDefinition(
            "--warm-up", "TIME", .timing,
            "time from the last join to the measurement, or to the restart (default 3s)"
        ) { options, text throws(UsageError) in
            options.timing.warmUp = try OptionValue.seconds(text, "--warm-up", 0...600)
        },
        OptionDefinition(
            "--connect-timeout", "TIME", .timing, "time for each client to get its first media (default 15s)"
        ) { options, text throws(UsageError) in
            options.timing.connect = try OptionValue.seconds(text, "--connect-timeout", 1...120)
        },
    ]

    private static let machineOptions = [
        OptionDefinition("--threads", "N", .machine, "number of threads that send and receive (default 1)") {
            options, text throws(UsageError) in
            options.machine.threads = try OptionValue.count(text, "--threads", 1...64)
        },
        OptionDefinition("--cpus", "LIST", .machine, "CPUs to pin the threads to, such as 1 or 2-3") {
            options, text throws(UsageError) in
            options.machine.cpus = try OptionValue.cpus(text, "--cpus")
        },
        OptionDefinition(
            "--server-pid", "PID", .machine,
            "server process to measure CPU and memory of (default: the one listening on the target's port here)"
        ) { options, text throws(UsageError) in
            options.machine.serverPID = try OptionValue.count(text, "--server-pid", 1...4_194_304)
        },
        OptionDefinition(
            "--metrics", "PATH", .machine, "Prometheus endpoint of the server (default /metrics)"
        ) { options, text throws(UsageError) in
            options.machine.metrics = try OptionValue.text(text, "--metrics")
        },
    ]

    private static let reportOptions = [
        OptionDefinition("--json", "FILE", .report, "write the report as JSON to FILE; - for standard output")
        {
            options, text throws(UsageError) in
            options.report.json = try OptionValue.text(text, "--json")
        },
        OptionDefinition(
            "--html", "FILE", .report, for: media,
            "write the report with plots to FILE, as a single HTML page"
        ) { options, text throws(UsageError) in
            options.report.html = try OptionValue.text(text, "--html")
        },
        OptionDefinition("--quiet", nil, .report, for: all, "print no progress") { options, _ in
            options.report.isQuiet = true
        },
    ]
}
