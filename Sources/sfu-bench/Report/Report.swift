/// All that one run found out; what `--json` writes.
///
/// Times are in milliseconds unless their names say otherwise.
struct Report: Codable, Equatable, Sendable {
    var tool = "sfu-bench"
    /// Grows when a field changes its meaning or goes away.
    var version = 1
    var command: String
    var server: String
    /// ISO 8601.
    var startedAt: String
    var setup: Setup
    var verdict = Verdict()
    var clients = Clients()
    var phases: [Phase] = []
    /// What all viewers got in the time measured.
    var media: Media?
    /// The same of those who played before a storm.
    var earlier: Media?
    var publishing: Publishing?
    var serverUse: ServerUse?
    var generator: GeneratorUse?
    var joins: Joins?
    var restart: Restart?
    var ramp: Ramp?
    var swiping: Swiping?
    var network: NetworkReport?
    var series: [SeriesPoint] = []
    /// Pairs of latency and the share of packets that took no longer.
    var latencyCurve: [[Double]] = []

    struct Setup: Codable, Equatable, Sendable {
        var streams: Int
        var viewersPerStream: Int
        var videoBitrate: Int
        var framesPerSecond: Int
        var audioBitrate: Int
        var burstMilliseconds: Int
        var transport: String
        var srtp: String
        var decryptEvery: Int
        var coalesces: Bool
        var asksForRepair: Bool
        var threads: Int
        var warmUpSeconds: Double
        var durationSeconds: Double
        /// `viewersPerStream` counts all viewers, who swipe from stream to stream.
        var isFeed: Bool?
        /// Viewers told of each packet when it came.
        var tellsOfPackets: Bool?
        /// Viewers connected and left, without media.
        var isHandshakesOnly: Bool?
    }

    struct Verdict: Codable, Equatable, Sendable {
        /// The tool was the bottleneck: the numbers say nothing of the server.
        var isVoid = false
        var reasons: [String] = []
        var failures: [String] = []
        /// Worth knowing, but no reason for doubt.
        var notes: [String] = []

        /// Whether the tool was the bottleneck, and what else is to be known of it.
        mutating func judge(by use: GeneratorUse) {
            reasons = VoidRule.reasons(use)
            isVoid = !reasons.isEmpty
            notes += VoidRule.notes(use)
        }

        /// As a terminal shows it, below the numbers.
        var lines: [String] {
            failures.map { "FAILED: " + $0 } + reasons.map { "VOID: " + $0 } + notes.map { "Note: " + $0 }
        }
    }

    struct Clients: Codable, Equatable, Sendable {
        var publishers = 0
        var viewers = 0
        /// Connected, and got a packet.
        var joined = 0
        var gotFirstFrame = 0
        var failed = 0
    }

    struct Phase: Codable, Equatable, Sendable {
        var name: String
        var title: String
        var milliseconds: Quantiles
    }

    struct Media: Codable, Equatable, Sendable {
        var seconds: Double
        var packets: Int
        var packetsPerSecond: Double
        var megabitsPerSecond: Double
        var lost: Int
        var lossPercent: Double
        var reordered: Int
        var duplicates: Int
        var repaired: Int
        /// Viewers that got nothing in the last second.
        var stalled: Int
        var latency: Quantiles?
        var jitter: Quantiles?
    }

    struct Publishing: Codable, Equatable, Sendable {
        var packets: Int
        var megabitsPerSecond: Double
        var frames: Int
        var keyFrames: Int
        /// From the start of the run, joins included.
        var keyFrameRequests: Int
        var nacks: Int
        var resent: Int
        /// How late bursts left.
        var lateness: Quantiles?
    }

    struct ServerUse: Codable, Equatable, Sendable {
        /// Where the numbers come from.
        var source: String
        var cpuSeconds: Double
        /// CPU seconds in each second.
        var cores: Double
        var microsecondsPerPacket: Double?
        var residentBytes: Int
        var residentBytesPerViewer: Int?
        var cpuMillisecondsPerJoin: Double?
        /// Without what it spent on those who play meanwhile.
        var microsecondsPerHandshake: Double?
    }

    struct GeneratorUse: Codable, Equatable, Sendable {
        struct Thread: Codable, Equatable, Sendable {
            var name: String
            /// Shares of the time measured, 0 to 1: on a CPU, and waiting for one.
            var busy: Double
            var waiting: Double
        }

        var threads: [Thread]
        var isPinned: Bool
        /// Datagrams that came while one of its sockets was full.
        var overflowed: Int
        var unsent: Int
        /// Of the whole process, in the time measured.
        var cpuSeconds: Double
        /// Of all CPUs that the process may run on, 0 to 1.
        var processorShare: Double
        /// These are the numbers of the moment in which the tool was busiest; nil for those of the whole time.
        var isPeak: Bool?
    }

    struct Joins: Codable, Equatable, Sendable {
        /// Handshakes completed, and the time from the first request (or with `--handshakes-only`, from the first
        /// connectivity check) to the last of them.
        var handshakes: Int
        var seconds: Double
        var perSecond: Double
        /// The server could do more than this tool.
        var isToolLimited = false
    }

    struct Ramp: Codable, Equatable, Sendable {
        struct Level: Codable, Equatable, Sendable {
            var viewersPerStream: Int
            var lossPercent: Double
            var latencyP99: Double?
            var stalled: Int
            var serverCores: Double?
            var microsecondsPerPacket: Double?
            var generatorBusy: Double
            /// Why this level does not count; nil if it does.
            var limit: String?
        }

        var levels: [Level]
        /// The most viewers of each stream within the limits; nil if even the first level was beyond.
        var maximum: Int?
        /// The tool, not the server, was what ended the ramp.
        var isToolLimited: Bool
    }

    /// What viewers of a feed found when they swiped.
    struct Swiping: Codable, Equatable, Sendable {
        /// From a `focus` to what it brought.
        struct Delays: Codable, Equatable, Sendable {
            var packet: Quantiles?
            /// The same, less the time in which the publisher had not sent it yet: of a source with one layer, which a
            /// neighbour gets whole, what the packet needed.
            var way: Quantiles?
            /// The first complete frame that can be decoded.
            var frame: Quantiles?
            var audio: Quantiles?
        }

        /// `eager` or `on-swipe`.
        var preload: String
        var swipes: Int
        var perSecond: Double
        /// Of the swipes, those to a stream that was not the next.
        var jumps: Int
        var calledOff: Int
        /// The next swipe came before picture and sound.
        var unfinished: Int
        var refused: Int
        var moved: Int
        /// To a stream whose picture was there already, and to others.
        var preloaded: Delays
        var cold: Delays
        var peekToFrame: Quantiles?
        /// Between picture and sound.
        var skew: Quantiles?
        // Of the whole run, by the packets that came.
        var mostAttached: Int
        var momentsOverTwo: Int
        /// Packets of a stream later than 200 ms after its release.
        var strays: Int
        /// Streams that began without a key frame.
        var brokenStarts: Int
        /// That reached one publisher since the start.
        var keyFrameRequestsAtMost: Int

        /// The rows of a table: what is measured, and its quantiles.
        var rows: [(title: String, values: Quantiles)] {
            let rows: [(String, Quantiles?)] = [
                ("preloaded: focus to first packet", preloaded.packet),
                ("the same, less the wait for its publisher", preloaded.way),
                ("preloaded: focus to complete frame", preloaded.frame),
                ("preloaded: focus to sound", preloaded.audio), ("cold: focus to first packet", cold.packet),
                ("cold: focus to complete frame", cold.frame), ("cold: focus to sound", cold.audio),
                ("peek to complete frame", peekToFrame), ("picture and sound apart", skew),
            ]
            return rows.compactMap { title, values in values.map { (title, $0) } }
        }

        /// The rest of the table.
        var facts: [(title: String, value: String)] {
            [
                ("swipes", "\(swipes), \(Format.short(perSecond)) a second, \(jumps) of them jumps"),
                ("called off, unfinished, refused", "\(calledOff), \(unfinished), \(refused)"),
                ("streams at once, at the most", "\(mostAttached)"),
                ("packets of released streams after 200 ms", "\(strays)"),
                ("streams begun without a key frame", "\(brokenStarts)"),
                ("key-frame requests to one publisher", "at most \(keyFrameRequestsAtMost)"),
            ]
        }
    }

    /// One second of the run.
    struct SeriesPoint: Codable, Equatable, Sendable {
        /// Since the start of the run.
        var seconds: Double
        /// The same as seconds of Unix time.
        var time: Double?
        var viewers: Int
        var packetsPerSecond: Double
        var megabitsPerSecond: Double
        var lossPercent: Double
        var latencyP50: Double?
        var latencyP99: Double?
        var serverCores: Double?
        var serverResidentBytes: Int?
        var generatorBusy: Double
        var isMeasured: Bool
    }
}
