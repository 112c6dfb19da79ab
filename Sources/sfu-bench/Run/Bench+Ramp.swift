// The command `load --ramp`: more and more viewers, until the server cannot keep up.

extension Bench {
    /// The limits beyond which a level does not count; a ramp ends with the first such level.
    enum RampLimit {
        static let lossPercent = 0.1
        /// In milliseconds.
        static let latencyP99 = 50.0

        /// Why a level exceeds the limits; nil if it does not.
        static func reason(_ level: Report.Ramp.Level) -> String? {
            if level.stalled > 0 { return "\(level.stalled) viewers stopped receiving media" }
            if level.lossPercent > lossPercent { return "loss of \(Format.short(level.lossPercent)) %" }
            if let latency = level.latencyP99, latency > latencyP99 {
                return "p99 latency of \(Format.short(latency)) ms"
            }
            return nil
        }
    }

    /// Adds viewers step by step and measures each level, until a limit, the maximum or an interrupt.
    func ramp() async throws -> Report {
        let publishers = try await startPublishers()
        let baseline = await restingUse()
        let step = options.audience.ramp ?? 100
        var result = Report.Ramp(levels: [], maximum: nil, isToolLimited: false)
        var best: Report?
        var viewers = 0
        while viewers < options.audience.rampMaximum, !isInterrupted {
            let more = min(step, options.audience.rampMaximum - viewers)
            let joined = await join(
                try await tickets(.viewer, count: more), rate: options.audience.joinRate)
            viewers += more
            if best == nil { try requireOne(of: joined) }
            await pause(options.timing.warmUp)
            let interval = await measure(options.timing.duration)
            // An interrupted level is too short to count, unless it is the only one.
            guard !isInterrupted || best == nil else { break }
            let report = report(interval, baseline: baseline)
            let level = Self.level(viewers, interval, report)
            result.levels.append(level)
            progress.step(Self.line(for: level))
            guard level.limit == nil, !report.verdict.isVoid, report.clients.failed == 0 else {
                result.isToolLimited = report.verdict.isVoid
                // A first level beyond the limits is still reported, without a maximum.
                if best == nil { best = report }
                break
            }
            result.maximum = viewers
            best = report
        }
        await leave(publishers)
        // The report has the numbers of the last level within the limits; its list of levels shows what ended the ramp.
        var report = best ?? emptyReport()
        report.ramp = result
        report.series = recorder.series
        report.setup.viewersPerStream = result.maximum ?? step
        if result.isToolLimited {
            report.verdict.notes.append("the ramp ended because this tool, not the server, reached its limit")
        }
        return report
    }

    /// Sums up a measured level, and says whether it exceeds a limit: the tool's own, the server's, or a failure.
    private static func level(
        _ viewers: Int, _ interval: Interval, _ report: Report
    ) -> Report.Ramp.Level {
        let media = interval.media(interval.tally)
        var level = Report.Ramp.Level(
            viewersPerStream: viewers, lossPercent: media.lossPercent, latencyP99: media.latency?.p99,
            stalled: media.stalled, serverCores: interval.serverCores,
            microsecondsPerPacket: interval.microsecondsPerPacket,
            generatorBusy: report.generator?.threads.map(\.busy).max() ?? 0)
        level.limit =
            report.verdict.reasons.first ?? RampLimit.reason(level) ?? report.verdict.failures.first
        return level
    }

    private static func line(for level: Report.Ramp.Level) -> String {
        var parts = ["\(level.viewersPerStream) viewers", "loss \(Format.short(level.lossPercent)) %"]
        if let latency = level.latencyP99 { parts.append("p99 \(Format.short(latency)) ms") }
        if let cores = level.serverCores { parts.append("server \(Format.short(cores * 100)) % CPU") }
        parts.append("own \(Format.short(level.generatorBusy * 100)) %")
        if let limit = level.limit { parts.append("over: " + limit) }
        return parts.joined(separator: " · ")
    }
}
