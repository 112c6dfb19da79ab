import Base
import Foundation
import Net
import Restream
import Synchronization

/// A run of `sfu-bench publish --protocol rtmp`: a film with the time in its pictures, sent to one or many streams.
final class RTMPBench: ReportingRun {
    /// The connection of one stream.
    private struct Publisher {
        let stream: String
        /// When it began to connect.
        let asked: MonotonicTime
        let meter: RTMPMeter
        let connection: OutgoingStream<RTMPConversation>
    }

    private let options: Options
    private let client: SignallingClient
    private let tokens: TokenSource
    private let probe: ServerProbe
    private let progress: Progress
    private let interrupted = Atomic(false)

    private static let tick = Duration.milliseconds(20)
    /// For connections to close, in seconds.
    private static let farewell = 2.0

    init(_ options: Options) async throws {
        ProcessResources.raiseOpenFileLimit()
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
    func run() async throws -> RTMPReport {
        var publishers: [Publisher] = []
        for stream in options.target.streamNames { publishers.append(try await begin(stream)) }
        let connections = publishers.map(\.connection)
        let film = try FilmThread(options.media, cpu: options.machine.cpus.first) { media in
            for connection in connections { connection.tell(.media(media)) }
        }
        defer { film.stop() }
        await wait(options.timing.connect) {
            publishers.allSatisfy { $0.meter.current.live != nil || $0.meter.current.isOver }
        }
        let live = publishers.filter { $0.meter.current.live != nil }.count
        guard live > 0 || isInterrupted else {
            let reason = publishers.lazy.compactMap { $0.meter.current.failure }.first
            throw RunFailure(
                description:
                    "cannot publish: \(reason ?? film.made.failure ?? "no answer in time")")
        }
        progress.step("\(live) publishing to \(options.server.url.absoluteString) over RTMP")
        await wait(options.timing.warmUp) { false }
        // Counters have run since the connect: the report has their differences.
        let before = (sums(publishers), film.made, await probe.usage(), OwnLoad.now())
        await wait(options.timing.duration) { film.made.failure != nil }
        var report = RTMPReport(options, publishers: publishers.count)
        let own = OwnLoad.now()
        report.seconds = own.elapsed(since: before.3) / 1e9
        report.generator = own.use(
            since: before.3, processors: ProcessResources.processors().count,
            isPinned: !options.machine.cpus.isEmpty)
        report.noteServer(probe.description, before.2, await probe.usage())
        report.conclude(
            publishers.map { publisher in
                let values = publisher.meter.current
                return (values, values.live.map { Double($0.nanoseconds(since: publisher.asked)) / 1e6 })
            }, from: before.0, film.made, from: before.1)
        for publisher in publishers { publisher.connection.tell(.end) }
        // An interrupted run says goodbye, too.
        await wait(Self.farewell, evenInterrupted: true) { publishers.allSatisfy { $0.meter.current.isOver } }
        return report
    }

    /// Connects a publisher, to the address of the options or to the one that Rostrum gives for the stream.
    private func begin(_ stream: String) async throws -> Publisher {
        let destination: RTMPDestination
        if let template = options.target.rtmp {
            destination = try RTMPDestination(
                parsing: template.replacingOccurrences(of: "{stream}", with: stream))
        } else {
            let token = try await tokens.token(for: "bench-host-\(stream)", .host, stream, client)
            destination = try await RTMPDestination.asked(
                of: options.server, for: stream, token: token, client)
            try ServerAddress.checkNamed(
                destination.address.host, isOwned: options.target.isOwned,
                own: LocalAddresses.advertised(for: .any, includeLoopback: true))
        }
        let meter = RTMPMeter()
        return Publisher(
            stream: stream, asked: MonotonicClock.now(), meter: meter,
            connection: try RTMPConversation.begin(to: destination, meter))
    }

    /// Adds up the counters of all publishers.
    private func sums(_ publishers: [Publisher]) -> RTMPReport.Sums {
        publishers.reduce(into: RTMPReport.Sums()) { sums, publisher in
            let values = publisher.meter.current
            sums.bytes += values.bytes
            sums.dropped += values.dropped
        }
    }

    /// Waits until a condition is true, or for a number of seconds, or until an interrupt unless that is ignored.
    private func wait(_ limit: Double, evenInterrupted: Bool = false, until condition: () -> Bool) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while !condition(), MonotonicClock.now() < end, evenInterrupted || !isInterrupted {
            try? await Task.sleep(for: Self.tick)
        }
    }
}
