import Base
import Synchronization

/// A store that lasts as long as the process, for tests and for a server without a data directory.
///
/// Behaves like `SQLiteStore`, except that nothing waits: a commit is accepted or refused before `submit` returns.
package final class MemoryStore: StreamStore {
    private struct State {
        var streams = MemoryStreams()
        var outbox: MemoryOutbox
        var statistics = StoreStatistics()
        var isClosed = false
    }

    private let state: Mutex<State>
    package let changes: AsyncStream<Void>
    private let announcer: AsyncStream<Void>.Continuation

    /// - Parameter limits: of the outbox; streams are kept until they are deleted.
    package init(limits: OutboxLimits = OutboxLimits()) {
        state = Mutex(State(outbox: MemoryOutbox(limits: limits)))
        (changes, announcer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    package func submit(
        _ commit: StreamCommit, completion: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        let outcome: Result<Void, StoreError> = state.withLock { state in
            guard !state.isClosed else { return .failure(.closed) }
            do throws(StoreError) {
                try state.streams.apply(commit)
            } catch {
                if case .conflict = error { state.statistics.refusedConflict += 1 }
                return .failure(error)
            }
            state.outbox.append(commit.events, of: commit.stream)
            state.statistics.commits += 1
            state.statistics.transactions += 1
            return .success(())
        }
        if case .success = outcome, !commit.events.isEmpty { announcer.yield() }
        // Outside the lock, because a completion may submit again.
        completion(outcome)
    }

    package func load(_ choice: StreamChoice) async throws(StoreError) -> [StoredStream] {
        try whileOpen { $0.streams.stored(choice) }
    }

    package func list(_ query: StreamQuery) async throws(StoreError) -> [StreamListing] {
        try whileOpen { $0.streams.listings(query) }
    }

    package func answer(
        to key: IdempotencyKey, at now: Int64
    ) async throws(StoreError) -> IdempotentAnswer? {
        try whileOpen { state in
            state.streams.answers[key].flatMap { $0.expiresAt > now ? $0 : nil }
        }
    }

    package func ledgerEntry(_ key: String, of stream: StreamID) async throws(StoreError) -> [UInt8]? {
        try whileOpen { $0.streams.ledgerEntry(key, of: stream) }
    }

    package func ledger(
        of stream: StreamID, after number: Int, limit: Int
    ) async throws(StoreError) -> [[UInt8]] {
        try whileOpen { $0.streams.ledger(of: stream, after: number, limit: limit) }
    }

    package func archive(
        of stream: StreamID, _ query: ArchiveQuery
    ) async throws(StoreError) -> [[UInt8]] {
        try whileOpen { $0.streams.archive(of: stream, query) }
    }

    package func archived(
        of stream: StreamID, writtenBefore time: Int64
    ) async throws(StoreError) -> Int {
        try whileOpen { $0.streams.archived(of: stream, writtenBefore: time) }
    }

    package func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) async throws(StoreError) -> [StreamListing] {
        try whileOpen { $0.streams.ended(before: time, after: last, limit: limit) }
    }

    package func forget(
        _ streams: [StreamID], endedBefore time: Int64
    ) async throws(StoreError) -> [StreamID] {
        try whileOpen { $0.streams.forget(streams, endedBefore: time) }
    }

    package func purgeAnswers(at now: Int64) async throws(StoreError) {
        try whileOpen { $0.streams.purgeAnswers(at: now) }
    }

    package var outbox: any Outbox { self }

    package var statistics: StoreStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.waitingEvents = state.outbox.count
            statistics.droppedEvents = state.outbox.dropped
            return statistics
        }
    }

    package func close() async {
        state.withLock { $0.isClosed = true }
        announcer.finish()
    }

    /// - Throws: `closed` after `close`.
    private func whileOpen<Value: Sendable>(
        _ body: (inout State) -> Value
    ) throws(StoreError) -> Value {
        let value: Value? = state.withLock { $0.isClosed ? nil : body(&$0) }
        guard let value else { throw .closed }
        return value
    }
}

extension MemoryStore: Outbox {
    package func setReceivers(_ receivers: [String]) async throws(StoreError) {
        try whileOpen { $0.outbox.setReceivers(receivers) }
    }

    package func due(
        for receiver: String, at now: Int64, limit: Int
    ) async throws(StoreError) -> [Delivery] {
        try whileOpen { $0.outbox.due(for: receiver, at: now, limit: limit) }
    }

    package func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64? {
        try whileOpen { $0.outbox.nextDue(for: receiver, after: now) }
    }

    package func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError) {
        try whileOpen { state in
            for outcome in outcomes { state.outbox.settle(outcome) }
        }
    }

    package func drop(committedBefore time: Int64) async throws(StoreError) -> Int {
        try whileOpen { $0.outbox.drop(committedBefore: time) }
    }
}
