import Base
import Foundation
import Net
import Peer
import Synchronization

/// A run of `sfu-bench play --protocol hls`: viewers that load what low-latency players load; some decode it as well.
final class HLSBench: ReportingRun {
    private let options: Options
    private let client: SignallingClient
    private let probe: ServerProbe
    private let tokens: TokenSource
    private let progress: Progress
    private let interrupted = Atomic(false)

    /// Between two looks at a condition.
    private static let tick = Duration.milliseconds(50)

    init(_ options: Options) async throws {
        // Every viewer has up to two connections.
        ProcessResources.raiseOpenFileLimit()
        self.options = options
        client = SignallingClient(timeout: max(options.timing.connect, 10))
        probe = await ServerProbe(options, client: client)
        tokens = await TokenSource(options, client: client)
        progress = Progress(isQuiet: options.report.isQuiet)
    }

    func interrupt() { interrupted.store(true, ordering: .relaxed) }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Starts all viewers, measures once they play, and stops them.
    /// - Throws: `RunFailure` if no viewer received any media.
    func run() async throws -> HLSReport {
        let tickets = try await makeTickets()
        let shared = HLSShared(threads: options.machine.threads + 1)
        var report = HLSReport(options, viewers: tickets.count)
        let baseline = await probe.usage()
        let threads = try startThreads(tickets, shared)
        defer { for thread in threads { thread.stop() } }
        // The last viewer begins after its delay, and then has the connect timeout.
        let longest = Double(tickets.last?.delay ?? 0) / 1e9 + options.timing.connect
        await wait(longest) { shared.sums.withLock { $0.whole.started } >= tickets.count }
        guard shared.sums.withLock({ $0.whole.started }) > 0 || isInterrupted else {
            throw RunFailure(description: "no viewer received anything: \(Self.reason(shared))")
        }
        progress.step("\(shared.sums.withLock { $0.whole.started }) of \(tickets.count) play")
        await wait(options.timing.warmUp) { false }
        let before = await probe.usage()
        let own = OwnLoad.now()
        let began = MonotonicClock.now()
        // Threads add up what they see for the run as a whole, and during this time for the measurement, too.
        shared.isMeasuring.store(true, ordering: .releasing)
        await wait(options.timing.duration) { false }
        shared.isMeasuring.store(false, ordering: .releasing)
        report.seconds = Double(MonotonicClock.now().nanoseconds(since: began)) / 1e9
        report.generator = OwnLoad.now().use(
            since: own, processors: ProcessResources.processors().count,
            isPinned: !options.machine.cpus.isEmpty)
        report.noteServer(probe.description, baseline, before, await probe.usage())
        report.conclude(shared.sums.withLock { $0 })
        return report
    }

    /// The most frequent reason for which requests failed.
    private static func reason(_ shared: HLSShared) -> String {
        // Equal counts are decided by the text, so that the message does not vary.
        let refusals = shared.sums.withLock { $0.whole.refusals }
        return refusals.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? "no answer in time"
    }

    // MARK: Beginning

    /// Prepares the viewers: in turn for all streams, and with delays according to the join rate.
    private func makeTickets() async throws -> [HLSCrowd.Ticket] {
        var tickets: [HLSCrowd.Ticket] = []
        for index in 0..<options.audience.viewers {
            for stream in options.target.streamNames {
                let url = try options.playlistURL(of: stream)
                let header = try await credentials(for: stream, index).map { "Authorization: Bearer \($0)" }
                let delay = Int64(Double(tickets.count) * 1e9 / options.audience.joinRate)
                tickets.append(HLSCrowd.Ticket(url: url.absoluteString, header: header, delay: delay))
            }
        }
        return tickets
    }

    /// A viewer's token; nil where none is needed.
    ///
    /// A server with `--dev` lets every viewer watch.
    private func credentials(for stream: String, _ index: Int) async throws -> String? {
        switch tokens {
        case .development, .none: nil
        case .fixed, .signed: try await tokens.token(for: "bench-\(index)", .viewer, stream, client)
        }
    }

    /// Starts the threads.
    ///
    /// Viewers that decode have one of their own, so that decoding does not delay the others.
    private func startThreads(_ tickets: [HLSCrowd.Ticket], _ shared: HLSShared) throws -> [HLSThread] {
        let count = options.machine.threads
        // The first viewers decode; the rest is dealt out to the threads.
        let looking = min(options.audience.decoders, tickets.count)
        let rest = tickets.dropFirst(looking)
        let clock = WallClock(
            unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9), at: MonotonicClock.now())
        let began = MonotonicClock.now()
        func start(_ thread: Int, _ name: String, _ tickets: [HLSCrowd.Ticket]) throws -> HLSThread {
            let cpus = options.machine.cpus
            return try HLSThread(
                name: Generator.threadPrefix + name, cpu: cpus.isEmpty ? nil : cpus[thread % cpus.count],
                HLSCrowd.Setup(
                    thread: thread, tickets: tickets, isDecoding: thread == count,
                    loadsWholeSegments: options.audience.loadsWholeSegments, began: began, clock: clock),
                shared: shared)
        }
        var threads: [HLSThread] = []
        for index in 0..<count {
            let share = rest.enumerated().filter { $0.offset % count == index }.map(\.element)
            if !share.isEmpty { threads.append(try start(index, String(index), share)) }
        }
        if looking > 0 { threads.append(try start(count, "looks", Array(tickets.prefix(looking)))) }
        return threads
    }

    /// Waits until a condition is true, or for a number of seconds, or until the run is interrupted.
    private func wait(_ limit: Double, until condition: () -> Bool) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while !condition(), MonotonicClock.now() < end, !isInterrupted {
            try? await Task.sleep(for: Self.tick)
        }
    }
}
