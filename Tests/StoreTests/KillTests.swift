import Base
import Foundation
import Store
import Synchronization
import TestSupport
import Testing

@testable import store_trial

@Suite struct `A store whose process is killed` {
    /// Kills again and again at random moments, each time amid commits to four streams.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `has all that was told, and nothing half`(_ seed: UInt64) async throws {
        try await withDirectory { directory in
            var random = SeededGenerator(seed: seed)
            var told: [String: Int] = [:]
            for _ in 0..<4 {
                let limit = Int(random.next() % 200)
                for line in try await linesOfTrial(directory: directory, seed: seed, killedAfter: limit) {
                    let parts = line.split(separator: " ")
                    let count = try #require(parts.last.flatMap { Int($0) })
                    let stream = String(try #require(parts.first))
                    #expect(count > told[stream, default: 0], "told in another order")
                    told[stream] = count
                }
                try await check(directory: directory, seed: seed, told: told)
            }
            #expect(told.count == StoreTrial.streams)
        }
    }

    /// Compares what is there with what the same commits leave in memory.
    private func check(directory: String, seed: UInt64, told: [String: Int]) async throws {
        let store = try await SQLiteStore.open(StoreTrial.settings(directory: directory), log: .silent)
        var events = store.statistics.waitingEvents
        for index in 0..<StoreTrial.streams {
            var plan = try #require(CommitPlan(seed: seed, index: index))
            let told = told[plan.stream.description, default: 0]
            guard let stored = try await store.load(.one(plan.stream)).first else {
                #expect(told == 0)
                continue
            }
            let count = try #require(
                try await StoreTrial.length(of: plan, found: stored), "\(plan.stream) is half there")
            #expect(count >= told)
            var ledger: [LedgerEntry] = []
            for number in 0..<(count + 20) {
                let commit = plan.next()
                if number < count {
                    events -= commit.events.count
                    ledger += commit.ledger
                } else if let entry = commit.ledger.first {
                    #expect(try await store.ledgerEntry(entry.key, of: plan.stream) == nil)
                }
                guard let (key, value) = commit.answer else { continue }
                let answer = try await store.answer(to: key, at: 0)
                #expect(answer == (number < count ? value : nil))
            }
            let found = try await store.ledger(of: plan.stream, after: 0, limit: .max)
            #expect(found == ledger.map(\.bytes), "the ledger is not what was committed")
        }
        #expect(events == 0, "webhooks came or went without their commits")
        await store.close()
    }

    /// Runs the trial in a process of its own until it has told of `limit` commits.
    /// - Returns: all it told before it died.
    private func linesOfTrial(directory: String, seed: UInt64, killedAfter limit: Int) async throws
        -> [String]
    {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let process = Process()
        process.executableURL = URL(filePath: program).deletingLastPathComponent().appending(
            path: "store-trial")
        process.arguments = ["write", directory, "\(seed)"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let identifier = process.processIdentifier
        let handle = output.fileHandleForReading
        let text: String = await withCheckedContinuation { continuation in
            // Reading waits, which no task may.
            Thread.detachNewThread {
                var data = Data()
                while case let more = handle.availableData, !more.isEmpty {
                    data += more
                    if data.count(where: { $0 == UInt8(ascii: "\n") }) >= limit { kill(identifier, SIGKILL) }
                }
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal)
        return text.split(separator: "\n").map(String.init)
    }
}
