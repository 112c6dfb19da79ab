import Wire
import Base
import Foundation
import Net
import Synchronization

/// Why a run ended without a usable result; the text is for the user.
struct RunFailure: Error, CustomStringConvertible {
    let description: String
}

/// A run that can be interrupted, and then reports what it has measured until then.
protocol Interruptible: AnyObject, Sendable {
    var isInterrupted: Bool { get }
    /// Called from a signal's handler, on any thread.
    func interrupt()
}

/// A run of the commands that use WebRTC clients on generator threads.
///
/// It owns the clients, the threads, the log of joins and the recorder. The commands are methods in extensions.
final class Bench: Interruptible {
    let options: Options
    let generator: Generator
    let entrance: Entrance
    let log: JoinLog
    let recorder: Recorder
    let progress: Progress
    let probe: ServerProbe
    private let startedAt = Date()
    /// Set by `interrupt`, from another thread.
    private let interrupted = Atomic(false)

    /// How often milestones are collected.
    private static let tick = Duration.milliseconds(20)
    /// One sample a second.
    private static let ticksPerSample = 50
    /// A look at the tool's own load every 100 ms.
    private static let ticksPerLook = 5
    /// Tokens requested concurrently.
    private static let tokenConcurrency = 16

    init(_ options: Options) async throws {
        ProcessResources.raiseOpenFileLimit()
        let recordings = try Recordings(options.media)
        // In a feed the viewers are those of all streams together.
        let viewers = options.audience.viewers * (options.command == .feed ? 1 : options.target.streams)
        let client = SignallingClient(
            connections: min(max(viewers, 64), 512), timeout: max(options.timing.connect, 10))
        self.options = options
        probe = await ServerProbe(options, client: client)
        generator = try Generator(options)
        log = JoinLog()
        entrance = Entrance(
            options, client: client, tokens: await TokenSource(options, client: client), generator: generator,
            log: log, recordings: recordings)
        recorder = Recorder(generator, probe: probe)
        progress = Progress(isQuiet: options.report.isQuiet)
    }

    /// Ends waiting early; the report covers the time until then.
    func interrupt() {
        interrupted.store(true, ordering: .relaxed)
    }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Performs the command, while a task collects milestones and samples.
    func run() async throws -> Report {
        let ticker = Task { await tick() }
        defer { ticker.cancel() }
        let report =
            switch options.command {
            case .publish: try await publish()
            case .play: try await play()
            case .load: options.audience.ramp == nil ? try await load() : try await ramp()
            case .joinStorm:
                options.audience.handshakesOnly ? try await handshakeStorm() : try await joinStorm()
            case .churn: try await churn()
            case .feed: try await feed()
            case .network: try await network()
            case .restart: try await restart()
            case .sync, .interact, .demo:
                throw RunFailure(description: "\(options.command.rawValue) cannot be run here")
            }
        progress.clear()
        return report
    }

    /// Stops the generator's threads and waits for them.
    func stop() {
        generator.stop()
    }

    /// Moves milestones from the threads to the log, and takes samples, until it is cancelled.
    func tick() async {
        var count = 0
        while !Task.isCancelled {
            log.take(generator.shared.takeNotices())
            if count % Self.ticksPerLook == 0 { recorder.watch() }
            if count % Self.ticksPerSample == 0, let point = await recorder.sample() { progress.show(point) }
            count += 1
            try? await Task.sleep(for: Self.tick)
        }
    }

    // MARK: Waiting

    /// Waits for a number of seconds, or until the run is interrupted, which is noticed within 100 ms.
    func pause(_ seconds: Double) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(seconds * 1e9))
        while !isInterrupted {
            let left = end.nanoseconds(since: MonotonicClock.now())
            guard left > 0 else { return }
            try? await Task.sleep(for: .nanoseconds(min(left, 100_000_000)))
        }
    }

    /// Checks a condition every `tick`.
    /// - Returns: false if it did not become true in time, or the run was interrupted.
    func wait(_ seconds: Double, until condition: () -> Bool) async -> Bool {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(seconds * 1e9))
        while !condition() {
            guard MonotonicClock.now() < end, !isInterrupted else { return false }
            try? await Task.sleep(for: Self.tick)
        }
        return true
    }

    // MARK: Clients

    /// Fetches tickets for `count` clients of each stream.
    func tickets(_ role: TokenSource.Role, count: Int) async throws -> [Entrance.Ticket] {
        var wanted: [String] = []
        // In turn through the streams, so that all of them fill up at the same rate.
        for _ in 0..<count { wanted += options.target.streamNames }
        return try await tickets(role, for: wanted)
    }

    /// Fetches a ticket for every name in `wanted`, which may contain a stream more than once.
    /// - Returns: the tickets in the order of their ids, which is not that of `wanted`: requests are concurrent.
    func tickets(
        _ role: TokenSource.Role, for wanted: [String], scope: TokenSource.Scope = .stream
    ) async throws -> [Entrance.Ticket] {
        try await withThrowingTaskGroup(of: Entrance.Ticket.self) { group in
            var tickets: [Entrance.Ticket] = []
            for (index, stream) in wanted.enumerated() {
                if index >= Self.tokenConcurrency, let ticket = try await group.next() {
                    tickets.append(ticket)
                }
                group.addTask { [entrance] in
                    try await entrance.ticket(role, stream: stream, scope: scope)
                }
            }
            for try await ticket in group { tickets.append(ticket) }
            return tickets.sorted { $0.id < $1.id }
        }
    }

    /// Publishes every stream, and waits until all publishers are connected.
    /// - Throws: `RunFailure` if any of them is not.
    func startPublishers() async throws -> [Participant] {
        try await startPublishers(try await tickets(.host, count: 1))
    }

    /// The same with tickets that the caller keeps.
    func startPublishers(_ tickets: [Entrance.Ticket]) async throws -> [Participant] {
        let publishers = await withTaskGroup(of: Participant?.self) { group in
            for ticket in tickets {
                group.addTask { [entrance] in await entrance.publish(ticket) }
            }
            return await group.reduce(into: [Participant]()) { all, one in
                if let one { all.append(one) }
            }
        }
        let ids = Set(tickets.map(\.id))
        _ = await wait(options.timing.connect) { log.times(of: ids).allSatisfy { $0.outcome != .joining } }
        let failed = log.times(of: ids).filter { $0.outcome != .joined }.count
        guard failed == 0 else {
            throw RunFailure(
                description: "\(failed) of \(tickets.count) publishers did not connect: "
                    + (log.reason ?? "no answer within \(Format.short(options.timing.connect)) s"))
        }
        progress.step("\(tickets.count) publishing to \(options.server.url.absoluteString)")
        return publishers
    }

    /// Makes viewers join, and waits until each of them has its first frame or has failed.
    /// - Parameters:
    ///   - rate: joins a second; nil for all at the same time.
    ///   - isEarlier: whether they count among those that play before a storm.
    /// - Returns: the viewers whose signalling succeeded.
    @discardableResult
    func join(
        _ tickets: [Entrance.Ticket], rate: Double?, isEarlier: Bool = false
    ) async -> [Participant] {
        let began = MonotonicClock.now()
        let viewers = await withTaskGroup(of: Participant?.self) { group in
            for (index, ticket) in tickets.enumerated() {
                if let rate {
                    // Due times count from the beginning, so that a late join does not delay those after it.
                    let due = began.advanced(byNanoseconds: Int64(Double(index) / rate * 1e9))
                    let left = due.nanoseconds(since: MonotonicClock.now())
                    if left > 0 { try? await Task.sleep(for: .nanoseconds(left)) }
                }
                guard !isInterrupted else { break }
                group.addTask { [entrance, options] in
                    options.command == .feed
                        ? await entrance.swipe(ticket) : await entrance.view(ticket, isEarlier: isEarlier)
                }
            }
            return await group.reduce(into: [Participant]()) { all, one in
                if let one { all.append(one) }
            }
        }
        await settle(Set(tickets.map(\.id)))
        let seconds = Double(MonotonicClock.now().nanoseconds(since: began)) / 1e9
        progress.step("\(viewers.count) viewers joined in \(Format.short(seconds)) s")
        return viewers
    }

    /// Waits until each client has its first frame, has failed, or has received media without a frame for 5 s.
    ///
    /// Clients without any media after the connect timeout are marked as failed.
    func settle(_ ids: Set<Int>) async {
        let patience: Int64 = 5_000_000_000
        let isOver = await wait(options.timing.connect) {
            let now = MonotonicClock.now()
            return log.times(of: ids).allSatisfy { times in
                if times.firstFrame != nil { return true }
                if case .failed = times.outcome { return true }
                // A stream without video, or whose key frame does not come.
                return times.firstPacket.map { now.nanoseconds(since: $0) > patience } ?? false
            }
        }
        guard !isOver, !isInterrupted else { return }
        for id in ids where log[id]?.firstPacket == nil {
            let phase = log[id]?.dtlsConnected == nil ? "no connection" : "no packet"
            log.fail(id, "\(phase) within \(Format.short(options.timing.connect)) s")
        }
    }

    // MARK: Measuring

    /// Measures for a number of seconds.
    func measure(_ seconds: Double) async -> Interval {
        recorder.isMeasuring = true
        defer { recorder.isMeasuring = false }
        let from = await recorder.mark()
        await pause(seconds)
        // The snapshots are up to 100 ms old, at both ends of the interval.
        return Interval(from: from, to: await recorder.mark())
    }

    /// A report with the run's settings and no results yet.
    func emptyReport() -> Report {
        let media = options.media
        let audience = options.audience
        return Report(
            command: options.command.rawValue, server: options.server.url.absoluteString,
            startedAt: ISO8601DateFormatter().string(from: startedAt),
            setup: Report.Setup(
                streams: options.target.streamNames.count,
                viewersPerStream: options.command == .network ? 1 : audience.viewers,
                videoBitrate: media.bitrate, framesPerSecond: media.framesPerSecond,
                audioBitrate: media.audioBitrate, burstMilliseconds: media.burstMilliseconds,
                transport: options.target.transport.rawValue, srtp: audience.srtp.rawValue,
                decryptEvery: audience.decryptEvery,
                coalesces: audience.coalesces, asksForRepair: audience.asksForRepair,
                threads: options.machine.threads, warmUpSeconds: options.timing.warmUp,
                durationSeconds: options.timing.duration, isFeed: options.command == .feed ? true : nil,
                tellsOfPackets: audience.tellsOfPackets ? true : nil,
                isHandshakesOnly: audience.handshakesOnly ? true : nil))
    }
}
