import Base
import Foundation
import Net

// The command `restart`: a server that is restarted while many publish and watch.

extension Bench {
    /// Restarts the server under load, and times until every client has media again.
    ///
    /// Clients are the tool's own and share the generator's threads. Those of `RostrumClient` have a thread each, which
    /// hundreds of them on one machine would make noticeable, and they reconnect as programs do, not as pages do.
    func restart() async throws -> Report {
        let ready = try options.server.endpoint(options.restart.ready, stream: "")
        let watch = ReadinessWatch(ready)
        // Fail before any client is made if readiness cannot be observed.
        guard (try? await entrance.get(ready, token: nil)) != nil else {
            throw RunFailure(
                description:
                    "\(options.restart.ready) does not answer 200, so the server is not ready, or the path is "
                    + "wrong: give another one with --ready")
        }
        var clients = try await everybodyPlays()
        await pause(options.timing.warmUp)
        guard !isInterrupted else { throw RunFailure(description: "interrupted before the restart") }
        // The watch runs before the command does, so that it sees the server go down.
        watch.start()
        defer { watch.stop() }
        recorder.beginWatching()
        var found = Report.Restart(isCommanded: options.restart.command != nil)
        let from = await recorder.mark()
        let outage = try await goThrough(&clients, watch, since: from.time, &found)
        let use = await use(since: outage)
        // The peak is of the return only; the measurement that follows is in steady state.
        let peak = recorder.endWatching()
        let after = await measure(options.timing.duration)
        var report = emptyReport()
        // Each client has a new id for each attempt: these are the ids of the latest sessions.
        let ids = Set(clients.map(\.session.id))
        let times = log.times(of: ids)
        report.clients = Self.clients(clients, times, found)
        report.restart = found
        report.phases = Self.phases(times.filter(\.isViewer))
        report.media = after.media(after.tally)
        report.publishing = publishing(after)
        report.serverUse = use
        var own = Interval(from: from, to: after.to).generatorUse(isPinned: generator.isPinned)
        if let peak { own.takePeak(peak) }
        report.generator = own
        report.latencyCurve = after.tally.latency.cumulative.map { [Double($0.value) / 1e6, $0.share] }
        report.series = recorder.series
        report.verdict.judge(by: own)
        report.verdict.failures += found.failures(after: options.restart.comeBack)
        let lostAgain = times.count { if case .failed = $0.outcome { true } else { false } }
        if report.verdict.failures.isEmpty, lostAgain > 0 {
            report.verdict.failures.append("\(lostAgain) clients came back and were lost again")
        }
        if let stalled = report.media?.stalled, stalled > 0 {
            report.verdict.failures.append("\(stalled) viewers stopped receiving media")
        }
        if let status = found.commandStatus, status != 0 {
            report.verdict.notes.append("the command exited with status \(status)")
        }
        await leave(clients.map(\.session))
        return report
    }

    /// Publishes all streams and lets viewers watch them.
    /// - Returns: the clients, each with the ticket by which it can return.
    /// - Throws: `RunFailure` if a viewer has no media yet: a run could not tell when it is back.
    private func everybodyPlays() async throws -> [Returner] {
        let hosts = try await tickets(.host, count: 1)
        let publishers = try await startPublishers(hosts)
        let guests = try await tickets(.viewer, count: options.audience.viewers)
        let viewers = await join(guests, rate: options.audience.joinRate)
        let awaitsFrame = options.media.bitrate > 0 || options.media.videoFile != nil
        let tickets = Dictionary((hosts + guests).map { ($0.id, $0) }) { one, _ in one }
        let all = [(publishers, false), (viewers, true)].flatMap { sessions, isViewer in
            sessions.compactMap { session in
                tickets[session.id].map {
                    Returner($0, session, isViewer: isViewer, awaitsFrame: awaitsFrame)
                }
            }
        }
        let ready = all.count { client in
            let times = log[client.session.id]
            return !client.isViewer || (awaitsFrame ? times?.firstFrame : times?.firstPacket) != nil
        }
        guard ready == hosts.count + guests.count else {
            throw RunFailure(
                description:
                    "\(hosts.count + guests.count - ready) of \(guests.count) viewers had no media before "
                    + "the restart: \(log.reason ?? "no key frame in time")")
        }
        return all
    }

    /// Restarts the server and waits until all clients are back, or until no more time is allowed.
    ///
    /// Without a command, asks the user to restart it.
    /// - Parameter began: when the restart was requested; its time limit counts from here.
    /// - Throws: `RunFailure` if no restart was noticed, or the server was not ready again in time.
    private func goThrough(
        _ clients: inout [Returner], _ watch: ReadinessWatch, since began: MonotonicTime,
        _ found: inout Report.Restart
    ) async throws -> Outage {
        var command = try options.restart.command.map { try ShellCommand($0) }
        if command == nil {
            let seconds = Format.short(options.restart.within)
            progress.step("restart the server now: \(options.server.url.absoluteString), within \(seconds) s")
        }
        let latest = began.advanced(byNanoseconds: Int64(options.restart.within * 1e9))
        var isTold = false
        // Called after every round of attempts, with the number of clients that are not back; true ends the waiting.
        await ComeBack(entrance, log, watch).run(&clients, reasons: &found.reasons) { missing in
            command?.look()
            let (outage, now) = (watch.seen, MonotonicClock.now())
            if isInterrupted { return true }
            guard let up = outage.up else {
                // The command failed and the server never went down: waiting would be in vain.
                let isHopeless = outage.noticed == nil && (command?.status ?? 0) != 0
                return isHopeless || now > latest
            }
            if !isTold {
                progress.step("ready again after \(Format.short(outage.milliseconds ?? 0)) ms")
                isTold = true
            }
            return missing == 0 || Double(now.nanoseconds(since: up)) / 1e9 > options.restart.comeBack
        }
        found.commandStatus = command?.status
        let outage = watch.seen
        guard let noticed = outage.noticed else {
            let status = found.commandStatus.map { "; the command exited with status \($0)" } ?? ""
            throw RunFailure(description: "no restart was noticed" + status)
        }
        guard let up = outage.up else {
            throw RunFailure(
                description:
                    "the server was not ready again \(Format.short(options.restart.within)) s after the "
                    + "restart began")
        }
        found.noticed = max(Double(noticed.nanoseconds(since: began)) / 1e6, 0)
        found.notReady = outage.milliseconds ?? 0
        found.publishers = .init(clients.filter { !$0.isViewer }, since: up, by: log)
        found.viewers = .init(clients.filter(\.isViewer), since: up, by: log)
        progress.step("\(found.viewers.back) viewers and \(found.publishers.back) publishers are back")
        return outage
    }

    /// What the server, now another process than before, has used until now.
    ///
    /// Its process ID and its socket are looked up again; nil if its use is unknown.
    private func use(since outage: Outage) async -> Report.ServerUse? {
        var fresh = options
        // A process ID from the command line is that of the old process.
        fresh.machine.serverPID = nil
        let probe = await ServerProbe(fresh, client: SignallingClient(connections: 2, timeout: 2))
        guard let usage = await probe.usage(), let down = outage.down else { return nil }
        let seconds = max(Double(MonotonicClock.now().nanoseconds(since: down)) / 1e9, 0.001)
        return Report.ServerUse(
            source: probe.description, cpuSeconds: usage.processorSeconds,
            cores: usage.processorSeconds / seconds, residentBytes: usage.residentBytes)
    }

    /// Counts a client that did not come back as failed.
    private static func clients(
        _ clients: [Returner], _ times: [JoinTimes], _ found: Report.Restart
    ) -> Report.Clients {
        Report.Clients(
            publishers: found.publishers.count, viewers: found.viewers.count,
            joined: found.viewers.back,
            gotFirstFrame: times.count { $0.isViewer && $0.firstFrame != nil },
            failed: found.publishers.count - found.publishers.back + found.viewers.count - found.viewers.back)
    }
}
