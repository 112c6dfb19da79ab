import Foundation

/// The results of a run of `sfu-bench play --protocol hls`, in the form that `--json` writes.
///
/// Times are in milliseconds unless a name says otherwise.
struct HLSReport: Codable, Equatable, Sendable, WritableReport {
    /// Interruptions of playback because the buffer was empty.
    struct Stalls: Codable, Equatable, Sendable {
        var count = 0
        /// The sum over all viewers.
        var seconds = 0.0
        /// Share of the time that all viewers watched, 0 to 1.
        var share = 0.0
        /// Viewers that had nothing to show for at least five seconds when the run ended.
        var standing = 0
    }

    /// Successful requests, by what was loaded.
    struct Requests: Codable, Equatable, Sendable {
        var playlists = 0
        var media = 0
        var initializations = 0
        var perSecond = 0.0
        var perSecondAndViewer = 0.0
    }

    /// Pictures that were decoded, by what their mark showed.
    struct Pictures: Codable, Equatable, Sendable {
        var marked = 0
        var unmarked = 0
        /// Marks of a clock that disagrees with that of this machine.
        var foreign = 0
        /// Frames that could not be decoded, and media that could not be parsed.
        var broken = 0
    }

    var tool = "sfu-bench"
    var version = 1
    var command = "play"
    var streamProtocol = "hls"
    var server: String
    var viewers: Int
    /// Viewers that received media.
    var started = 0
    /// Viewers whose stream ended during the run.
    var ended = 0
    /// Length of the measurement.
    var seconds = 0.0
    /// From a viewer's first request to its first media.
    var start: Quantiles?
    /// From the creation of a picture to its display, by the marks in decoded pictures.
    var latency: Quantiles?
    /// Age of a part's first picture when the part arrives, by the playlist's dates, for all viewers.
    var arrival: Quantiles?
    var pictures = Pictures()
    var stalls = Stalls()
    var requests = Requests()
    var megabitsPerSecond = 0.0
    /// How often a viewer had to continue near the live edge because what it wanted next was gone.
    var rejoined = 0
    /// Failed requests since the start, by status or reason.
    var refusals: [String: Int] = [:]
    var serverUse: Report.ServerUse?
    var generator: Report.GeneratorUse?
    var verdict = Report.Verdict()

    // `protocol` is a keyword of Swift, so the property has another name.
    private enum CodingKeys: String, CodingKey {
        case tool, version, command, server, viewers, started, ended, seconds, start, latency, arrival
        case pictures, stalls, requests, megabitsPerSecond, rejoined, refusals, serverUse, generator, verdict
        case streamProtocol = "protocol"
    }

    init(_ options: Options, viewers: Int) {
        server = options.server.url.absoluteString
        self.viewers = viewers
    }

    // MARK: Filling

    /// Notes the server's use during the measurement; memory per viewer is measured from before the joins.
    mutating func noteServer(
        _ source: String, _ baseline: ProcessFiles.Usage?, _ before: ProcessFiles.Usage?,
        _ after: ProcessFiles.Usage?
    ) {
        guard let before, let after, seconds > 0 else { return }
        let used = after.processorSeconds - before.processorSeconds
        let grown = baseline.map { after.residentBytes - $0.residentBytes }
        serverUse = Report.ServerUse(
            source: source, cpuSeconds: used, cores: used / seconds, residentBytes: after.residentBytes,
            residentBytesPerViewer: grown.map { $0 / max(viewers, 1) })
    }

    /// Evaluates what the threads saw, and judges the run.
    ///
    /// What concerns joining is counted over the whole run, all else over the measured time.
    mutating func conclude(_ sums: HLSShared.Sums) {
        let (whole, measured) = (sums.whole, sums.measured)
        (started, ended, refusals) = (whole.started, whole.ended, whole.refusals)
        start = Quantiles(milliseconds: whole.start)
        latency = Quantiles(milliseconds: measured.marks.latency)
        arrival = Quantiles(milliseconds: measured.arrival)
        pictures = Pictures(
            marked: Int(clamping: measured.marks.latency.count), unmarked: measured.marks.unmarked,
            foreign: measured.marks.foreign, broken: measured.marks.undecoded + measured.marks.unreadable)
        stalls.count = measured.stalls.count
        stalls.seconds = Double(measured.stalls.nanoseconds) / 1e9
        stalls.standing = sums.standing.reduce(0, +)
        rejoined = measured.rejoined
        requests.playlists = measured.playlists
        requests.media = measured.media
        requests.initializations = measured.initializations
        if seconds > 0 {
            stalls.share = stalls.seconds / (seconds * Double(max(started, 1)))
            requests.perSecond = Double(measured.requests) / seconds
            requests.perSecondAndViewer = requests.perSecond / Double(max(started, 1))
            megabitsPerSecond = Double(measured.bytes) * 8 / 1e6 / seconds
        }
        judge()
    }

    private mutating func judge() {
        if started < viewers {
            verdict.failures.append("\(viewers - started) of \(viewers) viewers received nothing")
        }
        if requests.media == 0, ended < started {
            verdict.failures.append("no media arrived during the measurement")
        }
        if stalls.standing > 0 {
            verdict.failures.append("\(stalls.standing) viewers stopped receiving media")
        }
        if latency == nil, pictures.unmarked > 0 {
            verdict.notes.append(
                "the pictures have no time mark; to measure latency, publish with sfu-bench publish --protocol rtmp"
            )
        }
        if pictures.foreign > 0 {
            verdict.notes.append(
                "the time marks in the pictures come from a clock that differs from this machine's")
        }
        if let generator { verdict.judge(by: generator) }
    }

    // MARK: Writing

    func write(_ options: ReportOptions) throws {
        try ReportWriter.write(text, self, options)
    }

    /// A table for the terminal.
    var text: String {
        var lines = ["sfu-bench play --protocol hls \(server)", "viewers"]
        lines.append(row("started", "\(started) of \(viewers)" + (ended > 0 ? ", ended for \(ended)" : "")))
        lines.append(
            row(
                "stalled",
                "\(stalls.count) times, \(Format.short(stalls.seconds)) s in total (\(Format.short(stalls.share * 100)) %)"
            ))
        if rejoined > 0 { lines.append(row("had to start over", "\(rejoined) times")) }
        for (reason, count) in refusals.sorted(by: { $0.key < $1.key }) {
            lines.append(row("  \(count) ×", reason))
        }
        lines.append("in ms (p50, p95, p99, max)")
        for (name, values) in [
            ("first request to first media", start), ("glass to glass, from marks", latency),
            ("age of parts on arrival", arrival),
        ] {
            guard let values else { continue }
            let numbers = [values.p50, values.p95, values.p99, values.maximum].map(Format.short)
            lines.append(row(name, numbers.joined(separator: "  ")))
        }
        lines.append("in \(Format.short(seconds)) s")
        lines.append(
            row(
                "requests per second",
                "\(Format.short(requests.perSecond)), \(Format.short(requests.perSecondAndViewer)) per viewer"
            ))
        lines.append(row("playlists, media", "\(requests.playlists), \(requests.media)"))
        lines.append(row("bandwidth", "\(Format.short(megabitsPerSecond)) Mbit/s"))
        if let serverUse {
            lines.append(
                row(
                    "server",
                    "\(Format.short(serverUse.cores)) cores, \(Format.bytes(serverUse.residentBytes))"))
        }
        for thread in generator?.threads ?? [] {
            let use = "busy \(Format.short(thread.busy * 100)) %, waiting for a CPU "
            lines.append(row("this tool's " + thread.name, use + "\(Format.short(thread.waiting * 100)) %"))
        }
        lines += verdict.lines
        return lines.joined(separator: "\n") + "\n"
    }

    private func row(_ label: String, _ value: String) -> String {
        "  " + label.padded(to: 34) + value
    }
}
