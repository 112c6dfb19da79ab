import Base

/// The streams, ledgers, archives and answers of a `MemoryStore`, with the same rules as the SQLite tables.
struct MemoryStreams: Sendable {
    private var streams: [StreamID: StoredStream] = [:]
    private var ledgers: [StreamID: [LedgerEntry]] = [:]
    private var archives: [StreamID: [ArchiveEntry]] = [:]
    var answers: [IdempotencyKey: IdempotentAnswer] = [:]

    /// Applies a commit if it builds on the stream's current version.
    /// - Throws: `conflict`, in which case nothing has changed.
    mutating func apply(_ commit: StreamCommit) throws(StoreError) {
        let current = streams[commit.stream]?.version ?? 0
        guard current == commit.basis else { throw .conflict(current: current) }
        guard commit.version > 0, let listing = commit.listing ?? streams[commit.stream]?.listing else {
            throw .conflict(current: 0)
        }
        var stream =
            streams[commit.stream] ?? StoredStream(listing: listing, version: 0, snapshot: nil, records: [])
        stream.listing = listing
        stream.version = commit.version
        stream.records += commit.records
        if let snapshot = commit.snapshot {
            stream.snapshot = snapshot
            stream.records = []
        }
        streams[commit.stream] = stream
        if commit.clearsLedger { (ledgers[commit.stream], archives[commit.stream]) = (nil, nil) }
        if !commit.ledger.isEmpty { ledgers[commit.stream, default: []] += commit.ledger }
        if commit.archive != ArchiveChange() { change(&archives[commit.stream, default: []], commit.archive) }
        if let answer = commit.answer { answers[answer.key] = answer.value }
    }

    /// Applies a change in the order that `ArchiveChange` defines.
    private func change(_ archive: inout [ArchiveEntry], _ change: ArchiveChange) {
        archive += change.entries
        if !change.removed.isEmpty {
            let removed = Set(change.removed)
            archive.removeAll { removed.contains($0.number) }
        }
        if let time = change.expiry { archive.removeAll { $0.writtenAt < time } }
        guard let last = change.entries.last?.number, last > ArchiveChange.limit else { return }
        archive.removeAll { $0.number <= last - ArchiveChange.limit }
    }

    func archive(of stream: StreamID, _ query: ArchiveQuery) -> [[UInt8]] {
        let entries = archives[stream, default: []].lazy.filter { entry in
            guard entry.number > query.after, entry.number < query.before,
                query.written.contains(entry.writtenAt)
            else { return false }
            return switch query.readers {
            case .everybody(let reader): entry.reader == nil || entry.reader == reader
            case .all: true
            }
        }
        let limit = max(query.limit, 0)
        return query.isNewestFirst
            ? entries.reversed().prefix(limit).map(\.bytes) : entries.prefix(limit).map(\.bytes)
    }

    func archived(of stream: StreamID, writtenBefore time: Int64) -> Int {
        archives[stream, default: []].count { $0.writtenAt < time }
    }

    func ledgerEntry(_ key: String, of stream: StreamID) -> [UInt8]? {
        ledgers[stream]?.last { $0.key == key }?.bytes
    }

    func ledger(of stream: StreamID, after number: Int, limit: Int) -> [[UInt8]] {
        let entries = ledgers[stream, default: []].lazy.filter { $0.number > number }
        return entries.prefix(max(limit, 0)).map(\.bytes)
    }

    func stored(_ choice: StreamChoice) -> [StoredStream] {
        switch choice {
        case .one(let id): return streams[id].map { [$0] } ?? []
        case .all: return streams.values.sorted { Self.isNewer($1.listing, $0.listing) }
        case .open:
            return streams.values.filter { $0.listing.endedAt == nil }
                .sorted { Self.isNewer($1.listing, $0.listing) }
        }
    }

    func listings(_ query: StreamQuery) -> [StreamListing] {
        let chosen = streams.values.map(\.listing).filter { listing in
            guard query.states.isEmpty || query.states.contains(listing.state) else { return false }
            guard query.host == nil || query.host == listing.host else { return false }
            guard let after = query.after else { return true }
            return (listing.createdAt, listing.stream.description)
                < (after.createdAt, after.stream.description)
        }
        return Array(chosen.sorted(by: Self.isNewer).prefix(min(max(query.limit, 0), 1_000)))
    }

    func ended(before time: Int64, after last: StreamListing?, limit: Int) -> [StreamListing] {
        // Ties are ordered by name, as in the SQL query.
        func place(_ listing: StreamListing) -> (Int64, String) {
            (listing.endedAt ?? .max, listing.stream.description)
        }
        let old = streams.values.map(\.listing).filter { listing in
            guard let endedAt = listing.endedAt, endedAt < time else { return false }
            return last.map { place($0) < place(listing) } ?? true
        }
        return Array(old.sorted { place($0) < place($1) }.prefix(max(limit, 0)))
    }

    mutating func forget(_ wanted: [StreamID], endedBefore time: Int64) -> [StreamID] {
        wanted.filter { stream in
            guard let endedAt = streams[stream]?.listing.endedAt, endedAt < time else { return false }
            streams[stream] = nil
            (ledgers[stream], archives[stream]) = (nil, nil)
            return true
        }
    }

    mutating func purgeAnswers(at now: Int64) { answers = answers.filter { $0.value.expiresAt > now } }

    /// The order of lists: newest first, ties by descending name.
    private static func isNewer(_ left: StreamListing, _ right: StreamListing) -> Bool {
        (left.createdAt, left.stream.description) > (right.createdAt, right.stream.description)
    }
}
