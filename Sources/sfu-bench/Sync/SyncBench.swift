import Base
import Foundation
import Net
import RostrumClient
import Synchronization

/// A run of `sfu-bench sync`: followers of one stream, and commands whose changes they see.
///
/// The stream is made and ended as an app does it, by `RostrumClient`; the followers and the commands are what is
/// measured, and come by bare sockets of the tool's own, which cost it less than the server.
struct SyncBench {
    private let options: Options
    private let client: SignallingClient
    private let probe: ServerProbe
    private let tokens: TokenSource
    private let server: RostrumServer
    private let address: TransportAddress
    private let stream: String
    private let progress: Progress

    /// A change that has not come by then will not come.
    private static let patience = 10.0
    private static let threadPrefix = "bench-"
    /// An operator's: others may not toggle a hand without end.
    private static let viewer = "bench-viewer"

    init(_ options: Options) async throws {
        ProcessResources.raiseOpenFileLimit()
        var options = options
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

    func run() async throws -> SyncReport {
        let host = server.stream(stream, as: try await token("bench-host", .host))
        let viewer = try await token(Self.viewer, .admin)
        try await host.create(hostGraceSeconds: 3_600)
        try await host.goLive()
        let shared = SyncShared()
        let baseline = await probe.usage()
        let began = MonotonicClock.now()
        let threads = try startThreads(shared)
        defer { for thread in threads { thread.stop() } }
        var report = SyncReport(options)
        await wait(options.timing.connect + Double(options.following.clients) / 500) {
            shared.tally.withLock { $0.sockets.connected + $0.sockets.failed } >= options.following.clients
        }
        report.connectSeconds = seconds(since: began)
        progress.step(
            "\(shared.tally.withLock { $0.sockets.connected }) connected in \(Format.short(report.connectSeconds)) s"
        )
        try? await Task.sleep(for: .seconds(options.timing.warmUp))
        let before = await probe.usage()
        report.noteMemory(baseline, before, clients: shared.tally.withLock { $0.sockets.connected })
        let threadsBefore = ProcessFiles.ownThreads(prefix: Self.threadPrefix)
        let measuring = MonotonicClock.now()
        for number in 0..<options.following.commands {
            report.add(await command(number, viewer, threads, shared))
            try? await Task.sleep(for: .seconds(options.following.pause ?? options.following.usualPause))
        }
        report.noteUse(
            threadsBefore, ProcessFiles.ownThreads(prefix: Self.threadPrefix),
            seconds: seconds(since: measuring))
        report.noteServer(before, await probe.usage())
        if options.following.hold > 0 {
            progress.step("holding for \(Format.short(options.following.hold)) s")
            try? await Task.sleep(for: .seconds(options.following.hold))
        }
        report.conclude(shared.tally.withLock { $0 })
        try? await host.end()
        return report
    }

    private func startThreads(_ shared: SyncShared) throws -> [SyncThread] {
        let following = options.following
        let sample = min(following.sample, following.clients - 1)
        let readers = options.machine.threads
        let setup = { (followers: Int, isSample: Bool, commands: Bool) in
            SyncReader.Setup(
                address: address, handshake: handshake, followers: followers, isSample: isSample,
                commands: commands)
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

    /// Without a token: anybody may follow, and a name would cost the server more than most followers do.
    private var handshake: [UInt8] {
        SocketCrowd.handshake("/v1/streams/\(stream)/sync", to: address)
    }

    // MARK: Commands

    /// A hand goes up or down, and all see it.
    private func command(
        _ index: Int, _ token: String?, _ threads: [SyncThread], _ shared: SyncShared
    ) async -> SyncReport.Command {
        let isUp = index % 2 == 0
        let path = "/v1/streams/\(stream)/hands" + (isUp ? "" : "/\(Self.viewer)")
        var lines = ["\(isUp ? "POST" : "DELETE") \(path) HTTP/1.1", "Host: \(address)"]
        if let token { lines.append("Authorization: Bearer \(token)") }
        if isUp { lines += ["Content-Type: application/json", "Content-Length: 2"] }
        let request = lines.joined(separator: "\r\n") + "\r\n\r\n" + (isUp ? "{}" : "")
        let change = "\"raisedHands\":{\"\(Self.viewer)\":"
        let command = SyncCommand(
            number: index + 1, request: Array(request.utf8),
            marker: Array((change + (isUp ? "{" : "null")).utf8),
            snapshotMarker: Array((isUp ? change + "{" : "\"raisedHands\":{}").utf8))
        let wanted = shared.tally.withLock { $0.sockets.connected - $0.sockets.lost }
        threads[0].send(command)
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

    private func wait(_ limit: Double, until condition: () -> Bool) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while !condition(), MonotonicClock.now() < end {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    private func seconds(since began: MonotonicTime) -> Double {
        Double(MonotonicClock.now().nanoseconds(since: began)) / 1e9
    }
}
