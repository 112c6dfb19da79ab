import Base

/// What streams ask to remember, whoever keeps it.
///
/// Records are bytes that only their writer understands, so that the store knows nothing of the stage's rules. A
/// stream's past is one snapshot and the records after it; each record has a version one higher than the one before.
///
/// Writes are taken in the order in which they were submitted, and become durable in that order. All times are
/// milliseconds since 1970.
package protocol StreamStore: Sendable {
    /// Takes a commit; never blocks. Not `async`, so that an actor which submits twice keeps the order.
    /// - Parameter completion: called once, on the store's thread or the caller's, when the commit is durable or
    ///   refused; must not block. A refused commit has left nothing behind.
    func submit(_ commit: StreamCommit, completion: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    /// What was committed of the streams chosen, ordered by creation.
    func load(_ choice: StreamChoice) async throws(StoreError) -> [StoredStream]

    /// What is listed of streams, newest first.
    func list(_ query: StreamQuery) async throws(StoreError) -> [StreamListing]

    /// What was answered to a request with this key, unless that has expired.
    func answer(to key: IdempotencyKey, at now: Int64) async throws(StoreError) -> IdempotentAnswer?

    /// What a stream's ledger holds under a key.
    func ledgerEntry(_ key: String, of stream: StreamID) async throws(StoreError) -> [UInt8]?

    /// What a stream's ledger holds, in order: those after `number`, of which 0 is before the first.
    func ledger(of stream: StreamID, after number: Int, limit: Int) async throws(StoreError) -> [[UInt8]]

    /// What a stream's archive holds; in order, unless the query says otherwise.
    func archive(of stream: StreamID, _ query: ArchiveQuery) async throws(StoreError) -> [[UInt8]]

    /// How many entries of a stream's archive were written before `time`.
    func archived(of stream: StreamID, writtenBefore time: Int64) async throws(StoreError) -> Int

    /// Streams that ended before `time`, in the order in which they did; ties by name.
    /// - Parameter last: what the ones before this part ended with; nil for the first part.
    func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) async throws(StoreError) -> [StreamListing]

    /// Forgets streams that ended before `time`, with all their records, ledgers and archives; what waits of their
    /// webhooks stays.
    /// - Returns: those that were forgotten; not those that have begun anew meanwhile.
    func forget(_ streams: [StreamID], endedBefore time: Int64) async throws(StoreError) -> [StreamID]

    /// Forgets answers that have expired by `now`.
    func purgeAnswers(at now: Int64) async throws(StoreError)

    /// Tries whether anything can be written, and leaves nothing behind: a store that refuses recovers by this when
    /// nobody asks for anything.
    func probe() async throws(StoreError)

    /// Where webhooks wait until they are delivered.
    var outbox: any Outbox { get }

    /// How the store is doing.
    var statistics: StoreStatistics { get }

    /// Finishes what was submitted, then refuses everything.
    func close() async
}

extension StreamStore {
    /// Nothing to do where writing cannot fail.
    package func probe() async throws(StoreError) {}

    /// Returns once `commit` is durable.
    ///
    /// The order of two commits is that in which they are submitted: from an actor that may have several under way,
    /// call this isolated to it.
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

/// Why the store did not do what it was asked; nothing of it was done.
package enum StoreError: Error, Equatable, Sendable {
    /// Too much waits to be written: try again in a moment.
    case busy
    /// The disk is full, read-only or broken; goes away by itself when the disk recovers.
    case unavailable(String)
    /// The stream is at another version than the commit builds on; 0 if there is no such stream.
    case conflict(current: UInt64)
    /// Nothing is taken any more.
    case closed
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .busy: "too much waits to be written"
        case .unavailable(let reason): "nothing can be written: \(reason)"
        case .conflict(let current): "the stream is at version \(current)"
        case .closed: "the store is closed"
        }
    }
}

/// What happens to one stream at once: all of it becomes durable, or none.
package struct StreamCommit: Sendable, Equatable {
    /// Made by its first commit.
    package let stream: StreamID
    /// The version this builds on: that of the stream's last record; 0 if there is no such stream yet, and then
    /// `records` must not be empty.
    package let basis: UInt64
    /// What happened, in order; the first has version `basis + 1`.
    package var records: [[UInt8]]
    /// The stream's whole state after `records`: what came before need not be kept.
    package var snapshot: [UInt8]?
    /// What the stream is listed under from now on; nil leaves it as it is.
    ///
    /// Must be given with basis 0.
    package var listing: StreamListing?
    /// What the request that caused this is answered, should it be repeated.
    package var answer: (key: IdempotencyKey, value: IdempotentAnswer)?
    /// Webhooks to deliver, in order.
    package var events: [OutboxEvent]
    /// What is added to the stream's ledger.
    package var ledger: [LedgerEntry] = []
    /// Whether what its ledger and its archive hold goes first: another programme begins under the same name.
    package var clearsLedger = false
    /// What is done to the stream's archive.
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

/// What stays as long as its stream, beside the state that each start reads: found by its key, or read in order.
package struct LedgerEntry: Sendable, Equatable {
    /// From 1 on; no two of a stream's ledger have the same.
    package let number: Int
    /// Chosen by a client; no two of a stream's ledger have the same.
    package let key: String
    /// Whatever its writer makes of it.
    package let bytes: [UInt8]

    package init(number: Int, key: String, bytes: [UInt8]) {
        self.number = number
        self.key = key
        self.bytes = bytes
    }
}

/// What is kept of a stream: its state is `snapshot`, then each of `records`.
package struct StoredStream: Sendable, Equatable {
    /// As of the last commit that changed it.
    package var listing: StreamListing
    /// That of the last record.
    package var version: UInt64
    /// The state as of version `version - records.count`; nil if that is 0.
    package var snapshot: [UInt8]?
    /// Those since the snapshot, in order.
    package var records: [[UInt8]]

    package init(listing: StreamListing, version: UInt64, snapshot: [UInt8]?, records: [[UInt8]]) {
        self.listing = listing
        self.version = version
        self.snapshot = snapshot
        self.records = records
    }
}

/// What can be asked of streams without understanding their records.
package struct StreamListing: Sendable, Equatable {
    /// Unique in the store.
    package let stream: StreamID
    /// In the words of whoever writes it; a stream with `endedAt` has ended whatever it says here.
    package var state: String
    /// The participant's identity.
    package var host: String
    /// For lists; nil for a stream without one.
    package var title: String?
    /// What lists are ordered by; in milliseconds since 1970.
    package var createdAt: Int64
    /// As planned; in milliseconds since 1970.
    package var startsAt: Int64?
    /// Set when the stream has ended: it need not be loaded, and will be forgotten in time.
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
    /// Only those in one of these states; empty for any.
    package var states: [String] = []
    /// Only streams of this host; nil for anybody's.
    package var host: String?
    /// Only those after this one in the order of the list: newest first, ties by name.
    package var after: (createdAt: Int64, stream: StreamID)?
    /// At most 1,000.
    package var limit = 100

    package init() {}

    package static func == (left: StreamQuery, right: StreamQuery) -> Bool {
        left.states == right.states && left.host == right.host && left.limit == right.limit
            && left.after?.createdAt == right.after?.createdAt && left.after?.stream == right.after?.stream
    }
}

/// Names a request that may be repeated.
package struct IdempotencyKey: Hashable, Sendable {
    /// Whose key it is and for what, since two clients may choose the same.
    package let scope: String
    /// Chosen by the client.
    package let key: String

    package init(scope: String, key: String) {
        self.scope = scope
        self.key = key
    }
}

/// What a request was answered.
package struct IdempotentAnswer: Equatable, Sendable {
    /// A digest of the request, so that the same key for another one is noticed.
    package let request: [UInt8]
    /// Whatever lets the request's handler give the same answer again.
    package let answer: [UInt8]
    /// In milliseconds since 1970.
    package let expiresAt: Int64

    package init(request: [UInt8], answer: [UInt8], expiresAt: Int64) {
        self.request = request
        self.answer = answer
        self.expiresAt = expiresAt
    }
}

/// What a store has done so far.
package struct StoreStatistics: Sendable, Equatable {
    /// That became durable.
    package var commits: UInt64 = 0
    /// Transactions; less than `commits` when many come at once.
    package var transactions: UInt64 = 0
    /// Commits refused because too many waited.
    package var refusedBusy: UInt64 = 0
    /// Commits refused because nothing could be written.
    package var refusedUnavailable: UInt64 = 0
    /// Commits refused because they built on another version.
    package var refusedConflict: UInt64 = 0
    /// Commits that wait to be written.
    package var waiting = 0
    /// How long what is being written now has taken so far; zero while nothing is.
    package var writing = Duration.zero
    /// How long transactions took that wrote something.
    package var writeTimes = DurationHistogram(.joins)
    /// Why the last transaction failed; nil if it did not.
    package var failure: String?
    /// Webhooks that were given up because the outbox was full or they had waited for too long.
    package var droppedEvents: UInt64 = 0
    /// Webhooks that wait to be delivered, one for each receiver.
    package var waitingEvents = 0

    package init() {}
}
