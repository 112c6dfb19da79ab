import Base
import Interaction
import Stage
import Store

/// The durable state of one stream, and the changes on their way to it: one commit in flight, the next one gathering.
///
/// Pure. The owner hands commits to the store, reports their results, and announces and performs what is durable.
struct StreamJournal {
    /// Makes the webhook of an event.
    typealias Reporter = @Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent

    /// What the owner has to do next.
    enum Step {
        /// Submit this to the store, and call `finish` with the result.
        case commit(StreamCommit)
        /// Announce and perform the batch: it changes nothing that must be durable.
        case conclude(CommitBatch)
        /// Refuse the batch: it cannot be encoded, for this reason.
        case fail(CommitBatch, String)
    }

    /// The result of a commit.
    enum Ending {
        case success(CommitBatch)
        /// Nothing in these batches is durable: the commit, and what was decided after it and builds on it.
        case failure([CommitBatch], StoreError)
    }

    /// The commit that the store has now.
    private struct Flight {
        var batch: CommitBatch
        let commit: StreamCommit
        /// The state once the commit is durable.
        let next: StreamRecord
    }

    /// Changes after which a snapshot is written, so that loading a stream reads a bounded number of records.
    static let snapshotInterval = 256
    /// The weight of a gathering batch at which `hasRoom` becomes false.
    static let gatheringLimit = 4_096

    private let id: StreamID
    private let report: Reporter?
    /// The durable state; nil while the stream is not made.
    private(set) var kept: StreamRecord?
    /// The store's version of `kept`; the next commit builds on it.
    private var revision: UInt64 = 0
    private var recordsSinceSnapshot = 0
    /// The listing that the store has, so that it is only written when it changes.
    private var listing: StreamListing?
    private var gathering: CommitBatch?
    private var inFlight: Flight?

    /// A journal of a stream that is not made yet.
    init(_ id: StreamID, report: Reporter?) {
        self.id = id
        self.report = report
    }

    /// A journal of a stream that the store contains.
    /// - Throws: if the stored bytes cannot be decoded.
    init(_ stored: StoredStream, report: Reporter?) throws {
        id = stored.listing.stream
        self.report = report
        kept = try StageCoding.record(of: stored)
        revision = stored.version
        recordsSinceSnapshot = stored.records.count
        listing = stored.listing
    }

    /// Whether everything that was decided is durable.
    var isSettled: Bool { gathering == nil && inFlight == nil }
    /// Whether more may gather; if not, commands are refused.
    var hasRoom: Bool { gathering.map { $0.weight < Self.gatheringLimit } ?? true }
    /// Whether what gathers creates the stream anew, so that all before it is of an earlier programme.
    var isBeginningAnew: Bool { gathering?.isCreation ?? false }
    /// Whether there are webhooks.
    var reportsEvents: Bool { report != nil }

    /// Adds to the next commit.
    mutating func gather(_ change: (inout CommitBatch) -> Void) {
        var batch = gathering.take() ?? CommitBatch()
        change(&batch)
        gathering = batch
    }

    /// Registers a waiter for the result of everything that was decided so far.
    /// - Returns: false if everything is durable already; the waiter is not kept then.
    mutating func wait(_ waiter: @escaping CommitBatch.Waiter) -> Bool {
        guard !isSettled else { return false }
        if gathering != nil {
            gathering?.waiters.append(waiter)
        } else {
            inFlight?.batch.waiters.append(waiter)
        }
        return true
    }

    /// Turns what has gathered into the next step.
    /// - Returns: nil while a commit is in flight, or if nothing has gathered.
    mutating func advance(at time: WallTime) -> Step? {
        guard inFlight == nil, let batch = gathering.take() else { return nil }
        // Presence and similar effects need no commit of their own.
        guard !batch.changes.isEmpty || reportsEvents && batch.hasEvents else { return .conclude(batch) }
        guard let next = StreamRecord.replaying(batch.changes, onto: kept) else {
            return .fail(batch, "the changes do not begin with a creation")
        }
        do {
            let commit = try commit(of: batch, leadingTo: next, at: time)
            inFlight = Flight(batch: batch, commit: commit, next: next)
            return .commit(commit)
        } catch {
            return .fail(batch, "\(error)")
        }
    }

    /// Encodes a batch for the store.
    /// - Throws: if a part of it cannot be encoded.
    private func commit(
        of batch: CommitBatch, leadingTo next: StreamRecord, at time: WallTime
    ) throws -> StreamCommit {
        var commit = StreamCommit(stream: id, basis: revision)
        commit.records = try batch.changes.map { try StageCoding.bytes($0) }
        commit.ledger = try batch.gifts.map(StageCoding.ledgerEntry)
        commit.clearsLedger = batch.isCreation
        commit.archive = try batch.archiveChange(from: kept?.interaction, to: next.interaction)
        // Deleted comments must not remain in records: a snapshot replaces all earlier ones.
        if recordsSinceSnapshot + commit.records.count >= Self.snapshotInterval || batch.forgetsComments {
            commit.snapshot = try StageCoding.bytes(next)
        }
        let nextListing = StageCoding.listing(of: next.stage)
        if nextListing != listing { commit.listing = nextListing }
        commit.answer = batch.answer
        // Webhooks are part of the commit: an event is delivered if and only if its change is durable.
        guard let report else { return commit }
        commit.events = batch.events.map { report($0, next.stage, time) }
        commit.events += batch.recordings.map { StageReport.recordingEnded($0, of: next.stage, at: time) }
        commit.events += batch.clips.map { StageReport.clipReady($0, of: next.stage, at: time) }
        commit.events += batch.duels.map { StageReport.duel($0, of: next.stage, at: time) }
        commit.events += batch.restreams.map { StageReport.restream($0, of: next.stage, at: time) }
        return commit
    }

    /// Takes note of the store's result for the commit in flight.
    /// - Returns: nil if no commit is in flight.
    mutating func finish(_ result: Result<Void, StoreError>) -> Ending? {
        guard let flight = inFlight.take() else { return nil }
        switch result {
        case .success:
            let commit = flight.commit
            kept = flight.next
            revision = commit.version
            recordsSinceSnapshot = commit.snapshot == nil ? recordsSinceSnapshot + commit.records.count : 0
            if let listing = commit.listing { self.listing = listing }
            return .success(flight.batch)
        // What gathered meanwhile was decided on a state that never became durable.
        case .failure(let error):
            return .failure([flight.batch] + (gathering.take().map { [$0] } ?? []), error)
        }
    }
}
