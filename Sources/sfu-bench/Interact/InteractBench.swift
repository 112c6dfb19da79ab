import Base
import Foundation
import Net
import RostrumClient
import Synchronization

/// A run of `sfu-bench interact`: an audience of one stream that comments, taps, gives and votes.
///
/// `RostrumClient` does what a host does, and reads the results. The audience, whose size is what is measured, uses
/// plain sockets of this tool's own.
final class InteractBench: ReportingRun {
    private let options: Options
    private let client: SignallingClient
    private let probe: ServerProbe
    private let tokens: TokenSource
    private let server: RostrumServer
    private let address: TransportAddress
    private let stream: String
    private let progress: Progress
    private let interrupted = Atomic(false)

    /// In seconds; what has not arrived by then counts as lost.
    private static let patience = 20.0
    /// In seconds: longer than one turn of a thread.
    private static let shortestQuiet = 0.2
    /// Tokens requested concurrently.
    private static let tokensAtOnce = 64
    /// Gifts in one page of the ledger.
    private static let page = 200

    /// - Throws: `RunFailure` if there is only one token for all viewers, since each must be a person of its own.
    init(_ options: Options) async throws {
        ProcessResources.raiseOpenFileLimit()
        var options = options
        // A new name for each run, so that no state of an earlier run is left.
        options.target.stream += "-" + String(UInt32.random(in: .min ... .max), radix: 16)
        self.options = options
        client = SignallingClient(timeout: max(options.timing.connect, 10))
        stream = options.target.stream
        address = try options.server.plainAddress(for: .interact)
        probe = await ServerProbe(options, client: client)
        tokens = await TokenSource(options, client: client)
        switch tokens {
        case .signed, .development: break
        case .fixed, .none:
            throw RunFailure(
                description:
                    "interact acts as many people: it needs a server with --dev, or a --secret to sign tokens with"
            )
        }
        server = RostrumServer(options.server.url)
        progress = Progress(isQuiet: options.report.isQuiet)
    }

    func interrupt() { interrupted.store(true, ordering: .relaxed) }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Lets viewers arrive, measures the server while they are quiet and while they are busy, and compares the results.
    func run() async throws -> InteractReport {
        let (host, shop, poll) = try await beginStream()
        let viewers = try await makeViewers()
        let shared = AudienceShared(threads: options.machine.threads)
        let began = MonotonicClock.now()
        let threads = try startThreads(viewers, shared)
        defer { for thread in threads { thread.stop() } }
        var report = InteractReport(options)
        // Besides the timeout, viewers get the time to connect at 500 a second.
        await wait(options.timing.connect + Double(viewers.count) / 500) {
            shared.tally.withLock { $0.sockets.connected + $0.sockets.failed } >= viewers.count
        }
        report.connectSeconds = Double(MonotonicClock.now().nanoseconds(since: began)) / 1e9
        progress.step("\(viewers.count) connected in \(Format.short(report.connectSeconds)) s")
        await wait(options.timing.warmUp) { false }
        shared.mood.store(.quiet, ordering: .releasing)
        // All threads have to notice the change before the first gift, or they would not count it.
        await wait(Self.shortestQuiet) { false }
        report.quiet = await measure { await self.wait(self.options.interacting.quiet) { false } }
        progress.step("quiet: \(InteractReport.text(of: report.quiet))")
        let asking = try AskingThread(
            name: Generator.threadPrefix + "asks", cpu: cpu(options.machine.threads),
            asks(shop, poll, viewers), shared: shared)
        defer { asking.stop() }
        let before = OwnLoad.now()
        report.began = Date().timeIntervalSince1970
        report.busy = await measure {
            shared.mood.store(.busy, ordering: .releasing)
            await self.wait(self.options.timing.duration) { false }
        }
        report.ended = Date().timeIntervalSince1970
        report.generator = OwnLoad.now().use(
            since: before, processors: ProcessResources.processors().count,
            isPinned: !options.machine.cpus.isEmpty)
        progress.step("busy: \(InteractReport.text(of: report.busy))")
        shared.mood.store(.listening, ordering: .releasing)
        let ledger = try await settle(&report, shared, poll: poll, host: host)
        report.conclude(
            shared.tally.withLock { $0 }, shared.asked.withLock { $0 },
            shared.hearings.withLock { $0.flatMap(\.self) }, ledger)
        try? await host.end()
        return report
    }

    // MARK: Beginning

    /// Creates a live stream with a catalogue of one gift and an open poll.
    private func beginStream() async throws -> (host: StreamClient, shop: String, poll: Int) {
        let host = server.stream(stream, as: try await token("bench-host", .host))
        let shop = try await token("bench-shop", .admin)
        // The host has no session: without a long grace period the stream would end.
        try await host.create(hostGraceSeconds: 3_600)
        try await host.goLive()
        let rose = GiftCatalogue.Kind(
            id: AskingLine.kind, name: "Rose", picture: "🌹", price: AskingLine.price)
        try await host.sell(GiftCatalogue(currency: AskingLine.currency, kinds: [rose]))
        return (
            host, shop,
            try await host.openPoll(PollQuestion(question: "Even or odd?", options: ["even", "odd"]))
        )
    }

    /// Fetches a token for each viewer, in their order.
    private func makeViewers() async throws -> [String] {
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            var made = [String](repeating: "", count: options.audience.viewers)
            for index in made.indices {
                if index >= Self.tokensAtOnce, let (place, token) = try await group.next() {
                    made[place] = token
                }
                group.addTask { (index, try await self.token("bench-\(index)", .viewer)) }
            }
            for try await (place, token) in group { made[place] = token }
            return made
        }
    }

    /// Starts the threads, with equal shares of the viewers and of the comments.
    private func startThreads(_ viewers: [String], _ shared: AudienceShared) throws -> [AudienceThread] {
        let count = options.machine.threads
        let interacting = options.interacting
        return try (0..<count).map { index in
            // Rounded so that the shares add up to all viewers.
            let share = viewers[(viewers.count * index / count)..<(viewers.count * (index + 1) / count)]
            let setup = AudienceReader.Setup(
                index: index, address: address, path: "/v1/streams/\(stream)/sync", tokens: Array(share),
                commentsPerSecond: interacting.comments * Double(share.count) / Double(viewers.count),
                hearts: interacting.hearts, tapInterval: interacting.tapInterval)
            return try AudienceThread(
                name: Generator.threadPrefix + String(index), cpu: cpu(index), setup, shared: shared)
        }
    }

    /// What the shop and the voters do; every viewer votes.
    private func asks(_ shop: String, _ poll: Int, _ viewers: [String]) -> AskingLine.Setup {
        AskingLine.Setup(
            address: address, path: "/v1/streams/\(stream)", poll: poll, shop: shop,
            giftsPerSecond: options.interacting.gifts, voters: viewers,
            votesPerSecond: options.interacting.votes)
    }

    private func cpu(_ index: Int) -> Int? {
        let cpus = options.machine.cpus
        return cpus.isEmpty ? nil : cpus[index % cpus.count]
    }

    // MARK: Measuring

    /// Measures the server's use while `body` runs.
    private func measure(_ body: () async -> Void) async -> InteractReport.Use {
        let (before, began) = (await probe.usage(), MonotonicClock.now())
        await body()
        let (after, ended) = (await probe.usage(), MonotonicClock.now())
        let seconds = Double(ended.nanoseconds(since: began)) / 1e9
        var use = InteractReport.Use(seconds: seconds)
        guard let before, let after, seconds > 0 else { return use }
        use.serverCores = (after.processorSeconds - before.processorSeconds) / seconds
        use.residentBytesBefore = before.residentBytes
        use.residentBytesAfter = after.residentBytes
        return use
    }

    /// Waits until all viewers have received everything, and reads the final state from the server.
    ///
    /// Requests must be complete first: only then is it known what the viewers have to receive.
    /// - Returns: the shop's keys in the ledger, by the gifts' numbers.
    private func settle(
        _ report: inout InteractReport, _ shared: AudienceShared, poll: Int, host: StreamClient
    ) async throws -> [Int: String] {
        struct Poll: Decodable {
            struct Option: Decodable {
                let votes: Int
            }
            let voters: Int
            let options: [Option]
        }
        await wait(Self.patience) { shared.asked.withLock { $0.open } == 0 }
        let asked = shared.asked.withLock { $0 }
        await wait(Self.patience) {
            let tally = shared.tally.withLock { $0 }
            guard tally.accepted + tally.refused.values.reduce(0, +) >= tally.comments else { return false }
            let hearings = shared.hearings.withLock { $0.flatMap(\.self) }
            return !hearings.isEmpty && hearings.allSatisfy { $0.isComplete(tally, asked) }
        }
        let answer = try JSONDecoder().decode(Poll.self, from: try await host.call("GET", "/polls/\(poll)"))
        // Each viewer has one vote, so the sum of the options must be the number of voters.
        report.votes.counted = answer.options.map(\.votes).reduce(0, +) == answer.voters ? answer.voters : -1
        return try await ledger(host)
    }

    /// Reads the whole ledger, page by page.
    private func ledger(_ host: StreamClient) async throws -> [Int: String] {
        struct Page: Decodable {
            struct Gift: Decodable {
                let number: Int
                let key: String
            }
            let gifts: [Gift]
            let more: Bool
        }
        var found: [Int: String] = [:]
        var last = 0
        while true {
            let data = try await host.call("GET", "/gifts?after=\(last)&limit=\(Self.page)")
            let page = try JSONDecoder().decode(Page.self, from: data)
            for gift in page.gifts { found[gift.number] = gift.key }
            guard page.more, let next = page.gifts.last?.number else { return found }
            last = next
        }
    }

    /// Waits until a condition is true, or for a number of seconds, or until the run is interrupted.
    private func wait(_ limit: Double, until condition: () -> Bool) async {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(limit * 1e9))
        while !condition(), MonotonicClock.now() < end, !isInterrupted {
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    // MARK: Requests

    private func token(_ identity: String, _ role: TokenSource.Role) async throws -> String {
        guard let token = try await tokens.token(for: identity, role, stream, client) else {
            throw RunFailure(description: "no token for \(identity)")
        }
        return token
    }
}
