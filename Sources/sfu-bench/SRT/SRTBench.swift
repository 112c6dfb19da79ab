import Base
import Foundation
import Net
import Restream
import Synchronization

/// A run of `sfu-bench publish --protocol srt`: a film with the time in its pictures, sent to one or many streams.
final class SRTBench: ReportingRun {
    private let options: Options
    private let client: SignallingClient
    private let tokens: TokenSource
    private let probe: ServerProbe
    private let progress: Progress
    private let interrupted = Atomic(false)

    private static let tick = Duration.milliseconds(20)
    /// For packets that are not acknowledged yet, in seconds.
    private static let farewell = 2.0

    init(_ options: Options) async throws {
        self.options = options
        client = SignallingClient(timeout: max(options.timing.connect, 10))
        tokens = await TokenSource(options, client: client)
        probe = await ServerProbe(options, client: client)
        progress = Progress(isQuiet: options.report.isQuiet)
    }

    func interrupt() { interrupted.store(true, ordering: .relaxed) }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Connects all publishers, generates one film for all of them, and measures.
    /// - Throws: `RunFailure` if no stream goes live.
    func run() async throws -> SRTReport {
        var publishers: [SRTPublisher] = []
        for stream in options.target.streamNames { publishers.append(try await begin(stream)) }
        let film = try FilmThread(
            options.media, cpu: options.machine.cpus.first, take: Self.sender(to: publishers))
        defer { film.stop() }
        await wait(options.timing.connect, for: publishers) {
            publishers.allSatisfy { $0.current.live != nil || $0.current.isOver }
        }
        let live = publishers.filter { $0.current.live != nil && !$0.current.isOver }.count
        guard live > 0 || isInterrupted else {
            let reason = publishers.lazy.compactMap { $0.current.failure }.first
            throw RunFailure(
                description:
                    "cannot publish: \(reason ?? film.made.failure ?? "no answer in time")")
        }
        progress.step("\(live) publishing to \(options.server.url.absoluteString) over SRT")
        await wait(options.timing.warmUp, for: publishers) { false }
        let before = (SRTReport.Sums(publishers), film.made, await probe.usage(), OwnLoad.now())
        await wait(options.timing.duration, for: publishers) { film.made.failure != nil }
        var report = SRTReport(options, publishers: publishers.count)
        let own = OwnLoad.now()
        report.seconds = own.elapsed(since: before.3) / 1e9
        report.generator = own.use(
            since: before.3, processors: ProcessResources.processors().count,
            isPinned: !options.machine.cpus.isEmpty)
        report.noteServer(probe.description, before.2, await probe.usage())
        report.conclude(publishers, from: before.0, film.made, from: before.1)
        // No new packets, so that the queues can drain before the connections are closed.
        film.stop()
        await wait(Self.farewell, for: publishers, evenInterrupted: true) {
            publishers.allSatisfy { $0.current.sending.waiting == 0 || $0.current.isOver }
        }
        for publisher in publishers { publisher.close() }
        return report
    }

    /// Returns a function that muxes each sample once and sends the packets to all publishers.
    private static func sender(to publishers: [SRTPublisher]) -> @Sendable (RestreamMedia) -> Void {
        let writer = Mutex<TransportStreamWriter?>(nil)
        return { media in
            let (packets, isKeyFrame) = writer.withLock { writer -> ([UInt8], Bool) in
                switch media {
                case .format(let format):
                    // A film that is restarted has a new transport stream.
                    writer = try? TransportStreamWriter(format)
                    return ([], false)
                case .sample(let sample):
                    return ((try? writer?.write(sample)) ?? [], sample.kind == .keyFrame)
                }
            }
            for publisher in publishers { publisher.send(packets, isKeyFrame: isKeyFrame) }
        }
    }

    /// Connects a publisher, to the address of the options or to the one that Rostrum gives for the stream.
    private func begin(_ stream: String) async throws -> SRTPublisher {
        let destination: SRTDestination
        if let template = options.target.srt {
            destination = try SRTDestination(
                parsing: template.replacingOccurrences(of: "{stream}", with: stream))
        } else {
            let token = try await tokens.token(for: "bench-host-\(stream)", .host, stream, client)
            destination = try await SRTDestination.asked(
                of: options.server, for: stream, token: token, client)
            try ServerAddress.checkNamed(
                destination.host, isOwned: options.target.isOwned,
                own: LocalAddresses.advertised(for: .any, includeLoopback: true))
        }
        return try SRTPublisher(to: destination, at: MonotonicClock.now())
    }

    /// Waits until a condition is true, or for a number of seconds, or until an interrupt unless that is ignored.
    ///
    /// Meanwhile it updates the publishers' state, which the SRT library does not report on its own.
    private func wait(
        _ limit: Double, for publishers: [SRTPublisher], evenInterrupted: Bool = false,
        until condition: () -> Bool
    ) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while true {
            let now = MonotonicClock.now()
            for publisher in publishers { publisher.look(at: now) }
            guard !condition(), now < end, evenInterrupted || !isInterrupted else { return }
            try? await Task.sleep(for: Self.tick)
        }
    }
}
