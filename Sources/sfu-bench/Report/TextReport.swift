/// The report as a table for the terminal.
enum TextReport {
    /// Columns before the values.
    private static let labelWidth = 42

    /// All sections that have content; a report on networks has a table of its own instead.
    static func text(_ report: Report) -> String {
        var lines = [
            "sfu-bench \(report.command) \(report.server)",
            setup(report.setup), "",
        ]
        if let network = report.network {
            return (lines + network.lines + verdict(report.verdict)).joined(separator: "\n") + "\n"
        }
        lines += clients(report.clients, hasMedia: report.setup.isHandshakesOnly != true)
        if let restart = report.restart { lines += self.restart(restart) }
        lines += phases(report.phases)
        if let joins = report.joins {
            lines.append(
                row(
                    "handshakes",
                    "\(joins.handshakes) in \(Format.short(joins.seconds)) s, \(Format.short(joins.perSecond)) per second"
                        + (joins.isToolLimited ? " (the tool's limit)" : "")))
        }
        if let swiping = report.swiping { lines += self.swiping(swiping) }
        if let media = report.media { lines += self.media(media, title: "viewers received") }
        if let earlier = report.earlier { lines += media(earlier, title: "earlier viewers received") }
        if let publishing = report.publishing { lines += self.publishing(publishing) }
        if let use = report.serverUse { lines += server(use) }
        if let use = report.generator { lines += generator(use) }
        if let ramp = report.ramp { lines += self.ramp(ramp) }
        lines += verdict(report.verdict)
        return lines.joined(separator: "\n") + "\n"
    }

    private static func row(_ label: String, _ value: String) -> String {
        "  " + label.padded(to: labelWidth) + value
    }

    private static func setup(_ setup: Report.Setup) -> String {
        var parts = [
            "\(setup.streams) stream\(setup.streams == 1 ? "" : "s")",
            "\(setup.viewersPerStream) viewers" + (setup.isFeed == true ? "" : " each"),
            "video \(Format.short(Double(setup.videoBitrate) / 1e6)) Mbit/s at \(setup.framesPerSecond) fps "
                + "in bursts of \(setup.burstMilliseconds) ms",
            "audio \(setup.audioBitrate / 1_000) kbit/s", "SRTP \(setup.srtp)",
        ]
        if setup.transport != "udp" { parts.append("over \(setup.transport.uppercased())") }
        if setup.coalesces { parts.append("with GRO") }
        return parts.joined(separator: ", ")
    }

    private static func clients(_ clients: Report.Clients, hasMedia: Bool) -> [String] {
        var lines = ["clients"]
        lines.append(row("publishers", "\(clients.publishers)"))
        if clients.viewers > 0 {
            lines.append(
                row(
                    "viewers",
                    "\(clients.viewers), joined \(clients.joined)"
                        + (hasMedia ? ", saw a frame \(clients.gotFirstFrame)" : "")))
        }
        if clients.failed > 0 { lines.append(row("failed", "\(clients.failed)")) }
        return lines
    }

    private static func phases(_ phases: [Report.Phase]) -> [String] {
        guard !phases.isEmpty else { return [] }
        return ["joining, ms" + String(repeating: " ", count: labelWidth - 9) + header]
            + phases.map { row($0.title, quantiles($0.milliseconds)) }
    }

    private static func restart(_ restart: Report.Restart) -> [String] {
        ["since the server was ready again, ms".padded(to: labelWidth + 2) + header]
            + restart.rows.map { row($0.title, quantiles($0.values)) }
            + restart.facts.map { row($0.title, $0.value) }
    }

    private static func swiping(_ swiping: Report.Swiping) -> [String] {
        ["swiping (preload \(swiping.preload)), ms".padded(to: labelWidth + 2) + header]
            + swiping.rows.map { row($0.title, quantiles($0.values)) }
            + swiping.facts.map { row($0.title, $0.value) }
    }

    private static let header = ["p50", "p95", "p99", "max"].map { right($0, 9) }.joined()

    private static func quantiles(_ values: Quantiles) -> String {
        [values.p50, values.p95, values.p99, values.maximum].map { right(Format.short($0), 9) }.joined()
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(width - text.count, 0)) + text
    }

    private static func media(_ media: Report.Media, title: String) -> [String] {
        var lines = [title]
        lines.append(
            row(
                "packets",
                "\(Format.count(Double(media.packets))) in \(Format.short(media.seconds)) s, "
                    + "\(Format.count(media.packetsPerSecond)) per second, "
                    + "\(Format.short(media.megabitsPerSecond)) Mbit/s"))
        lines.append(row("lost", "\(media.lost) (\(Format.short(media.lossPercent)) %)"))
        lines.append(
            row(
                "reordered, duplicate, repaired",
                "\(media.reordered), \(media.duplicates), \(media.repaired)"))
        if let latency = media.latency { lines.append(row("latency, ms", quantiles(latency))) }
        if let jitter = media.jitter { lines.append(row("jitter, ms", quantiles(jitter))) }
        return lines
    }

    private static func publishing(_ publishing: Report.Publishing) -> [String] {
        var lines = ["publishers sent"]
        lines.append(
            row(
                "packets",
                "\(Format.count(Double(publishing.packets))), \(Format.short(publishing.megabitsPerSecond)) Mbit/s, "
                    + "\(publishing.frames) frames, \(publishing.keyFrames) key frames"))
        lines.append(row("key-frame requests since the start", "\(publishing.keyFrameRequests)"))
        lines.append(row("NACKs, packets retransmitted", "\(publishing.nacks), \(publishing.resent)"))
        if let lateness = publishing.lateness { lines.append(row("bursts late by, ms", quantiles(lateness))) }
        return lines
    }

    private static func server(_ use: Report.ServerUse) -> [String] {
        var lines = ["server (\(use.source))"]
        lines.append(
            row("CPU", "\(Format.short(use.cpuSeconds)) s, \(Format.short(use.cores * 100)) % of a core"))
        if let cost = use.microsecondsPerPacket {
            lines.append(row("CPU per forwarded packet", "\(Format.short(cost)) µs"))
        }
        if let cost = use.microsecondsPerHandshake {
            lines.append(
                row(
                    "CPU per handshake",
                    "\(Format.short(cost)) µs: \(Format.short(1e6 / max(cost, 1))) per second on one core"))
        }
        if let cost = use.cpuMillisecondsPerJoin {
            lines.append(row("CPU per join, including all its media", "\(Format.short(cost)) ms"))
        }
        lines.append(row("memory", Format.bytes(use.residentBytes)))
        if let bytes = use.residentBytesPerViewer {
            lines.append(row("memory per viewer", Format.bytes(bytes)))
        }
        return lines
    }

    private static func generator(_ use: Report.GeneratorUse) -> [String] {
        var lines = [use.isPeak == true ? "this tool, at its busiest" : "this tool"]
        for thread in use.threads {
            lines.append(
                row(
                    thread.name,
                    "busy \(Format.short(thread.busy * 100)) %, waiting for a CPU "
                        + "\(Format.short(thread.waiting * 100)) %"))
        }
        lines.append(row("CPU of the process", "\(Format.short(use.cpuSeconds)) s"))
        lines.append(row("datagrams overflowed, not sent", "\(use.overflowed), \(use.unsent)"))
        return lines
    }

    private static func ramp(_ ramp: Report.Ramp) -> [String] {
        var lines = ["ramp"]
        for level in ramp.levels {
            var parts = ["loss \(Format.short(level.lossPercent)) %"]
            if let latency = level.latencyP99 { parts.append("p99 \(Format.short(latency)) ms") }
            if let cores = level.serverCores { parts.append("server \(Format.short(cores * 100)) %") }
            if let cost = level.microsecondsPerPacket { parts.append("\(Format.short(cost)) µs per packet") }
            if let limit = level.limit { parts.append("over: " + limit) }
            lines.append(row("\(level.viewersPerStream) viewers", parts.joined(separator: ", ")))
        }
        let most = ramp.maximum.map { "\($0)" } ?? "none"
        lines.append(
            row("most viewers per stream", most + (ramp.isToolLimited ? " (the tool's limit)" : "")))
        return lines
    }

    private static func verdict(_ verdict: Report.Verdict) -> [String] {
        var lines: [String] = []
        for note in verdict.notes { lines.append("note: " + note) }
        for failure in verdict.failures { lines.append("FAILED: " + failure) }
        for reason in verdict.reasons { lines.append("VOID: " + reason) }
        return lines
    }
}
