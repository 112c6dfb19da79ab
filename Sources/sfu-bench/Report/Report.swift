/// The results of a run of `Bench`, in the form that `--json` writes.
///
/// Times are in milliseconds unless a name says otherwise. What the run did not measure is nil or empty.
struct Report: Codable, Equatable, Sendable {
    var tool = "sfu-bench"
    /// Increased when a field changes its meaning or is removed.
    var version = 1
    var command: String
    var server: String
    /// ISO 8601.
    var startedAt: String
    var setup: Setup
    var verdict = Verdict()
    var clients = Clients()
    /// The steps of joining, in their order.
    var phases: [Phase] = []
    /// What all viewers received in the measured time.
    var media: Media?
    /// The same for the viewers that played before a storm of joins.
    var earlier: Media?
    var publishing: Publishing?
    /// Nil if neither the process nor metrics could be read.
    var serverUse: ServerUse?
    /// The load of this tool itself.
    var generator: GeneratorUse?
    var joins: Joins?
    var restart: Restart?
    var ramp: Ramp?
    var swiping: Swiping?
    var network: NetworkReport?
    /// One point a second, from the start of the run.
    var series: [SeriesPoint] = []
    /// Pairs: a latency, and the share of packets (0 to 1) that took no longer.
    var latencyCurve: [[Double]] = []

    /// The options that a reader needs to compare runs.
    struct Setup: Codable, Equatable, Sendable {
        var streams: Int
        var viewersPerStream: Int
        /// In bits a second, like `audioBitrate`.
        var videoBitrate: Int
        var framesPerSecond: Int
        var audioBitrate: Int
        var burstMilliseconds: Int
        var transport: String
        var srtp: String
        /// One packet in this many was decrypted, to measure latency.
        var decryptEvery: Int
        var coalesces: Bool
        var asksForRepair: Bool
        var threads: Int
        var warmUpSeconds: Double
        var durationSeconds: Double
        /// Whether viewers swipe; `viewersPerStream` is then the number of all viewers.
        var isFeed: Bool?
        /// Whether viewers sent transport-wide feedback.
        var tellsOfPackets: Bool?
        /// Whether viewers connected and left without media.
        var isHandshakesOnly: Bool?
    }

    /// Whether the numbers are valid, and whether the server passed.
    struct Verdict: Codable, Equatable, Sendable {
        /// The tool was the bottleneck, so the numbers do not describe the server.
        var isVoid = false
        /// Why the run is void.
        var reasons: [String] = []
        /// What went wrong, apart from the load of this tool.
        var failures: [String] = []
        /// Worth knowing, but no reason to doubt the numbers.
        var notes: [String] = []

        /// Decides whether the tool was the bottleneck, and adds notes on its load.
        mutating func judge(by use: GeneratorUse) {
            reasons = VoidRule.reasons(use)
            isVoid = !reasons.isEmpty
            notes += VoidRule.notes(use)
        }

        /// Lines for a terminal, below the numbers.
        var lines: [String] {
            failures.map { "FAILED: " + $0 } + reasons.map { "VOID: " + $0 } + notes.map { "Note: " + $0 }
        }
    }

    struct Clients: Codable, Equatable, Sendable {
        var publishers = 0
        var viewers = 0
        /// Viewers that connected and received a packet; with handshakes alone, those that connected.
        var joined = 0
        var gotFirstFrame = 0
        var failed = 0
    }

    /// One step of joining.
    struct Phase: Codable, Equatable, Sendable {
        /// Stable, for programs; `title` is for people.
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
        /// Viewers that received nothing in the last second.
        var stalled: Int
        /// One way, in milliseconds; nil unless stamps of this machine's clock arrived.
        var latency: Quantiles?
        var jitter: Quantiles?
    }

    struct Publishing: Codable, Equatable, Sendable {
        var packets: Int
        var megabitsPerSecond: Double
        var frames: Int
        var keyFrames: Int
        /// Since the start of the run, joins included.
        var keyFrameRequests: Int
        var nacks: Int
        var resent: Int
        /// How late packets left, because of this tool.
        var lateness: Quantiles?
    }

    struct ServerUse: Codable, Equatable, Sendable {
        /// A process or a metrics URL.
        var source: String
        var cpuSeconds: Double
        /// CPU seconds per second.
        var cores: Double
        var microsecondsPerPacket: Double?
        var residentBytes: Int
        /// Growth of the memory since before the joins, divided by the viewers.
        var residentBytesPerViewer: Int?
        var cpuMillisecondsPerJoin: Double?
        /// Without the CPU time spent on viewers that were playing meanwhile.
        var microsecondsPerHandshake: Double?
    }

    struct GeneratorUse: Codable, Equatable, Sendable {
        struct Thread: Codable, Equatable, Sendable {
            var name: String
            /// Shares of the measured time, 0 to 1: running on a CPU, and waiting for one.
            var busy: Double
            var waiting: Double
        }

        /// The generator's threads.
        var threads: [Thread]
        var isPinned: Bool
        /// Datagrams that were dropped because one of the tool's sockets was full.
        var overflowed: Int
        /// Datagrams that the kernel refused to send.
        var unsent: Int
        /// Of the whole process, in the measured time.
        var cpuSeconds: Double
        /// Share of all CPUs that the process may use, 0 to 1.
        var processorShare: Double
        /// Whether the shares are those of the busiest moment; nil if they are those of the whole time.
        var isPeak: Bool?
    }

    /// How fast handshakes were completed.
    struct Joins: Codable, Equatable, Sendable {
        /// Completed handshakes.
        ///
        /// `seconds` is the time from the first request, or with `--handshakes-only` from the first connectivity check,
        /// to the last of them.
        var handshakes: Int
        var seconds: Double
        var perSecond: Double
        /// Whether the server could do more than this tool.
        var isToolLimited = false
    }

    /// A series of measurements with more and more viewers.
    struct Ramp: Codable, Equatable, Sendable {
        struct Level: Codable, Equatable, Sendable {
            var viewersPerStream: Int
            var lossPercent: Double
            var latencyP99: Double?
            var stalled: Int
            var serverCores: Double?
            var microsecondsPerPacket: Double?
            /// Share of a CPU that the busiest thread of the tool used, 0 to 1.
            var generatorBusy: Double
            /// Why this level exceeds the limits; nil if it does not.
            var limit: String?
        }

        var levels: [Level]
        /// The most viewers of each stream within the limits; nil if even the first level exceeded them.
        var maximum: Int?
        /// Whether the tool, not the server, ended the ramp.
        var isToolLimited: Bool
    }

    /// What viewers of a feed experienced when they swiped.
    struct Swiping: Codable, Equatable, Sendable {
        /// From sending `focus` to an effect of it.
        struct Delays: Codable, Equatable, Sendable {
            /// The first packet of the stream's video at full quality.
            var packet: Quantiles?
            /// The same, without the time before the publisher sent that packet.
            ///
            /// Of a source with one layer, which a neighbour gets whole, this is the time that the packet needed.
            var way: Quantiles?
            /// The end of the first complete frame that can be decoded.
            var frame: Quantiles?
            /// The first packet of the stream's sound.
            var audio: Quantiles?
        }

        /// `eager` or `on-swipe`.
        var preload: String
        var swipes: Int
        var perSecond: Double
        /// Swipes to a stream that was not the next one.
        var jumps: Int
        var calledOff: Int
        /// Swipes that were followed by the next one before picture and sound had come.
        var unfinished: Int
        /// Messages that the server refused.
        var refused: Int
        /// How often the server itself put another stream into focus.
        var moved: Int
        /// Swipes to a stream whose picture was decoded already; `cold` are all others.
        var preloaded: Delays
        var cold: Delays
        /// From a `peek` to the first complete frame of the neighbour.
        var peekToFrame: Quantiles?
        /// Difference between picture and sound, by the server's sender reports.
        var skew: Quantiles?
        // Of the whole run, by the packets that arrived.
        /// The most streams that one viewer received at a time; `momentsOverTwo` counts when there were more than two.
        var mostAttached: Int
        var momentsOverTwo: Int
        /// Packets of a stream that arrived more than 200 ms after its release.
        var strays: Int
        /// Streams whose first packet in a slot was not of a key frame.
        var brokenStarts: Int
        /// The most key-frame requests that one publisher received since the start.
        var keyFrameRequestsAtMost: Int

        /// Rows of a table: what was measured, and its quantiles.
        var rows: [(title: String, values: Quantiles)] {
            let rows: [(String, Quantiles?)] = [
                ("preloaded: focus to first packet", preloaded.packet),
                ("the same, less the wait for its publisher", preloaded.way),
                ("preloaded: focus to complete frame", preloaded.frame),
                ("preloaded: focus to sound", preloaded.audio), ("cold: focus to first packet", cold.packet),
                ("cold: focus to complete frame", cold.frame), ("cold: focus to sound", cold.audio),
                ("peek to complete frame", peekToFrame), ("picture and sound apart by", skew),
            ]
            return rows.compactMap { title, values in values.map { (title, $0) } }
        }

        /// Rows of a table without quantiles.
        var facts: [(title: String, value: String)] {
            [
                ("swipes", "\(swipes), \(Format.short(perSecond)) per second, \(jumps) of them jumps"),
                ("canceled, unfinished, refused", "\(calledOff), \(unfinished), \(refused)"),
                ("most streams at once", "\(mostAttached)"),
                ("packets of released streams after 200 ms", "\(strays)"),
                ("streams started without a key frame", "\(brokenStarts)"),
                ("key-frame requests to one publisher", "at most \(keyFrameRequestsAtMost)"),
            ]
        }
    }

    /// A sample of the run, over one second.
    struct SeriesPoint: Codable, Equatable, Sendable {
        /// Since the start of the run, at the end of the sample.
        var seconds: Double
        /// The same moment in seconds of Unix time.
        var time: Double?
        var viewers: Int
        var packetsPerSecond: Double
        var megabitsPerSecond: Double
        var lossPercent: Double
        var latencyP50: Double?
        var latencyP99: Double?
        var serverCores: Double?
        var serverResidentBytes: Int?
        /// Share of a CPU that the busiest thread used, 0 to 1.
        var generatorBusy: Double
        /// Whether the sample belongs to a measurement.
        var isMeasured: Bool
    }
}
