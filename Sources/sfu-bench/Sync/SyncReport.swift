import Foundation

/// The results of a run of `sfu-bench sync`, in the form that `--json` writes.
///
/// Times are in milliseconds unless a name says otherwise.
struct SyncReport: Codable, Equatable, WritableReport {
    /// The outcome of one command.
    struct Command: Equatable, Sendable {
        /// Whether it succeeded, and all followers saw its change.
        let isComplete: Bool
        /// Until the response arrived.
        let answered: Double?
        /// Until the first and the last follower had read the change; nil if none had.
        let first: Double?
        let last: Double?
    }

    var tool = "sfu-bench"
    var version = 1
    var command = "sync"
    var server: String
    var clients: Int
    var connected = 0
    var failed = 0
    /// Connected followers that were lost before the end of the run.
    var lost = 0
    /// Why sockets failed or were lost, and how often.
    var reasons: [String: Int] = [:]
    var connectSeconds = 0.0
    var commands: Int
    /// Commands that succeeded and were seen by all followers.
    var complete = 0
    /// From a command's first byte until the change was read, for all followers.
    ///
    /// `sample` has the followers on a separate thread.
    var seen: Quantiles?
    var sample: Quantiles?
    /// From a command's first byte until the kernel had the change for the follower: none of it is this tool's time.
    var arrived: Quantiles?
    /// How long changes waited in the kernel to be read: this tool's part of `seen`.
    var waited: Quantiles?
    /// Until the response to a command, and until the first and the last follower had read its change.
    var answered: Quantiles?
    var first: Quantiles?
    var last: Quantiles?
    var holdSeconds: Double
    /// Memory of the server, with all followers connected.
    var residentBytes: Int?
    /// Growth of that memory since before they connected, divided by their number.
    var bytesPerClient: Int?
    /// CPU time of the server for each change that a follower received, in microseconds.
    var microsecondsPerChange: Double?
    var threads: [Report.GeneratorUse.Thread] = []
    var verdict = Report.Verdict()

    /// Not part of the JSON.
    private var taken: [Command] = []
    private var serverSeconds: Double?

    private enum CodingKeys: String, CodingKey {
        case tool, version, command, server, clients, connected, failed, lost, reasons, connectSeconds,
            commands
        case complete, seen, sample, arrived, waited, answered, first, last, holdSeconds, residentBytes
        case bytesPerClient, microsecondsPerChange, threads, verdict
    }

    init(_ options: Options) {
        server = options.server.url.absoluteString
        clients = options.following.clients
        commands = options.following.commands
        holdSeconds = options.following.hold
    }

    // MARK: Filling

    mutating func add(_ command: Command) {
        taken.append(command)
    }

    mutating func noteMemory(_ before: ProcessFiles.Usage?, _ after: ProcessFiles.Usage?, clients: Int) {
        guard let before, let after, clients > 0 else { return }
        residentBytes = after.residentBytes
        bytesPerClient = (after.residentBytes - before.residentBytes) / clients
    }

    mutating func noteServer(_ before: ProcessFiles.Usage?, _ after: ProcessFiles.Usage?) {
        guard let before, let after else { return }
        serverSeconds = after.processorSeconds - before.processorSeconds
    }

    /// Computes the load of the tool's threads while commands were sent.
    mutating func noteUse(
        _ before: [String: ProcessFiles.ThreadTime], _ after: [String: ProcessFiles.ThreadTime],
        seconds: Double
    ) {
        guard seconds > 0 else { return }
        threads = after.sorted { $0.key < $1.key }.map { name, time in
            let earlier = before[name] ?? ProcessFiles.ThreadTime(ran: 0, waited: 0)
            return Report.GeneratorUse.Thread(
                name: name, busy: Double(time.ran - earlier.ran) / 1e9 / seconds,
                waiting: Double(time.waited - earlier.waited) / 1e9 / seconds)
        }
    }

    /// Evaluates what the threads saw, and judges the run.
    mutating func conclude(_ tally: SyncTally) {
        let sockets = tally.sockets
        (connected, failed, lost, reasons) = (
            sockets.connected, sockets.failed, sockets.lost, sockets.reasons
        )
        complete = taken.filter(\.isComplete).count
        seen = Quantiles(milliseconds: tally.seen)
        sample = Quantiles(milliseconds: tally.sample)
        arrived = Quantiles(milliseconds: tally.arrived)
        waited = Quantiles(milliseconds: tally.waited)
        answered = Quantiles(taken.compactMap(\.answered))
        first = Quantiles(taken.compactMap(\.first))
        last = Quantiles(taken.compactMap(\.last))
        if let serverSeconds, tally.seen.count > 0 {
            microsecondsPerChange = serverSeconds * 1e6 / Double(tally.seen.count)
        }
        judge()
    }

    private mutating func judge() {
        if connected < clients {
            verdict.failures.append("\(clients - connected) of \(clients) clients did not connect")
        }
        if lost > 0 { verdict.failures.append("\(lost) clients were lost") }
        if complete < commands {
            verdict.failures.append("\(commands - complete) of \(commands) commands were not seen by all")
        }
        verdict.reasons = Self.voidReasons(seen: seen, waited: waited, threads)
        verdict.isVoid = !verdict.reasons.isEmpty
    }

    /// Reasons why the tool was the bottleneck: it read late, or a thread was too busy.
    static func voidReasons(
        seen: Quantiles?, waited: Quantiles?, _ threads: [Report.GeneratorUse.Thread]
    ) -> [String] {
        var reasons: [String] = []
        if let seen, let waited, waited.p95 > max(seen.p95 * longestShare, shortestWait) {
            reasons.append(
                "\(Format.short(waited.p95)) ms of \(Format.short(seen.p95)) ms (p95) passed between the arrival of "
                    + "changes and reading them: `arrived` is valid, `seen` is not; use more --threads, or a less "
                    + "busy machine")
        }
        for thread in threads where thread.busy > VoidRule.busiest {
            reasons.append("\(thread.name) was busy \(Int(thread.busy * 100)) % of the time")
        }
        return reasons
    }

    /// The share of `seen` that may be this tool's, and a wait in milliseconds that is too short to matter.
    private static let longestShare = 0.25
    private static let shortestWait = 2.0

    // MARK: Writing

    func write(_ options: ReportOptions) throws {
        try ReportWriter.write(text, self, options)
    }

    /// A table for the terminal.
    var text: String {
        var lines = ["sfu-bench sync \(server)", "\(clients) clients, \(commands) commands", "clients"]
        lines.append(row("connected", "\(connected) in \(Format.short(connectSeconds)) s"))
        lines.append(row("failed, lost", "\(failed), \(lost)"))
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
            lines.append(row("  \(count) ×", reason))
        }
        lines.append("from a command's first byte, in ms (p50, p95, p99, max)")
        for (name, values) in [
            ("change seen by all clients", seen), ("by the sample, read separately", sample),
            ("change arrived, not yet read", arrived), ("wait until it was read", waited),
            ("command answered", answered), ("first client", first), ("last client", last),
        ] {
            guard let values else { continue }
            let numbers = [values.p50, values.p95, values.p99, values.maximum].map(Format.short)
            lines.append(row(name, numbers.joined(separator: "  ")))
        }
        lines.append(row("commands seen by all", "\(complete) of \(commands)"))
        lines.append("server")
        if let bytesPerClient { lines.append(row("memory per client", Format.bytes(bytesPerClient))) }
        if let microsecondsPerChange {
            lines.append(row("CPU per change and client", "\(Format.short(microsecondsPerChange)) µs"))
        }
        lines.append("this tool")
        for thread in threads {
            let use = "busy \(Format.short(thread.busy * 100)) %, waiting for a CPU "
            lines.append(row(thread.name, use + "\(Format.short(thread.waiting * 100)) %"))
        }
        for failure in verdict.failures { lines.append("FAILED: " + failure) }
        for reason in verdict.reasons { lines.append("VOID: " + reason) }
        return lines.joined(separator: "\n") + "\n"
    }

    private func row(_ label: String, _ value: String) -> String {
        "  " + label.padded(to: 42) + value
    }
}
