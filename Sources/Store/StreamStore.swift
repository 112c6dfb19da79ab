import Base

/// Durable storage for the state of streams, whatever its implementation.
///
/// Records are bytes that only their writer understands, so the store knows nothing of the stage's rules. A stream's
/// history is one snapshot and the records after it; each record's version is one higher than that of the record
/// before.
///
/// Writes are accepted in the order in which they were submitted, and become durable in that order. All times are
/// milliseconds since 1970.
package protocol StreamStore: Sendable {
    /// Accepts a commit without ever blocking.
    ///
    /// Not `async`, so that an actor which submits twice keeps the order.
    /// - Parameter completion: called once, on the store's thread or the caller's, when the commit is durable or
    ///   refused; must not block. A refused commit has left nothing behind.
    func submit(_ commit: StreamCommit, completion: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    /// Snapshots and records of the chosen streams, ordered by creation.
    func load(_ choice: StreamChoice) async throws(StoreError) -> [StoredStream]

    /// Listings of the chosen streams, newest first.
    func list(_ query: StreamQuery) async throws(StoreError) -> [StreamListing]

    /// The answer that was given to a request with this key; nil if there is none or it has expired.
    func answer(to key: IdempotencyKey, at now: Int64) async throws(StoreError) -> IdempotentAnswer?

    /// The entry of a stream's ledger with this key; nil if there is none.
    func ledgerEntry(_ key: String, of stream: StreamID) async throws(StoreError) -> [UInt8]?

    /// Entries of a stream's ledger, in order.
    /// - Parameter number: only later entries are returned; 0 for all.
    func ledger(of stream: StreamID, after number: Int, limit: Int) async throws(StoreError) -> [[UInt8]]

    /// Entries of a stream's archive, in order of their numbers unless the query wants the newest first.
    func archive(of stream: StreamID, _ query: ArchiveQuery) async throws(StoreError) -> [[UInt8]]

    /// The number of entries in a stream's archive that were written before `time`.
    func archived(of stream: StreamID, writtenBefore time: Int64) async throws(StoreError) -> Int

    /// Streams that ended before `time`, ordered by their end; ties are ordered by name.
    /// - Parameter last: the last element of the previous page; nil for the first page.
    func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) async throws(StoreError) -> [StreamListing]

    /// Deletes streams that ended before `time`, with all their records, ledgers and archives.
    ///
    /// Their webhooks that are not delivered yet stay in the outbox.
    /// - Returns: the streams that were deleted, without those that have started again meanwhile.
    func forget(_ streams: [StreamID], endedBefore time: Int64) async throws(StoreError) -> [StreamID]

    /// Deletes answers that have expired by `now`.
    func purgeAnswers(at now: Int64) async throws(StoreError)

    /// Tests whether anything can be written, and leaves nothing behind.
    ///
    /// A store that refuses commits recovers only when a write succeeds; this is that write while nothing else is
    /// submitted.
    func probe() async throws(StoreError)

    /// Webhooks that are not delivered yet.
    var outbox: any Outbox { get }

    /// Numbers for metrics and readiness.
    var statistics: StoreStatistics { get }

    /// Completes what was submitted, then refuses everything.
    func close() async
}

extension StreamStore {
    /// Does nothing, for stores whose writes cannot fail.
    package func probe() async throws(StoreError) {}

    /// Submits a commit and returns once it is durable.
    ///
    /// Commits become durable in the order of submission. An actor that may have several under way must call this
    /// isolated to itself, or their order is undefined.
    package func commit(
        _ commit: StreamCommit, isolation: isolated (any Actor)? = #isolation
    ) async throws(StoreError) {
        let outcome: Result<Void, StoreError> = await withCheckedContinuation(isolation: isolation) {
            continuation in
            submit(commit) { continuation.resume(returning: $0) }
        }
        try outcome.get()
    }
}

/// Why the store refused a request; nothing of it was done.
package enum StoreError: Error, Equatable, Sendable {
    /// Too many requests wait to be written: try again in a moment.
    case busy
    /// The disk is full, read-only or broken; goes away once the disk recovers.
    case unavailable(String)
    /// The stream is at another version than the one the commit builds on; 0 if the stream does not exist.
    case conflict(current: UInt64)
    /// The store accepts nothing any more.
    case closed
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .busy: "too many writes are waiting"
        case .unavailable(let reason): "the data cannot be written: \(reason)"
        case .conflict(let current): "the stream has changed meanwhile, to version \(current)"
        case .closed: "the store is closed"
        }
    }
}

/// A change of one stream, which becomes durable completely or not at all.
package struct StreamCommit: Sendable, Equatable {
    /// The stream is created by its first commit.
    package let stream: StreamID
    /// The version that this builds on, which is that of the stream's last record.
    ///
    /// 0 creates the stream; `records` must not be empty then.
    package let basis: UInt64
    /// What happened, in order; the first record has version `basis + 1`.
    package var records: [[UInt8]]
    /// The stream's whole state after `records`, which makes earlier records superfluous; nil to keep them.
    package var snapshot: [UInt8]?
    /// The stream's listing from now on; nil leaves it as it is.
    ///
    /// Required if `basis` is 0.
    package var listing: StreamListing?
    /// The answer to the request that caused this, for when the request is repeated.
    package var answer: (key: IdempotencyKey, value: IdempotentAnswer)?
    /// Webhooks to deliver, in order.
    package var events: [OutboxEvent]
    /// Entries to append to the stream's ledger.
    package var ledger: [LedgerEntry] = []
    /// Whether ledger and archive are emptied first, because another programme begins under the same name.
    package var clearsLedger = false
    /// Changes to the stream's archive.
    package var archive = ArchiveChange()

    package init(stream: StreamID, basis: UInt64, records: [[UInt8]] = []) {
        self.stream = stream
        self.basis = basis
        self.records = records
        events = []
    }

    /// The stream's version once this is durable.
    package var version: UInt64 { basis &+ UInt64(records.count) }

    package static func == (left: StreamCommit, right: StreamCommit) -> Bool {
        left.stream == right.stream && left.basis == right.basis && left.records == right.records
            && left.snapshot == right.snapshot && left.listing == right.listing
            && left.answer?.key == right.answer?.key && left.answer?.value == right.answer?.value
            && left.events == right.events && left.ledger == right.ledger
            && left.clearsLedger == right.clearsLedger && left.archive == right.archive
    }
}

/// An entry that lives as long as its stream, found by its key or read in order.
///
/// It is kept apart from the stream's state, because every start loads the state and nothing needs the whole ledger
/// then.
package struct LedgerEntry: Sendable, Equatable {
    /// At least 1, and unique within the stream's ledger.
    package let number: Int
    /// Chosen by a client, and unique within the stream's ledger.
    package let key: String
    /// Opaque to the store.
    package let bytes: [UInt8]

    package init(number: Int, key: String, bytes: [UInt8]) {
        self.number = number
        self.key = key
        self.bytes = bytes
    }
}

/// A stream as it is loaded: the state is `snapshot` with `records` applied in order.
package struct StoredStream: Sendable, Equatable {
    /// As of the last commit that changed it.
    package var listing: StreamListing
    /// The version of the last record.
    package var version: UInt64
    /// The state as of `version - records.count`; nil if that is 0.
    package var snapshot: [UInt8]?
    /// Records since the snapshot, in order.
    package var records: [[UInt8]]

    package init(listing: StreamListing, version: UInt64, snapshot: [UInt8]?, records: [[UInt8]]) {
        self.listing = listing
        self.version = version
        self.snapshot = snapshot
        self.records = records
    }
}

/// Properties by which streams can be listed without understanding their records.
package struct StreamListing: Sendable, Equatable {
    /// Unique in the store.
    package let stream: StreamID
    /// In the writer's words; a stream with `endedAt` has ended whatever the state is.
    package var state: String
    /// The host's identity.
    package var host: String
    /// For display in lists; nil for a stream without a title.
    package var title: String?
    /// Lists are ordered by it; in milliseconds since 1970.
    package var createdAt: Int64
    /// The planned start, in milliseconds since 1970; nil if none is planned.
    package var startsAt: Int64?
    /// When the stream ended, in milliseconds since 1970; nil until then.
    ///
    /// A stream that has ended is not loaded at start, and is deleted once its retention time is over.
    package var endedAt: Int64?

    package init(
        stream: StreamID, state: String, host: String, title: String? = nil, createdAt: Int64,
        startsAt: Int64? = nil, endedAt: Int64? = nil
    ) {
        self.stream = stream
        self.state = state
        self.host = host
        self.title = title
        self.createdAt = createdAt
        self.startsAt = startsAt
        self.endedAt = endedAt
    }
}

/// Which streams to load.
package enum StreamChoice: Sendable, Equatable {
    case all
    /// Those that have not ended.
    case open
    case one(StreamID)
}

/// Which streams to list.
package struct StreamQuery: Sendable, Equatable {
    /// Only streams in one of these states; empty for all.
    package var states: [String] = []
    /// Only streams of this host; nil for all.
    package var host: String?
    /// Only streams after this position in the list: newest first, ties by name.
    package var after: (createdAt: Int64, stream: StreamID)?
    /// At most 1,000.
    package var limit = 100

    package init() {}

    package static func == (left: StreamQuery, right: StreamQuery) -> Bool {
        left.states == right.states && left.host == right.host && left.limit == right.limit
            && left.after?.createdAt == right.after?.createdAt && left.after?.stream == right.after?.stream
    }
}

/// Identifies a request that may be repeated.
package struct IdempotencyKey: Hashable, Sendable {
    /// The key's owner and purpose, because two clients may choose the same key.
    package let scope: String
    /// Chosen by the client.
    package let key: String

    package init(scope: String, key: String) {
        self.scope = scope
        self.key = key
    }
}

/// The answer to a request, kept so that a repeated request gets the same one.
package struct IdempotentAnswer: Equatable, Sendable {
    /// A digest of the request, which detects the use of one key for different requests.
    package let request: [UInt8]
    /// Opaque to the store; the request's handler restores the answer from it.
    package let answer: [UInt8]
    /// In milliseconds since 1970.
    package let expiresAt: Int64

    package init(request: [UInt8], answer: [UInt8], expiresAt: Int64) {
        self.request = request
        self.answer = answer
        self.expiresAt = expiresAt
    }
}

/// What a store has done since it was opened, and its present state.
package struct StoreStatistics: Sendable, Equatable {
    /// Commits that became durable.
    package var commits: UInt64 = 0
    /// Fewer than `commits` if several share one.
    package var transactions: UInt64 = 0
    /// Commits refused because too many waited.
    package var refusedBusy: UInt64 = 0
    /// Commits refused because the disk accepted no writes.
    package var refusedUnavailable: UInt64 = 0
    /// Commits refused because they built on a version other than the current one.
    package var refusedConflict: UInt64 = 0
    /// Requests that wait to be written.
    package var waiting = 0
    /// How long the transaction that is being written has taken so far; zero while none is.
    package var writing = Duration.zero
    /// How long transactions with writes took.
    package var writeTimes = DurationHistogram(.joins)
    /// Why the last transaction failed; nil if it succeeded.
    package var failure: String?
    /// Webhooks given up because the outbox was full or they had waited too long.
    package var droppedEvents: UInt64 = 0
    /// Webhooks to be delivered, counted once for each receiver.
    package var waitingEvents = 0

    package init() {}
}
