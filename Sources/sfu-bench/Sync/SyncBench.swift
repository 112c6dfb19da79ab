import Base
import Foundation
import Net
import RostrumClient
import Synchronization

/// A run of `sfu-bench sync`: followers of one stream, and commands whose changes they see.
///
/// `RostrumClient` creates and ends the stream, as an app does. Followers and commands are what is measured, and use
/// plain sockets of this tool's own, which cost the tool less than the server.
final class SyncBench: ReportingRun {
    private let options: Options
    private let client: SignallingClient
    private let probe: ServerProbe
    private let tokens: TokenSource
    private let server: RostrumServer
    private let address: TransportAddress
    private let stream: String
    private let progress: Progress
    private let interrupted = Atomic(false)

    /// In seconds; a change that has not arrived by then counts as lost.
    private static let patience = 10.0
    private static let threadPrefix = "bench-"
    /// The identity whose hand goes up and down.
    ///
    /// It is an operator's, because the server limits how often others may do that.
    private static let viewer = "bench-viewer"

    init(_ options: Options) async throws {
        ProcessResources.raiseOpenFileLimit()
        var options = options
        // A new name for each run, so that no state of an earlier run is left.
        options.target.stream += "-" + String(UInt32.random(in: .min ... .max), radix: 16)
        let client = SignallingClient(timeout: max(options.timing.connect, 10))
        self.options = options
        self.client = client
        stream = options.target.stream
        address = try options.server.plainAddress(for: .sync)
        probe = await ServerProbe(options, client: client)
        tokens = await TokenSource(options, client: client)
        server = RostrumServer(options.server.url)
        progress = Progress(isQuiet: options.report.isQuiet)
    }

    func interrupt() { interrupted.store(true, ordering: .relaxed) }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Connects all followers, then sends the commands one at a time, and waits after each until all have seen it.
    func run() async throws -> SyncReport {
        let host = server.stream(stream, as: try await token("bench-host", .host))
        let viewer = try await token(Self.viewer, .admin)
        // No commands of the host follow, and it has no session: without a long grace period the stream would end.
        try await host.create(hostGraceSeconds: 3_600)
        try await host.goLive()
        let shared = SyncShared()
        let baseline = await probe.usage()
        let began = MonotonicClock.now()
        let threads = try startThreads(shared, viewer)
        defer { for thread in threads { thread.stop() } }
        var report = SyncReport(options)
        // Besides the timeout, followers get the time to connect at 500 a second.
        await wait(options.timing.connect + Double(options.following.clients) / 500) {
            shared.tally.withLock { $0.sockets.connected + $0.sockets.failed } >= options.following.clients
        }
        report.connectSeconds = seconds(since: began)
        progress.step(
            "\(shared.tally.withLock { $0.sockets.connected }) connected in \(Format.short(report.connectSeconds)) s"
        )
        await wait(options.timing.warmUp) { false }
        let before = await probe.usage()
        report.noteMemory(baseline, before, clients: shared.tally.withLock { $0.sockets.connected })
        let threadsBefore = ProcessFiles.ownThreads(prefix: Self.threadPrefix)
        let measuring = MonotonicClock.now()
        report.commands = 0
        for number in 0..<options.following.commands where !isInterrupted {
            let outcome = await command(number, viewer, threads, shared)
            // An interrupted run is judged by what it completed.
            if isInterrupted, !outcome.isComplete { break }
            report.commands += 1
            report.add(outcome)
            await wait(options.following.pause ?? options.following.usualPause) { false }
        }
        report.noteUse(
            threadsBefore, ProcessFiles.ownThreads(prefix: Self.threadPrefix),
            seconds: seconds(since: measuring))
        report.noteServer(before, await probe.usage())
        // Followers that are lost during the hold fail the run.
        if options.following.hold > 0 {
            progress.step("holding for \(Format.short(options.following.hold)) s")
            await wait(options.following.hold) { false }
        }
        report.conclude(shared.tally.withLock { $0 })
        try? await host.end()
        return report
    }

    /// Starts the threads: readers for most followers, and one for the sample.
    ///
    /// The first one also sends the commands, and its first follower is whose hand they move: somebody without any
    /// connection leaves after a while, and a hand that sinks with them is no command's change.
    /// - Parameter token: of whose hand it is; nil where the server wants none.
    private func startThreads(_ shared: SyncShared, _ token: String?) throws -> [SyncThread] {
        let following = options.following
        // At least one follower is left for the readers.
        let sample = min(following.sample, following.clients - 1)
        let readers = options.machine.threads
        let (anonymous, named) = (handshake(nil), handshake(token))
        let setup = { [address] (followers: Int, isSample: Bool, commands: Bool) in
            SyncReader.Setup(
                address: address, handshake: anonymous, firstHandshake: commands ? named : anonymous,
                followers: followers, isSample: isSample, commands: commands)
        }
        func cpu(_ index: Int) -> Int? {
            let cpus = options.machine.cpus
            return cpus.isEmpty ? nil : cpus[index % cpus.count]
        }
        var threads: [SyncThread] = []
        for index in 0..<readers {
            let share =
                (following.clients - sample) * (index + 1) / readers
                - (following.clients - sample) * index / readers
            threads.append(
                try SyncThread(
                    name: Self.threadPrefix + String(index), cpu: cpu(index), setup(share, false, index == 0),
                    shared: shared))
        }
        guard sample > 0 else { return threads }
        threads.append(
            try SyncThread(
                name: Self.threadPrefix + "sample", cpu: cpu(readers), setup(sample, true, false),
                shared: shared))
        return threads
    }

    /// A follower's handshake.
    /// - Parameter token: nil for most, who need none: a named follower costs the server more than an anonymous one.
    private func handshake(_ token: String?) -> [UInt8] {
        SocketCrowd.handshake("/v1/streams/\(stream)/sync", to: address, token: token)
    }

    // MARK: Commands

    /// Raises or lowers a hand, and waits until all followers have seen that.
    private func command(
        _ index: Int, _ token: String?, _ threads: [SyncThread], _ shared: SyncShared
    ) async -> SyncReport.Command {
        let isUp = index % 2 == 0
        let path = "/v1/streams/\(stream)/hands" + (isUp ? "" : "/\(Self.viewer)")
        var lines = ["\(isUp ? "POST" : "DELETE") \(path) HTTP/1.1", "Host: \(address)"]
        if let token { lines.append("Authorization: Bearer \(token)") }
        if isUp { lines += ["Content-Type: application/json", "Content-Length: 2"] }
        let request = lines.joined(separator: "\r\n") + "\r\n\r\n" + (isUp ? "{}" : "")
        // Text that messages with this change contain; a follower that was too slow gets a snapshot instead.
        let change = "\"raisedHands\":{\"\(Self.viewer)\":"
        let command = SyncCommand(
            number: index + 1, request: Array(request.utf8),
            marker: Array((change + (isUp ? "{" : "null")).utf8),
            snapshotMarker: Array((isUp ? change + "{" : "\"raisedHands\":{}").utf8))
        let wanted = shared.tally.withLock { $0.sockets.connected - $0.sockets.lost }
        threads[0].send(command)
        // The tally is that of the previous command until the thread begins this one.
        await wait(Self.patience) {
            shared.command?.command.number == command.number
                && shared.tally.withLock {
                    $0.seenNow >= min(wanted, $0.sockets.connected - $0.sockets.lost) && $0.answer != nil
                }
        }
        return shared.tally.withLock { tally in
            SyncReport.Command(
                isComplete: tally.seenNow >= wanted && tally.answer?.status == 200,
                answered: tally.answer.map { Double($0.after) / 1e6 },
                first: tally.firstSeen.map { Double($0) / 1e6 }, last: tally.lastSeen.map { Double($0) / 1e6 }
            )
        }
    }

    private func token(_ identity: String, _ role: TokenSource.Role) async throws -> String? {
        try await tokens.token(for: identity, role, stream, client)
    }

    // MARK: Waiting

    /// Waits until a condition is true, for a number of seconds, or until the run is interrupted.
    ///
    /// An interrupted run still ends its stream and writes its report.
    private func wait(_ limit: Double, until condition: () -> Bool) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while !condition(), MonotonicClock.now() < end, !isInterrupted {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    private func seconds(since began: MonotonicTime) -> Double {
        Double(MonotonicClock.now().nanoseconds(since: began)) / 1e9
    }
}
