import Base
import Interaction
import Stage
import Store
import Synchronization

/// Everything that happens to one stream between two commits: first made durable, then announced and performed.
struct CommitBatch {
    /// In the order in which they were decided, for the store's log.
    var changes: [StreamChange] = []
    /// Performed once the batch is durable.
    var effects: [StageEffect] = []
    /// Reported to webhooks; stored in the same transaction as the changes.
    var events: [StageEvent] = []
    /// Complete recordings, to be reported to webhooks.
    var recordings: [JSON] = []
    /// Complete clips, to be reported to webhooks.
    var clips: [JSON] = []
    /// News of duels, to be reported to webhooks.
    var duels: [DuelReport] = []
    /// News of the programme's targets, to be reported to webhooks.
    var restreams: [RestreamReport] = []
    /// Called with nil once the batch is durable, or with the reason why it will not be.
    var waiters: [Waiter] = []
    /// The answer to a request with an idempotency key, stored with what the request did.
    var answer: (key: IdempotencyKey, value: IdempotentAnswer)?

    /// Called on the stream host's actor; must not block.
    typealias Waiter = @Sendable (StageRefusal?) -> Void

    /// A webhook event of a duel: that it began, or its result.
    struct DuelReport {
        let type: String
        let duel: JSON
    }

    /// A webhook event of a target: that it takes the programme, or fails.
    struct RestreamReport {
        let type: String
        let restream: JSON
    }

    /// Whether the batch contains anything for webhooks.
    var hasEvents: Bool {
        !events.isEmpty || !recordings.isEmpty || !clips.isEmpty || !duels.isEmpty || !restreams.isEmpty
    }

    /// The gifts of the batch, for the ledger of the programme that it leaves behind.
    var gifts: [Gift] {
        programmes().present.compactMap {
            if case .interaction(.gave(let gift)) = $0 { gift } else { nil }
        }
    }

    /// Whether the batch creates the stream, possibly under the name of an earlier one.
    var isCreation: Bool { changes.contains(where: \.isCreation) }

    /// The changes of earlier programmes under the stream's name, and those of the latest.
    ///
    /// A programme may end and the next one begin while the store is busy, so that both are in one batch.
    /// - Parameter isOver: whether the next programme has begun since, so that none of the changes is of the latest.
    func programmes(
        isOver: Bool = false
    ) -> (former: ArraySlice<StreamChange>, present: ArraySlice<StreamChange>) {
        let start = isOver ? changes.endIndex : changes.lastIndex(where: \.isCreation) ?? changes.startIndex
        return (changes[..<start], changes[start...])
    }

    /// Whether the batch deletes old comments, of which no earlier record may keep the text.
    var forgetsComments: Bool {
        changes.contains { if case .interaction(.expired) = $0 { true } else { false } }
    }

    /// A measure of the size, by which the host limits what gathers.
    var weight: Int { changes.count + effects.count + events.count }

    mutating func append(_ outcome: StageOutcome) {
        changes += outcome.changes.map { .stage($0) }
        effects += outcome.effects
        events += outcome.events
    }
}

/// Passes the store's result to the stream host.
///
/// A store may complete a commit before `submit` returns, or later on a thread of its own. In the first case the host
/// needs no task.
final class CommitOutcome: Sendable {
    /// One waiter at most: only one commit of a stream is under way.
    private enum State {
        case open
        case awaited(CheckedContinuation<Result<Void, StoreError>, Never>)
        case done(Result<Void, StoreError>)
    }

    private let state = Mutex(State.open)

    /// Called once by the store, on any thread.
    func complete(_ result: Result<Void, StoreError>) {
        let waiter: CheckedContinuation<Result<Void, StoreError>, Never>? = state.withLock { state in
            defer { state = .done(result) }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        waiter?.resume(returning: result)
    }

    /// The result, if there is one already.
    var present: Result<Void, StoreError>? {
        state.withLock { if case .done(let result) = $0 { result } else { nil } }
    }

    /// Waits for the result.
    func value() async -> Result<Void, StoreError> {
        await withCheckedContinuation { continuation in
            // The store may complete the commit at any moment, so one critical section both checks for the result and
            // begins to wait for it.
            let result: Result<Void, StoreError>? = state.withLock { state in
                if case .done(let result) = state { return result }
                state = .awaited(continuation)
                return nil
            }
            if let result { continuation.resume(returning: result) }
        }
    }
}
