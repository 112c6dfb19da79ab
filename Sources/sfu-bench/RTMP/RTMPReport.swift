import Foundation

/// The results of a run of `sfu-bench publish --protocol rtmp`, in the form that `--json` writes.
struct RTMPReport: Codable, Equatable, Sendable, WritableReport {
    /// Counters of all publishers together, since they connected.
    struct Sums: Equatable, Sendable {
        var bytes: UInt64 = 0
        var dropped: UInt64 = 0
    }

    var tool = "sfu-bench"
    var version = 1
    var command = "publish"
    var streamProtocol = "rtmp"
    var server: String
    var publishers: Int
    /// Publishers that the server accepted.
    var live = 0
    /// Live publishers whose connection ended before the run.
    var lost = 0
    /// Length of the measurement.
    var seconds = 0.0
    /// From connecting to the server's acceptance of the stream, in milliseconds.
    var connect: Quantiles?
    /// Pictures that were generated; all publishers send the same ones.
    var frames = 0
    var keyFrames = 0
    /// Pictures that were left out for a slow server, over all publishers.
    var dropped = 0
    var megabitsPerSecond = 0.0
    /// How late pictures and sound were generated, in milliseconds.
    var lateness: Quantiles?
    var serverUse: Report.ServerUse?
    var generator: Report.GeneratorUse?
    var verdict = Report.Verdict()

    // `protocol` is a keyword of Swift, so the property has another name.
    private enum CodingKeys: String, CodingKey {
        case tool, version, command, server, publishers, live, lost, seconds, connect, frames, keyFrames
        case dropped, megabitsPerSecond, lateness, serverUse, generator, verdict
        case streamProtocol = "protocol"
    }

    init(_ options: Options, publishers: Int) {
        server = options.server.url.absoluteString
        self.publishers = publishers
    }

    // MARK: Filling

    /// Notes the server's use; `seconds` must be set before.
    mutating func noteServer(_ source: String, _ before: ProcessFiles.Usage?, _ after: ProcessFiles.Usage?) {
        guard let before, let after, seconds > 0 else { return }
        let used = after.processorSeconds - before.processorSeconds
        serverUse = Report.ServerUse(
            source: source, cpuSeconds: used, cores: used / seconds, residentBytes: after.residentBytes)
    }

    /// Evaluates the publishers' counters, and judges the run.
    /// - Parameters:
    ///   - ends: the state of each publisher, and how many milliseconds it took to be live; nil if it never was.
    ///   - sums: counters at the start of the measurement.
    ///   - earlier: of the film, then.
    mutating func conclude(
        _ ends: [(values: RTMPMeter.Values, joined: Double?)], from sums: Sums, _ made: FilmThread.Made,
        from earlier: FilmThread.Made
    ) {
        live = ends.filter { $0.values.live != nil }.count
        lost = ends.filter { $0.values.live != nil && $0.values.isOver }.count
        connect = Quantiles(ends.compactMap(\.joined))
        frames = made.frames - earlier.frames
        keyFrames = made.keyFrames - earlier.keyFrames
        lateness = Quantiles(milliseconds: made.lateness.since(earlier.lateness))
        let all = ends.reduce(into: Sums()) { all, end in
            all.bytes += end.values.bytes
            all.dropped += end.values.dropped
        }
        dropped = Int(clamping: all.dropped - min(sums.dropped, all.dropped))
        if seconds > 0 {
            megabitsPerSecond = Double(all.bytes - min(sums.bytes, all.bytes)) * 8 / 1e6 / seconds
        }
        judge(ends.lazy.compactMap(\.values.failure).first ?? made.failure)
    }

    /// - Parameter reason: of the first failure, if there was one.
    private mutating func judge(_ reason: String?) {
        let words = reason.map { ": \($0)" } ?? ""
        if live < publishers {
            verdict.failures.append(
                "\(publishers - live) of \(publishers) publishers did not go live\(words)")
        }
        if lost > 0 { verdict.failures.append("\(lost) publishers were lost\(words)") }
        if frames == 0 { verdict.failures.append("no pictures were made\(words)") }
        if let generator { verdict.judge(by: generator) }
    }

    // MARK: Writing

    func write(_ options: ReportOptions) throws {
        try ReportWriter.write(text, self, options)
    }

    /// A table for the terminal.
    var text: String {
        var lines = ["sfu-bench publish --protocol rtmp \(server)"]
        lines.append(row("live, lost", "\(live) of \(publishers), \(lost)"))
        if let connect {
            lines.append(
                row(
                    "connecting until live, in ms (p50, p95)",
                    "\(Format.short(connect.p50))  \(Format.short(connect.p95))"))
        }
        lines.append(
            row("pictures, key frames among them", "\(frames), \(keyFrames) in \(Format.short(seconds)) s"))
        lines.append(row("pictures dropped", "\(dropped)"))
        lines.append(row("bandwidth", "\(Format.short(megabitsPerSecond)) Mbit/s"))
        if let lateness {
            lines.append(
                row(
                    "pictures late by, in ms (p50, p99)",
                    "\(Format.short(lateness.p50))  \(Format.short(lateness.p99))"))
        }
        if let serverUse {
            lines.append(
                row(
                    "server",
                    "\(Format.short(serverUse.cores)) cores, \(Format.bytes(serverUse.residentBytes))"))
        }
        lines += verdict.lines
        return lines.joined(separator: "\n") + "\n"
    }

    private func row(_ label: String, _ value: String) -> String {
        "  " + label.padded(to: 40) + value
    }
}
