import Base

// `join-storm --handshakes-only`: what a handshake costs the server, and how many it completes in a second.

extension Bench {
    /// Sessions negotiated concurrently.
    private static var negotiations: Int { 64 }
    /// Seconds to measure the load of earlier viewers, and to let the server settle after signalling.
    private static var restSeconds: Double { 1 }

    /// Negotiates all sessions first, then performs their handshakes, so that HTTP is not part of the measured cost.
    ///
    /// The load of earlier viewers is measured before, and subtracted.
    func handshakeStorm() async throws -> Report {
        let publishers = try await startPublishers()
        let audience = options.audience
        let earlier = try await tickets(.viewer, count: audience.playing)
        let storm = try await tickets(.viewer, count: audience.viewers)
        if !earlier.isEmpty { await join(earlier, rate: audience.joinRate, isEarlier: true) }
        await pause(options.timing.warmUp)
        let before = await recorder.mark()
        await pause(Self.restSeconds)
        let rested = await recorder.mark()
        let prepared = await prepare(storm)
        try requireOne(of: prepared.map(\.participant))
        await pause(Self.restSeconds)
        recorder.isMeasuring = true
        recorder.beginWatching()
        let from = await recorder.mark()
        // The generator's threads queue them in `HandshakeLine`.
        for client in prepared { generator.add(client.setup) }
        let ids = Set(prepared.map(\.setup.id))
        _ = await wait(options.timing.connect) { log.times(of: ids).allSatisfy { $0.outcome != .joining } }
        let connected = await recorder.mark()
        let peak = recorder.endWatching()
        for id in ids where log[id]?.outcome == .joining {
            log.fail(id, "no connection within \(Format.short(options.timing.connect)) s")
        }
        // Effects on the other viewers may appear a moment later.
        await pause(1)
        let interval = Interval(from: from, to: await recorder.mark())
        recorder.isMeasuring = false
        var report = report(interval, baseline: nil, viewers: ids, peak: peak)
        describe(
            &report, log.times(of: ids), resting: Interval(from: before, to: rested),
            during: Interval(from: from, to: connected))
        if !earlier.isEmpty { report.earlier = interval.media(interval.earlier) }
        await leave(prepared.map(\.participant) + publishers)
        return report
    }

    /// Negotiates sessions over HTTP, without connecting; one that fails is left out and logged.
    private func prepare(
        _ tickets: [Entrance.Ticket]
    ) async -> [(participant: Participant, setup: ClientSetup)] {
        await withTaskGroup(of: (participant: Participant, setup: ClientSetup)?.self) { group in
            var prepared: [(participant: Participant, setup: ClientSetup)] = []
            for (index, ticket) in tickets.enumerated() {
                if index >= Self.negotiations, let client = await group.next() ?? nil {
                    prepared.append(client)
                }
                group.addTask { [entrance] in await entrance.prepare(ticket) }
            }
            for await case let client? in group { prepared.append(client) }
            return prepared
        }
    }

    /// Puts the handshake results into the report, and removes what means nothing for such a run.
    /// - Parameters:
    ///   - resting: while only earlier viewers played.
    ///   - during: from the first handshake to the last.
    private func describe(
        _ report: inout Report, _ times: [JoinTimes], resting: Interval, during: Interval
    ) {
        report.joins = Self.joins(times, since: during.from.time)
        // Clients waited in line between the answer and ICE, so only the HTTP and DTLS phases describe the server.
        report.phases.removeAll { $0.name != "http" && $0.name != "dtls" }
        report.media = nil
        report.serverUse?.microsecondsPerPacket = nil
        report.serverUse?.residentBytesPerViewer = nil
        if let handshakes = report.joins?.handshakes {
            report.serverUse?.microsecondsPerHandshake = during.serverMicroseconds(
                per: handshakes, besides: resting.serverCores)
        }
        guard let use = report.generator else { return }
        report.judgeHandshakes(by: use)
    }
}

extension Interval {
    /// The server's CPU time per item, in microseconds, without its background load.
    /// - Parameter cores: the background load; nil for none.
    /// - Returns: nil if the background load accounts for all of it, or the server's use is unknown.
    func serverMicroseconds(per count: Int, besides cores: Double?) -> Double? {
        guard let serverSeconds, count > 0 else { return nil }
        let others = (cores ?? 0) * to.own.elapsed(since: from.own) / 1e9
        return serverSeconds > others ? (serverSeconds - others) / Double(count) * 1e6 : nil
    }
}

extension Report {
    /// Judges the run by this tool's own load.
    ///
    /// An overloaded tool hides how many handshakes a second the server can perform, but not what each one costs it:
    /// only lost datagrams make the run void.
    mutating func judgeHandshakes(by use: GeneratorUse) {
        let pressure = VoidRule.pressure(use)
        joins?.isToolLimited = !pressure.isEmpty
        verdict.notes += pressure.map { "handshakes per second are at the tool's limit: \($0)" }
        verdict.reasons = VoidRule.losses(use)
        verdict.isVoid = !verdict.reasons.isEmpty
    }
}
