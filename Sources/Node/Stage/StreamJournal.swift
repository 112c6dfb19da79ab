import Base
import Interaction
import Stage
import Store

/// What is durable of one stream, and how changes become it: while one commit is under way the next one gathers.
///
/// Pure: whoever has it hands commits to the store, says how they went, and tells and does what is durable then.
struct StreamJournal {
    /// What webhooks are told of an event; nil for nothing.
    typealias Reporter = @Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent

    /// What comes next.
    enum Step {
        /// To the store, of which `finish` hears.
        case commit(StreamCommit)
        /// It is durable, or needed not to be.
        case conclude(CommitBatch)
        /// It cannot be written.
        case fail(CommitBatch, String)
    }

    /// How a commit went.
    enum Ending {
        case success(CommitBatch)
        /// Nothing of it is durable, nor of what was decided after it.
        case failure([CommitBatch], StoreError)
    }

    private struct Flight {
        var batch: CommitBatch
        let commit: StreamCommit
        /// What will be durable.
        let next: StreamRecord
    }

    /// A snapshot is written after so many changes, so that a start need not read them all.
    static let snapshotInterval = 256
    /// Changes, and what follows from them, that gather while a commit is under way.
    static let gatheringLimit = 4_096

    private let id: StreamID
    private let report: Reporter?
    /// What is durable; nil while nobody made the stream.
    private(set) var kept: StreamRecord?
    /// The store's version of `kept`.
    private var revision: UInt64 = 0
    private var recordsSinceSnapshot = 0
    private var listing: StreamListing?
    private var gathering: CommitBatch?
    private var inFlight: Flight?

    /// Of a stream that nobody made yet.
    init(_ id: StreamID, report: Reporter?) {
        self.id = id
        self.report = report
    }

    /// Of a stream as the store knows it.
    /// - Throws: what is wrong with what was stored.
    init(_ stored: StoredStream, report: Reporter?) throws {
        id = stored.listing.stream
        self.report = report
        kept = try StageCoding.record(of: stored)
        revision = stored.version
        recordsSinceSnapshot = stored.records.count
        listing = stored.listing
    }

    /// Whether all that was decided is durable.
    var isSettled: Bool { gathering == nil && inFlight == nil }
    /// Whether more may gather; if not, commands are refused.
    var hasRoom: Bool { gathering.map { $0.weight < Self.gatheringLimit } ?? true }
    /// Whether webhooks are told of anything.
    var reportsEvents: Bool { report != nil }

    /// Adds to what will be committed next.
    mutating func gather(_ change: (inout CommitBatch) -> Void) {
        var batch = gathering.take() ?? CommitBatch()
        change(&batch)
        gathering = batch
    }

    /// Has somebody told when all that was decided so far is durable, or is not to be.
    /// - Returns: false if that is so already.
    mutating func wait(_ waiter: @escaping CommitBatch.Waiter) -> Bool {
        guard !isSettled else { return false }
        if gathering != nil {
            gathering?.waiters.append(waiter)
        } else {
            inFlight?.batch.waiters.append(waiter)
        }
        return true
    }

    /// - Returns: what is to be done with what has gathered; nil while a commit is under way, or nothing has.
    mutating func advance(at time: WallTime) -> Step? {
        guard inFlight == nil, let batch = gathering.take() else { return nil }
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

    private func commit(
        of batch: CommitBatch, leadingTo next: StreamRecord, at time: WallTime
    ) throws -> StreamCommit {
        var commit = StreamCommit(stream: id, basis: revision)
        commit.records = try batch.changes.map { try StageCoding.bytes($0) }
        commit.ledger = try batch.gifts.map(StageCoding.ledgerEntry)
        commit.clearsLedger = batch.isCreation
        commit.archive = try batch.archiveChange(from: kept?.interaction, to: next.interaction)
        // What is forgotten must not stay in the records since the last one.
        if recordsSinceSnapshot + commit.records.count >= Self.snapshotInterval || batch.forgetsComments {
            commit.snapshot = try StageCoding.bytes(next)
        }
        let nextListing = StageCoding.listing(of: next.stage)
        if nextListing != listing { commit.listing = nextListing }
        commit.answer = batch.answer
        guard let report else { return commit }
        commit.events = batch.events.map { report($0, next.stage, time) }
        commit.events += batch.recordings.map { StageReport.recordingEnded($0, of: next.stage, at: time) }
        commit.events += batch.clips.map { StageReport.clipReady($0, of: next.stage, at: time) }
        commit.events += batch.duels.map { StageReport.duel($0, of: next.stage, at: time) }
        commit.events += batch.restreams.map { StageReport.restream($0, of: next.stage, at: time) }
        return commit
    }

    /// The store is done with the commit that is under way.
    /// - Returns: nil if none is.
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
        case .failure(let error):
            return .failure([flight.batch] + (gathering.take().map { [$0] } ?? []), error)
        }
    }
}
