import Base
import Foundation
import Glibc
import Store

/// Writes to a store until it is killed and says what it was told is durable; or measures how fast it writes.
@main enum StoreTrial {
    static let streams = 4
    static let receiver = "http://receiver.example"
    private static let usage = """
        usage: store-trial write DIRECTORY SEED             commit until killed, and print what is durable
               store-trial measure DIRECTORY CLIENTS COMMITS  commits a second to one stream, each CLIENT waiting for its own

        """

    static func main() async throws {
        let arguments = CommandLine.arguments
        switch (arguments.dropFirst().first, arguments.count) {
        case ("write", 4):
            guard let seed = UInt64(arguments[3]) else { break }
            try await write(directory: arguments[2], seed: seed)
            return
        case ("measure", 5):
            guard let clients = Int(arguments[3]), let commits = Int(arguments[4]) else { break }
            try await measure(directory: arguments[2], clients: clients, commits: commits)
            return
        default: break
        }
        FileHandle.standardError.write(Data(usage.utf8))
        exit(2)
    }

    // MARK: Being killed

    static func settings(directory: String) -> SQLiteSettings {
        var settings = SQLiteSettings(directory: directory)
        settings.outbox = OutboxLimits(lane: 100_000, total: 400_000)
        return settings
    }

    /// Prints `STREAM COUNT` when that many commits of the stream's plan are durable.
    private static func write(directory: String, seed: UInt64) async throws {
        let store = try await SQLiteStore.open(settings(directory: directory), log: .silent)
        try await store.outbox.setReceivers([receiver])
        let found = try await store.load(.all)
        var plans: [(CommitPlan, Int)] = []
        for index in 0..<streams {
            guard var plan = CommitPlan(seed: seed, index: index) else { continue }
            var count = 0
            if let stream = found.first(where: { $0.listing.stream == plan.stream }) {
                count = try await length(of: plan, found: stream) ?? 0
            }
            for _ in 0..<count { _ = plan.next() }
            plans.append((plan, count))
        }
        await withTaskGroup(of: Void.self) { group in
            for (plan, count) in plans {
                group.addTask {
                    var plan = plan
                    await commit(&plan, from: count, to: store)
                }
            }
        }
    }

    /// Several commits of each stream are under way at any time.
    private static func commit(_ plan: inout CommitPlan, from first: Int, to store: SQLiteStore) async {
        var count = first
        while true {
            for _ in 0..<8 {
                count += 1
                let line = "\(plan.stream) \(count)\n"
                store.submit(plan.next()) { outcome in
                    guard case .success = outcome else { return }
                    _ = Array(line.utf8).withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
                }
            }
            // Waits for those before, as it is answered in order.
            _ = try? await store.answer(to: IdempotencyKey(scope: "", key: ""), at: 0)
        }
    }

    /// After how many commits of its plan a stream is as it was found.
    /// - Returns: nil if after none: then something is missing, or half there.
    static func length(of plan: CommitPlan, found: StoredStream) async throws -> Int? {
        var plan = plan
        let oracle = MemoryStore()
        var count = 0
        while true {
            let commit = plan.next()
            guard commit.version <= found.version else { return nil }
            try await oracle.commit(commit)
            count += 1
            guard commit.version == found.version else { continue }
            if try await oracle.load(.all) == [found] { return count }
        }
    }

    // MARK: Measuring

    /// One stream, whose commits are made one after another and may be under way at once.
    private actor Host {
        private let store: SQLiteStore
        private var version: UInt64 = 0

        init(store: SQLiteStore) {
            self.store = store
        }

        func change(_ record: [UInt8]) async throws {
            guard let stream = StreamID("measured") else { return }
            var commit = StreamCommit(stream: stream, basis: version, records: [record])
            if version == 0 {
                commit.listing = StreamListing(stream: stream, state: "live", host: "ann", createdAt: 0)
            }
            if version % 256 == 255 { commit.snapshot = [UInt8](repeating: 1, count: 20_000) }
            version += 1
            try await store.commit(commit)
        }
    }

    private static func measure(directory: String, clients: Int, commits: Int) async throws {
        let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
        let host = Host(store: store)
        let clock = ContinuousClock()
        let start = clock.now
        let times = try await withThrowingTaskGroup(of: [Double].self) { group in
            for _ in 0..<clients {
                group.addTask {
                    var times: [Double] = []
                    for _ in 0..<(commits / clients) {
                        let begin = clock.now
                        try await host.change([UInt8](repeating: 7, count: 200))
                        times.append((clock.now - begin) / .milliseconds(1))
                    }
                    return times
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let seconds = (clock.now - start) / .seconds(1)
        let sorted = times.sorted()
        let transactions = store.statistics.transactions
        await store.close()
        guard let median = sorted.dropFirst(sorted.count / 2).first,
            let late = sorted.dropFirst(sorted.count * 95 / 100).first
        else { return }
        print(
            "\(clients) clients: \(Int(Double(sorted.count) / seconds)) durable commits a second, "
                + String(format: "%.2f ms median, %.2f ms p95, ", median, late)
                + String(format: "%.1f commits a transaction", Double(sorted.count) / Double(transactions)))
    }
}
