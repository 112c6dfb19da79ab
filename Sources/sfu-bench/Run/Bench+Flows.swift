import Base
import Net

// The commands `publish`, `play`, `load`, `join-storm` and `churn`.

extension Bench {
    /// Publishes without viewers.
    func publish() async throws -> Report {
        let publishers = try await startPublishers()
        await pause(options.timing.warmUp)
        let interval = await measure(options.timing.duration)
        let report = report(interval, baseline: nil)
        await leave(publishers)
        return report
    }

    /// Watches streams that others publish; memory per viewer is measured from before the joins.
    func play() async throws -> Report {
        let baseline = await probe.usage()
        let tickets = try await tickets(.viewer, count: options.audience.viewers)
        let viewers = await join(tickets, rate: options.audience.joinRate)
        try requireOne(of: viewers)
        await pause(options.timing.warmUp)
        return report(await measure(options.timing.duration), baseline: baseline)
    }

    /// Publishes, lets viewers join at the chosen rate, and measures once all of them play.
    func load() async throws -> Report {
        let publishers = try await startPublishers()
        let tickets = try await tickets(.viewer, count: options.audience.viewers)
        let baseline = await restingUse()
        let viewers = await join(tickets, rate: options.audience.joinRate)
        if !tickets.isEmpty { try requireOne(of: viewers) }
        await pause(options.timing.warmUp)
        let report = report(await measure(options.timing.duration), baseline: baseline)
        await leave(publishers)
        return report
    }

    /// Lets all viewers join at the same time, while others may be playing already.
    ///
    /// The measured time includes the joins, so that it shows how much they disturb the earlier viewers.
    func joinStorm() async throws -> Report {
        let publishers = try await startPublishers()
        let audience = options.audience
        let earlier = try await tickets(.viewer, count: audience.playing)
        let storm = try await tickets(.viewer, count: audience.viewers)
        if !earlier.isEmpty { await join(earlier, rate: audience.joinRate, isEarlier: true) }
        await pause(options.timing.warmUp)
        let baseline = await probe.usage()
        recorder.isMeasuring = true
        recorder.beginWatching()
        let from = await recorder.mark()
        let viewers = await join(storm, rate: nil)
        try requireOne(of: viewers)
        let joined = await recorder.mark()
        let peak = recorder.endWatching()
        // Effects on the other viewers may appear a moment later.
        await pause(1)
        let interval = Interval(from: from, to: await recorder.mark())
        recorder.isMeasuring = false
        let ids = Set(storm.map(\.id))
        var report = report(interval, baseline: baseline, viewers: ids, peak: peak)
        report.joins = Self.joins(log.times(of: ids))
        if !earlier.isEmpty { report.earlier = interval.media(interval.earlier) }
        // A join's cost is counted until the last viewer has joined, without the quiet second after it.
        let during = Interval(from: from, to: joined)
        report.serverUse?.cpuMillisecondsPerJoin = during.serverSeconds.map {
            $0 * 1_000 / Double(max(storm.count, 1))
        }
        // CPU per packet would mislead: joins used the CPU, and the new viewers have received few packets.
        report.serverUse?.microsecondsPerPacket = nil
        if let grown = report.serverUse?.residentBytes, let baseline {
            report.serverUse?.residentBytesPerViewer = (grown - baseline.residentBytes) / max(storm.count, 1)
        }
        await leave(publishers)
        return report
    }

    /// The rate at which handshakes were completed.
    /// - Parameter start: when the first one began; nil to count from the first HTTP request.
    /// - Returns: nil if no handshake was completed.
    static func joins(_ times: [JoinTimes], since start: MonotonicTime? = nil) -> Report.Joins? {
        let ends = times.compactMap(\.dtlsConnected)
        guard let first = start ?? times.map(\.requested).min(), let last = ends.max() else { return nil }
        let seconds = max(Double(last.nanoseconds(since: first)) / 1e9, 1e-6)
        return Report.Joins(
            handshakes: ends.count, seconds: seconds, perSecond: Double(ends.count) / seconds)
    }

    /// Replaces the oldest viewer by a new one, at the join rate, for the measured time.
    func churn() async throws -> Report {
        let publishers = try await startPublishers()
        let baseline = await restingUse()
        let rate = options.audience.joinRate
        // The initial joins are not measured, so they may be faster.
        var present = await join(
            try await tickets(.viewer, count: options.audience.viewers), rate: max(rate, 50))
        try requireOne(of: present)
        await pause(options.timing.warmUp)
        recorder.isMeasuring = true
        recorder.beginWatching()
        let from = await recorder.mark()
        let end = from.time.advanced(byNanoseconds: Int64(options.timing.duration * 1e9))
        let streams = options.target.streamNames
        var turn = 0
        var due = MonotonicClock.now()
        await withTaskGroup(of: Participant?.self) { group in
            while MonotonicClock.now() < end, !isInterrupted {
                // The viewer that joined first leaves, and a new one joins.
                let leaver = present.isEmpty ? nil : present.removeFirst()
                let stream = streams[turn % streams.count]
                turn += 1
                group.addTask { [entrance] in
                    if let leaver { await entrance.leave(leaver) }
                    guard let ticket = try? await entrance.ticket(.viewer, stream: stream) else { return nil }
                    return await entrance.view(ticket)
                }
                // A slow server must not make tasks pile up.
                if turn > Self.churnConcurrency, let arrived = await group.next() ?? nil {
                    present.append(arrived)
                }
                due = due.advanced(byNanoseconds: Int64(1e9 / rate))
                let left = due.nanoseconds(since: MonotonicClock.now())
                if left > 0 { try? await Task.sleep(for: .nanoseconds(left)) }
            }
            for await arrived in group {
                if let arrived { present.append(arrived) }
            }
        }
        let interval = Interval(from: from, to: await recorder.mark())
        let peak = recorder.endWatching()
        recorder.isMeasuring = false
        // The last viewers count like all others, and need as long as they did to get their first frame.
        await settle(Set(present.map(\.id)))
        var report = report(interval, baseline: baseline, peak: peak)
        let times = log.times().filter { $0.isViewer && $0.requested >= from.time }
        report.joins = Self.joins(times)
        report.phases = Self.phases(times)
        // Joins dominate the CPU time and the memory, so neither says what a packet or a viewer costs.
        report.serverUse?.microsecondsPerPacket = nil
        report.serverUse?.cpuMillisecondsPerJoin = interval.serverSeconds.map {
            $0 * 1_000 / Double(max(times.count, 1))
        }
        report.serverUse?.residentBytesPerViewer = nil
        await leave(publishers)
        return report
    }

    /// Joins in progress at a time.
    private static var churnConcurrency: Int { 64 }

    /// - Throws: `RunFailure` if no viewer joined: there would be nothing to measure.
    func requireOne(of viewers: [Participant]) throws {
        guard viewers.isEmpty else { return }
        throw RunFailure(description: "no viewer joined: \(log.reason ?? "interrupted")")
    }

    /// The server's use while it has only publishers, a second after the latest change.
    func restingUse() async -> ProcessFiles.Usage? {
        await pause(1)
        return await probe.usage()
    }

    /// Ends sessions at the server, concurrently.
    func leave(_ participants: [Participant]) async {
        await withTaskGroup(of: Void.self) { group in
            for participant in participants {
                group.addTask { [entrance] in await entrance.leave(participant) }
            }
        }
    }
}
