import Base
import Foundation
import Net

/// The results of a run of `sfu-bench publish --protocol srt`, in the form that `--json` writes.
struct SRTReport: Codable, Equatable, Sendable, WritableReport {
    /// Counters of all publishers together, since they connected; packets are those of SRT.
    struct Sums: Equatable, Sendable {
        var sent = 0
        var retransmitted = 0
        var lost = 0
        /// Packets that were too late to be sent, and messages that did not fit into the library's buffer.
        var dropped = 0
        var bytes = 0

        init() {}

        init(_ publishers: [SRTPublisher]) {
            for publisher in publishers {
                let (sending, left) = (publisher.current.sending, publisher.current.left)
                sent += sending.sent
                retransmitted += sending.retransmitted
                lost += sending.lost
                dropped += sending.dropped + Int(clamping: left)
                bytes += sending.bytes
            }
        }

        /// What was counted since `earlier`.
        func since(_ earlier: Sums) -> Sums {
            var result = self
            result.sent -= earlier.sent
            result.retransmitted -= earlier.retransmitted
            result.lost -= earlier.lost
            result.dropped -= earlier.dropped
            result.bytes -= earlier.bytes
            return result
        }
    }

    var tool = "sfu-bench"
    var version = 1
    var command = "publish"
    var streamProtocol = "srt"
    var server: String
    var publishers: Int
    /// Publishers that the server accepted.
    var live = 0
    /// Live publishers whose connection ended before the run.
    var lost = 0
    var seconds = 0.0
    /// From connecting to the server's acceptance, in milliseconds.
    var connect: Quantiles?
    /// Pictures that were generated; all publishers send the same ones.
    var frames = 0
    var keyFrames = 0
    /// Packets of all publishers, without retransmissions.
    var packets = 0
    /// Packets that the server reported as lost.
    var packetsLost = 0
    var packetsRetransmitted = 0
    /// Packets that were too late, or did not fit into the buffer.
    var packetsDropped = 0
    /// Round-trip times of the publishers' connections, in milliseconds.
    var roundTrip: Quantiles?
    var megabitsPerSecond = 0.0
    /// How late pictures and sound were generated, in milliseconds.
    var lateness: Quantiles?
    var serverUse: Report.ServerUse?
    var generator: Report.GeneratorUse?
    var verdict = Report.Verdict()

    // `protocol` is a keyword of Swift, so the property has another name.
    private enum CodingKeys: String, CodingKey {
        case tool, version, command, server, publishers, live, lost, seconds, connect, frames, keyFrames
        case packets, packetsLost, packetsRetransmitted, packetsDropped, roundTrip, megabitsPerSecond
        case lateness, serverUse, generator, verdict
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
    ///   - sums: counters at the start of the measurement.
    ///   - earlier: of the film, then.
    mutating func conclude(
        _ publishers: [SRTPublisher], from sums: Sums, _ made: FilmThread.Made, from earlier: FilmThread.Made
    ) {
        let ends = publishers.map { ($0.asked, $0.current) }
        conclude(
            ends.map(\.1),
            joined: ends.compactMap { asked, values in
                values.live.map { Double($0.nanoseconds(since: asked)) / 1e6 }
            }, Sums(publishers).since(sums))
        frames = made.frames - earlier.frames
        keyFrames = made.keyFrames - earlier.keyFrames
        lateness = Quantiles(milliseconds: made.lateness.since(earlier.lateness))
        judge(ends.lazy.compactMap(\.1.failure).first ?? made.failure)
    }

    /// Fills in what follows from the publishers alone.
    private mutating func conclude(_ ends: [SRTPublisher.Values], joined: [Double], _ sums: Sums) {
        live = ends.filter { $0.live != nil }.count
        lost = ends.filter { $0.live != nil && $0.isOver }.count
        connect = Quantiles(joined)
        roundTrip = Quantiles(ends.filter { $0.live != nil }.map(\.sending.roundTrip))
        packets = sums.sent
        packetsLost = sums.lost
        packetsRetransmitted = sums.retransmitted
        packetsDropped = sums.dropped
        if seconds > 0 { megabitsPerSecond = Double(max(sums.bytes, 0)) * 8 / 1e6 / seconds }
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
        if live > 0, packets == 0 { verdict.failures.append("nothing was sent\(words)") }
        if let generator { verdict.judge(by: generator) }
    }

    // MARK: Writing

    func write(_ options: ReportOptions) throws {
        try ReportWriter.write(text, self, options)
    }

    /// A table for the terminal.
    var text: String {
        var lines = ["sfu-bench publish --protocol srt \(server)"]
        lines.append(row("live, lost", "\(live) of \(publishers), \(lost)"))
        if let connect {
            lines.append(row("connecting until live, in ms (p50, p95)", pair(connect.p50, connect.p95)))
        }
        lines.append(
            row("pictures, key frames among them", "\(frames), \(keyFrames) in \(Format.short(seconds)) s"))
        lines.append(
            row("packets sent, missed, retransmitted", "\(packets), \(packetsLost), \(packetsRetransmitted)"))
        lines.append(row("packets dropped", "\(packetsDropped)"))
        if let roundTrip {
            lines.append(row("round trip, in ms (p50, p95)", pair(roundTrip.p50, roundTrip.p95)))
        }
        lines.append(row("bandwidth", "\(Format.short(megabitsPerSecond)) Mbit/s"))
        if let lateness {
            lines.append(row("pictures late by, in ms (p50, p99)", pair(lateness.p50, lateness.p99)))
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

    private func pair(_ first: Double, _ second: Double) -> String {
        "\(Format.short(first))  \(Format.short(second))"
    }

    private func row(_ label: String, _ value: String) -> String {
        "  " + label.padded(to: 40) + value
    }
}
