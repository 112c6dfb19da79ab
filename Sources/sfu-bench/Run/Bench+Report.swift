import Base

// From measurements to a report.

extension Bench {
    /// - Parameters:
    ///   - baseline: the server's use before viewers joined; nil if it is unknown or does not matter.
    ///   - viewers: ids of the viewers whose joins are reported; nil for all.
    ///   - peak: the tool's own load when it was busiest; nil to judge by its load during the interval.
    func report(
        _ interval: Interval, baseline: ProcessFiles.Usage?, viewers: Set<Int>? = nil,
        peak: Report.GeneratorUse? = nil
    ) -> Report {
        var report = emptyReport()
        let all = log.times()
        let joining = (viewers.map { log.times(of: $0) } ?? all).filter(\.isViewer)
        report.clients = Self.clients(all, isHandshakesOnly: options.audience.handshakesOnly)
        report.phases = Self.phases(joining)
        if options.command.plays { report.media = interval.media(interval.tally) }
        if options.command.publishes { report.publishing = publishing(interval) }
        report.serverUse = serverUse(interval, baseline: baseline, viewers: report.clients.joined)
        var use = interval.generatorUse(isPinned: !options.machine.cpus.isEmpty && generator.isPinned)
        if let peak { use.takePeak(peak) }
        report.generator = use
        report.latencyCurve = interval.tally.latency.cumulative.map { [Double($0.value) / 1e6, $0.share] }
        report.series = recorder.series
        report.verdict = verdict(report, use)
        return report
    }

    /// Judges the tool's load, and lists as failures what no load excuses.
    private func verdict(_ report: Report, _ use: Report.GeneratorUse) -> Report.Verdict {
        var verdict = Report.Verdict()
        verdict.judge(by: use)
        if report.clients.failed > 0 {
            verdict.failures.append(
                "\(report.clients.failed) of \(report.clients.publishers + report.clients.viewers) clients failed; "
                    + "first reason: \(log.reason ?? "unknown")")
        }
        if let media = report.media {
            if media.packets == 0 { verdict.failures.append("no viewer received a packet") }
            if media.stalled > 0 {
                verdict.failures.append("\(media.stalled) viewers stopped receiving media")
            }
        }
        if probe.description == "unknown" {
            verdict.notes.append("the server's CPU and memory are unknown: set --server-pid or --metrics")
        }
        return verdict
    }

    /// Counts clients; with handshakes alone a viewer has joined once DTLS is complete, as no media follows.
    private static func clients(_ all: [JoinTimes], isHandshakesOnly: Bool) -> Report.Clients {
        var clients = Report.Clients()
        for times in all {
            if times.isViewer {
                clients.viewers += 1
                if times.firstPacket ?? (isHandshakesOnly ? times.dtlsConnected : nil) != nil {
                    clients.joined += 1
                }
                if times.firstFrame != nil { clients.gotFirstFrame += 1 }
            } else {
                clients.publishers += 1
            }
            if case .failed = times.outcome { clients.failed += 1 }
        }
        return clients
    }

    /// Quantiles of each step of joining, over the clients that took it.
    ///
    /// HTTP, ICE and DTLS are measured from the step before. The first packet and frame are measured from the request,
    /// because that is the wait of a person.
    static func phases(_ joining: [JoinTimes]) -> [Report.Phase] {
        let steps: [(String, String, (JoinTimes) -> Double?)] = [
            ("http", "HTTP", { $0.milliseconds(to: \.answered) }),
            ("ice", "ICE", { $0.milliseconds(from: \.answered, to: \.iceConnected) }),
            ("dtls", "DTLS", { $0.milliseconds(from: \.iceConnected, to: \.dtlsConnected) }),
            ("firstPacket", "first packet, since the request", { $0.milliseconds(to: \.firstPacket) }),
            ("firstFrame", "first complete frame, since the request", { $0.milliseconds(to: \.firstFrame) }),
        ]
        return steps.compactMap { name, title, value in
            Quantiles(joining.compactMap(value)).map {
                Report.Phase(name: name, title: title, milliseconds: $0)
            }
        }
    }

    /// What publishers sent; key-frame requests count from the start of the run, since most of them come with joins.
    func publishing(_ interval: Interval) -> Report.Publishing {
        let tally = interval.tally
        return Report.Publishing(
            packets: Int(clamping: tally.packetsSent),
            megabitsPerSecond: interval.perSecond(tally.bytesSent) * 8 / 1e6,
            frames: Int(clamping: tally.framesSent), keyFrames: Int(clamping: tally.keyFramesSent),
            keyFrameRequests: Int(clamping: interval.to.snapshot.tally.keyFrameRequests),
            nacks: Int(clamping: tally.nacksReceived), resent: Int(clamping: tally.packetsResent),
            lateness: Quantiles(milliseconds: tally.lateness))
    }

    /// What the server used; nil if that is unknown.
    ///
    /// Memory per viewer is the growth since the baseline, divided by the viewers that joined.
    private func serverUse(
        _ interval: Interval, baseline: ProcessFiles.Usage?, viewers: Int
    ) -> Report.ServerUse? {
        guard let seconds = interval.serverSeconds, let cores = interval.serverCores,
            let after = interval.to.server
        else { return nil }
        let grown = baseline.map { after.residentBytes - $0.residentBytes }
        return Report.ServerUse(
            source: probe.description, cpuSeconds: seconds, cores: cores,
            microsecondsPerPacket: options.command.plays ? interval.microsecondsPerPacket : nil,
            residentBytes: after.residentBytes,
            residentBytesPerViewer: viewers > 0 ? grown.map { $0 / viewers } : nil)
    }
}
