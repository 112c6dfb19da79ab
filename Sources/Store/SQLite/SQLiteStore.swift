import Base
import Foundation
import Synchronization

/// A store in one SQLite file, which only one thread accesses.
///
/// What was reported as durable is on the disk: it survives the end of the process and a loss of power. While the disk
/// is full or read-only, commits are refused; the store recovers when the disk does.
package final class SQLiteStore: StreamStore {
    /// The data directory, as an absolute path.
    package let directory: String
    package let changes: AsyncStream<Void>
    /// Yields to `changes`; its buffer holds one element, so several commits may share one.
    private let announcer: AsyncStream<Void>.Continuation
    /// Leads to the thread.
    private let queue: WriterQueue
    /// Statistics that the thread writes and any thread reads.
    private let figures: WriterFigures
    /// Finishes when the thread has ended.
    private let end: Task<Void, Never>

    /// More than a commit usually needs.
    private static let probeBytes = 32_768

    /// Opens the data, or creates it.
    /// - Parameter now: another clock is for tests.
    /// - Throws: what prevents it, in words for an operator.
    package static func open(
        _ settings: SQLiteSettings, log: Log,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) async throws(StoreOpenError) -> SQLiteStore {
        let log = log.subsystem("store")
        let queue = WriterQueue(limit: settings.queueLimit, bytes: settings.queueBytes)
        let figures = WriterFigures(now: now)
        let (ended, ending) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let opened: Result<String, StoreOpenError> = await withCheckedContinuation { continuation in
            // Not a task: it waits for the disk, and tasks share a few threads that must not be blocked.
            let thread = Thread {
                var writer: Writer
                do throws(StoreOpenError) {
                    writer = try Writer(settings: settings, figures: figures, log: log)
                } catch {
                    continuation.resume(returning: .failure(error))
                    return
                }
                continuation.resume(returning: .success(writer.path))
                writer.run(queue)
                // The file is closed and its lock released before `close` returns.
                _ = consume writer
                ending.finish()
            }
            thread.name = "store"
            thread.start()
        }
        let directory = try opened.get()
        log.info("store.open", ["directory": directory, "schema": Schema.version])
        return SQLiteStore(
            directory: directory, queue: queue, figures: figures, end: Task { for await _ in ended {} })
    }

    private init(directory: String, queue: WriterQueue, figures: WriterFigures, end: Task<Void, Never>) {
        self.directory = directory
        self.queue = queue
        self.figures = figures
        self.end = end
        (changes, announcer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    deinit {
        queue.close()
    }

    package func submit(
        _ commit: StreamCommit, completion: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        let figures = figures
        let announcer = announcer
        let job = WriterQueue.Job(isWrite: true, bytes: commit.weight) { tables throws(DatabaseError) in
            // A conflict is a normal result, not an error: other commits in the same transaction are kept.
            if let refusal = try tables.streams.apply(commit) {
                return {
                    figures.change { $0.refusedConflict += 1 }
                    completion(.failure(refusal))
                }
            }
            try tables.ledger.apply(commit)
            try tables.archive.apply(commit)
            try tables.outbox.append(commit.events, of: commit.stream)
            return {
                figures.change { $0.commits += 1 }
                if !commit.events.isEmpty { announcer.yield() }
                completion(.success(()))
            }
        } refuse: { error in
            figures.change { $0.refusedUnavailable += 1 }
            completion(.failure(error))
        }
        guard let refusal = queue.add(job) else { return }
        if refusal == .busy { figures.change { $0.refusedBusy += 1 } }
        completion(.failure(refusal))
    }

    package func load(_ choice: StreamChoice) async throws(StoreError) -> [StoredStream] {
        try await perform { tables throws(DatabaseError) in
            try tables.streams.load(choice, from: tables.database)
        }
    }

    package func list(_ query: StreamQuery) async throws(StoreError) -> [StreamListing] {
        try await perform { tables throws(DatabaseError) in
            try tables.streams.list(query, from: tables.database)
        }
    }

    package func answer(
        to key: IdempotencyKey, at now: Int64
    ) async throws(StoreError) -> IdempotentAnswer? {
        try await perform { tables throws(DatabaseError) in try tables.streams.answer(to: key, at: now) }
    }

    package func ledgerEntry(_ key: String, of stream: StreamID) async throws(StoreError) -> [UInt8]? {
        try await perform { tables throws(DatabaseError) in try tables.ledger.entry(key, of: stream) }
    }

    package func ledger(
        of stream: StreamID, after number: Int, limit: Int
    ) async throws(StoreError) -> [[UInt8]] {
        try await perform { tables throws(DatabaseError) in
            try tables.ledger.entries(of: stream, after: number, limit: limit)
        }
    }

    package func archive(
        of stream: StreamID, _ query: ArchiveQuery
    ) async throws(StoreError) -> [[UInt8]] {
        try await perform { tables throws(DatabaseError) in try tables.archive.entries(of: stream, query) }
    }

    package func archived(
        of stream: StreamID, writtenBefore time: Int64
    ) async throws(StoreError) -> Int {
        try await perform { tables throws(DatabaseError) in
            try tables.archive.count(of: stream, writtenBefore: time)
        }
    }

    package func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) async throws(StoreError) -> [StreamListing] {
        try await perform { tables throws(DatabaseError) in
            try tables.streams.ended(before: time, after: last, limit: limit)
        }
    }

    package func forget(
        _ streams: [StreamID], endedBefore time: Int64
    ) async throws(StoreError) -> [StreamID] {
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            var forgotten: [StreamID] = []
            for stream in streams {
                guard let key = try tables.streams.forget(stream, endedBefore: time) else { continue }
                try tables.ledger.remove(ofKey: key)
                try tables.archive.remove(ofKey: key)
                forgotten.append(stream)
            }
            return forgotten
        }
    }

    package func purgeAnswers(at now: Int64) async throws(StoreError) {
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            try tables.streams.purgeAnswers(at: now)
        }
    }

    package func probe() async throws(StoreError) {
        // Two transactions: in a single one, space that is taken and released again might never be needed on the disk.
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            try tables.occupy(Self.probeBytes)
        }
        try await perform(isWrite: true) { tables throws(DatabaseError) in try tables.vacate() }
    }

    package var outbox: any Outbox { self }

    package var statistics: StoreStatistics {
        var statistics = figures.copy
        statistics.waiting = queue.count
        return statistics
    }

    package func close() async {
        queue.close()
        announcer.finish()
        await end.value
    }

    /// Runs a query, or a change, in a transaction on the store's thread.
    /// - Parameter isWrite: whether `body` changes anything.
    private func perform<Value: Sendable>(
        isWrite: Bool = false, _ body: @escaping @Sendable (inout Tables) throws(DatabaseError) -> Value
    ) async throws(StoreError) -> Value {
        let outcome: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            let job = WriterQueue.Job(isWrite: isWrite, bytes: 0) { tables throws(DatabaseError) in
                let value = try body(&tables)
                return { continuation.resume(returning: .success(value)) }
            } refuse: { error in
                continuation.resume(returning: .failure(error))
            }
            if let refusal = queue.add(job) { continuation.resume(returning: .failure(refusal)) }
        }
        return try outcome.get()
    }
}

extension SQLiteStore: Outbox {
    package func setReceivers(_ receivers: [String]) async throws(StoreError) {
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            try tables.outbox.setReceivers(receivers)
        }
    }

    package func due(
        for receiver: String, at now: Int64, limit: Int
    ) async throws(StoreError) -> [Delivery] {
        try await perform { tables throws(DatabaseError) in
            try tables.outbox.due(for: receiver, at: now, limit: limit)
        }
    }

    package func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64? {
        try await perform { tables throws(DatabaseError) in
            try tables.outbox.nextDue(for: receiver, after: now)
        }
    }

    package func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError) {
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            for outcome in outcomes { try tables.outbox.settle(outcome) }
        }
    }

    package func drop(committedBefore time: Int64) async throws(StoreError) -> Int {
        try await perform(isWrite: true) { tables throws(DatabaseError) in
            try tables.outbox.drop(committedBefore: time)
        }
    }
}

extension StreamCommit {
    /// Approximate size in bytes, for the queue's limit.
    fileprivate var weight: Int {
        records.reduce(0) { $0 + $1.count } + (snapshot?.count ?? 0) + events.reduce(0) { $0 + $1.body.count }
            + ledger.reduce(0) { $0 + $1.bytes.count } + archive.entries.reduce(0) { $0 + $1.bytes.count }
    }
}
