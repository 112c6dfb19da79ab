import Base

// The `feed` command: viewers who swipe.

extension Bench {
    /// Publishes the streams unless live ones are named, lets viewers swipe through the feed, and measures their waits.
    func feed() async throws -> Report {
        let publishers = options.target.liveStreams.isEmpty ? try await startPublishers() : []
        // Streams that have just gone live get a second to appear in the feed and to send a key frame.
        await pause(publishers.isEmpty ? 0 : 1)
        // Viewers enter at different streams, in turn.
        let names = options.target.streamNames
        let wanted = (0..<options.audience.viewers).map { names[$0 % names.count] }
        let tickets = try await tickets(.viewer, for: wanted, scope: .feed)
        let baseline = await probe.usage()
        let viewers = await join(tickets, rate: options.audience.joinRate)
        try requireOne(of: viewers)
        await pause(options.timing.warmUp)
        let interval = await measure(options.timing.duration)
        var report = report(interval, baseline: baseline)
        report.swiping = swiping(interval)
        if let swiping = report.swiping { report.verdict.failures += Self.failures(swiping) }
        if publishers.isEmpty { report.publishing = nil }
        if interval.tally.swiping.unnamed > 0 {
            report.verdict.notes.append(
                "media from other publishers does not carry a stream name; the server was trusted on which stream it was"
            )
        }
        await leave(publishers)
        return report
    }

    /// Delays and counts of the measured time; violations and peaks of the whole run.
    private func swiping(_ interval: Interval) -> Report.Swiping {
        let tally = interval.tally.swiping
        let whole = interval.to.snapshot.tally.swiping
        func delays(_ delays: SwipeTally.Delays) -> Report.Swiping.Delays {
            Report.Swiping.Delays(
                packet: Quantiles(milliseconds: delays.packet), way: Quantiles(milliseconds: delays.way),
                frame: Quantiles(milliseconds: delays.frame),
                audio: Quantiles(milliseconds: delays.audio))
        }
        return Report.Swiping(
            preload: options.audience.swiping.preload.rawValue, swipes: Int(clamping: tally.swipes),
            perSecond: interval.perSecond(tally.swipes), jumps: Int(clamping: tally.jumps),
            calledOff: Int(clamping: tally.calledOff), unfinished: Int(clamping: tally.unfinished),
            refused: Int(clamping: tally.refused), moved: Int(clamping: tally.moved),
            preloaded: delays(tally.preloaded), cold: delays(tally.cold),
            peekToFrame: Quantiles(milliseconds: tally.preload), skew: Quantiles(milliseconds: tally.skew),
            mostAttached: whole.mostAttached, momentsOverTwo: Int(clamping: whole.overTwo),
            strays: Int(clamping: whole.strays), brokenStarts: Int(clamping: whole.brokenStarts),
            keyFrameRequestsAtMost: Int(clamping: whole.requests.max() ?? 0))
    }

    /// What must not happen at any load, as sentences; each fails the run.
    static func failures(_ swiping: Report.Swiping) -> [String] {
        var failures: [String] = []
        if swiping.mostAttached > 2 {
            failures.append(
                "a viewer received \(swiping.mostAttached) streams at once, over two \(swiping.momentsOverTwo) times"
            )
        }
        if swiping.strays > 0 {
            failures.append("\(swiping.strays) packets came from streams released more than 200 ms earlier")
        }
        if swiping.brokenStarts > 0 {
            failures.append("\(swiping.brokenStarts) streams started without a key frame")
        }
        return failures
    }
}
