import Base
import Interaction
import Stage
import Store
import Synchronization

/// What happens to one stream between two commits: made durable at once, then told.
struct CommitBatch {
    var changes: [StreamChange] = []
    var effects: [StageEffect] = []
    var events: [StageEvent] = []
    /// Of what happened beside the stage: recordings that are complete.
    var recordings: [JSON] = []
    /// The same of clips.
    var clips: [JSON] = []
    /// The same of duels.
    var duels: [DuelReport] = []
    /// The same of the programme's targets.
    var restreams: [RestreamReport] = []
    /// Those who asked for it; called with nil once it is durable.
    var waiters: [Waiter] = []
    var answer: (key: IdempotencyKey, value: IdempotentAnswer)?

    /// Must not block.
    typealias Waiter = @Sendable (StageRefusal?) -> Void

    /// That a duel began, or what came of it.
    struct DuelReport {
        let type: String
        let duel: JSON
    }

    /// That a target takes the programme, or fails.
    struct RestreamReport {
        let type: String
        let restream: JSON
    }

    var hasEvents: Bool {
        !events.isEmpty || !recordings.isEmpty || !clips.isEmpty || !duels.isEmpty || !restreams.isEmpty
    }

    /// For the ledger.
    var gifts: [Gift] {
        changes.compactMap { if case .interaction(.gave(let gift)) = $0 { gift } else { nil } }
    }

    /// Whether the stream begins with it, be it under a name that another had.
    var isCreation: Bool {
        changes.contains { if case .stage(.created) = $0 { true } else { false } }
    }

    /// Whether what was written before is not to be found any more.
    var forgetsComments: Bool {
        changes.contains { if case .interaction(.expired) = $0 { true } else { false } }
    }

    /// How much it has gathered.
    var weight: Int { changes.count + effects.count + events.count }

    mutating func append(_ outcome: StageOutcome) {
        changes += outcome.changes.map { .stage($0) }
        effects += outcome.effects
        events += outcome.events
    }
}

/// Where a store leaves its outcome: the store may be done before it returns, or later on a thread of its own.
final class CommitOutcome: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Result<Void, StoreError>, Never>)
        case done(Result<Void, StoreError>)
    }

    private let state = Mutex(State.open)

    func complete(_ result: Result<Void, StoreError>) {
        let waiter: CheckedContinuation<Result<Void, StoreError>, Never>? = state.withLock { state in
            defer { state = .done(result) }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        waiter?.resume(returning: result)
    }

    var present: Result<Void, StoreError>? {
        state.withLock { if case .done(let result) = $0 { result } else { nil } }
    }

    func value() async -> Result<Void, StoreError> {
        await withCheckedContinuation { continuation in
            let result: Result<Void, StoreError>? = state.withLock { state in
                if case .done(let result) = state { return result }
                state = .awaited(continuation)
                return nil
            }
            if let result { continuation.resume(returning: result) }
        }
    }
}
