import Base
import CSQLite

/// Streams with their listings, records and snapshots, and the answers to requests.
struct StreamTables: ~Copyable {
    private var insertStream: Statement
    private var advanceStream: Statement
    private var updateListing: Statement
    private var findStream: Statement
    private var insertRecord: Statement
    private var deleteRecords: Statement
    private var replaceSnapshot: Statement
    private var replaceAnswer: Statement
    private var findAnswer: Statement
    private var deleteAnswers: Statement
    private var selectRecords: Statement
    private var selectSnapshot: Statement
    private var selectEnded: Statement
    private var findEnded: Statement
    private var deleteSnapshot: Statement
    private var deleteStream: Statement

    /// In the order in which `listing(_:)` reads them.
    private static let columns = "key, version, id, state, host, title, created_at, starts_at, ended_at"

    init(_ database: borrowing Database) {
        // A stream that exists makes this insert nothing, which `apply` reports as a conflict.
        insertStream = Statement(
            """
            INSERT INTO streams (version, id, state, host, title, created_at, starts_at, ended_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
            """, in: database)
        // Checks and advances the version in one step.
        advanceStream = Statement(
            "UPDATE streams SET version = ?1 WHERE id = ?2 AND version = ?3 RETURNING key", in: database)
        updateListing = Statement(
            """
            UPDATE streams SET state = ?2, host = ?3, title = ?4, created_at = ?5, starts_at = ?6, ended_at = ?7
            WHERE key = ?1
            """, in: database)
        findStream = Statement("SELECT key, version FROM streams WHERE id = ?", in: database)
        insertRecord = Statement(
            "INSERT INTO records (stream, version, bytes) VALUES (?, ?, ?)", in: database)
        deleteRecords = Statement(
            "DELETE FROM records WHERE stream = ? AND version <= ?", in: database)
        replaceSnapshot = Statement(
            "INSERT OR REPLACE INTO snapshots (stream, version, bytes) VALUES (?, ?, ?)", in: database)
        replaceAnswer = Statement(
            "INSERT OR REPLACE INTO answers (scope, key, request, answer, expires_at) VALUES (?, ?, ?, ?, ?)",
            in: database)
        findAnswer = Statement(
            "SELECT request, answer, expires_at FROM answers WHERE scope = ? AND key = ? AND expires_at > ?",
            in: database)
        deleteAnswers = Statement("DELETE FROM answers WHERE expires_at <= ?", in: database)
        selectRecords = Statement(
            "SELECT bytes, version FROM records WHERE stream = ? AND version > ? ORDER BY version",
            in: database)
        selectSnapshot = Statement(
            "SELECT version, bytes FROM snapshots WHERE stream = ?", in: database)
        selectEnded = Statement(
            """
            SELECT \(Self.columns) FROM streams
            WHERE ended_at < ?1 AND (?2 IS NULL OR (ended_at, id) > (?2, ?3))
            ORDER BY ended_at, id LIMIT ?4
            """, in: database)
        findEnded = Statement(
            "SELECT key, version FROM streams WHERE id = ? AND ended_at < ?", in: database)
        deleteSnapshot = Statement("DELETE FROM snapshots WHERE stream = ?", in: database)
        deleteStream = Statement("DELETE FROM streams WHERE key = ?", in: database)
    }

    // MARK: Writing

    /// Writes a commit if it builds on the stream's current version.
    /// - Returns: the reason why the commit is refused, in which case nothing of it is written; nil if it is written.
    mutating func apply(_ commit: StreamCommit) throws(DatabaseError) -> StoreError? {
        let name = DatabaseValue.text(commit.stream.description)
        let key: Int64
        if commit.basis == 0 {
            // A new stream needs a record and a listing.
            guard commit.version > 0, let listing = commit.listing else {
                return .conflict(current: try find(commit.stream)?.version ?? 0)
            }
            let inserted = try insertStream.run(
                .init(commit.version), name, .text(listing.state), .text(listing.host),
                DatabaseValue(listing.title), .integer(listing.createdAt), DatabaseValue(listing.startsAt),
                DatabaseValue(listing.endedAt))
            let found = try find(commit.stream)
            guard inserted == 1, let found else { return .conflict(current: found?.version ?? 0) }
            key = found.key
        } else {
            let keys = try advanceStream.rows(.init(commit.version), name, .init(commit.basis)) {
                row throws(DatabaseError) in row.integer(0)
            }
            guard let found = keys.first else {
                return .conflict(current: try find(commit.stream)?.version ?? 0)
            }
            key = found
            if let listing = commit.listing {
                try updateListing.run(
                    .integer(key), .text(listing.state), .text(listing.host), DatabaseValue(listing.title),
                    .integer(listing.createdAt), DatabaseValue(listing.startsAt),
                    DatabaseValue(listing.endedAt))
            }
        }
        try write(commit, key: key)
        return nil
    }

    /// Writes records, or the snapshot that replaces all of them, and the answer.
    private mutating func write(_ commit: StreamCommit, key: Int64) throws(DatabaseError) {
        if let snapshot = commit.snapshot {
            try deleteRecords.run(.integer(key), .init(commit.version))
            try replaceSnapshot.run(.integer(key), .init(commit.version), .blob(snapshot))
        } else {
            var version = commit.basis
            for record in commit.records {
                version &+= 1
                try insertRecord.run(.integer(key), .init(version), .blob(record))
            }
        }
        if let (key, answer) = commit.answer {
            try replaceAnswer.run(
                .text(key.scope), .text(key.key), .blob(answer.request), .blob(answer.answer),
                .integer(answer.expiresAt))
        }
    }

    private mutating func find(_ stream: StreamID) throws(DatabaseError) -> (key: Int64, version: UInt64)? {
        try findStream.rows(.text(stream.description)) { row throws(DatabaseError) in
            (row.integer(0), UInt64(clamping: row.integer(1)))
        }.first
    }

    /// Deletes a stream that ended before `time`, with its records and snapshot.
    /// - Returns: the key by which other tables refer to it; nil if it does not exist or did not end before.
    mutating func forget(_ stream: StreamID, endedBefore time: Int64) throws(DatabaseError) -> Int64? {
        let found = try findEnded.rows(.text(stream.description), .integer(time)) {
            row throws(DatabaseError) in (key: row.integer(0), version: row.integer(1))
        }
        guard let (key, version) = found.first else { return nil }
        try deleteRecords.run(.integer(key), .integer(version))
        try deleteSnapshot.run(.integer(key))
        try deleteStream.run(.integer(key))
        return key
    }

    mutating func purgeAnswers(at now: Int64) throws(DatabaseError) {
        try deleteAnswers.run(.integer(now))
    }

    // MARK: Reading

    mutating func ended(
        before time: Int64, after last: StreamListing?, limit: Int
    ) throws(DatabaseError) -> [StreamListing] {
        try selectEnded.rows(
            .integer(time), DatabaseValue(last?.endedAt), DatabaseValue(last?.stream.description),
            .integer(Int64(max(limit, 0)))
        ) { row throws(DatabaseError) in try Self.listing(row) }
    }

    mutating func load(_ choice: StreamChoice, from database: borrowing Database) throws(DatabaseError)
        -> [StoredStream]
    {
        let condition: String
        var name = DatabaseValue.null
        switch choice {
        case .all: condition = "?1 IS NULL"
        case .open: condition = "?1 IS NULL AND ended_at IS NULL"
        case .one(let id):
            condition = "id = ?1"
            name = .text(id.description)
        }
        var select = Statement(
            "SELECT \(Self.columns) FROM streams WHERE \(condition) ORDER BY created_at, id", in: database)
        let found = try select.rows(name) { row throws(DatabaseError) in
            (key: row.integer(0), version: UInt64(clamping: row.integer(1)), listing: try Self.listing(row))
        }
        var result: [StoredStream] = []
        result.reserveCapacity(found.count)
        for (key, version, listing) in found {
            let snapshot = try selectSnapshot.rows(.integer(key)) { row throws(DatabaseError) in
                (version: row.integer(0), bytes: row.blob(1))
            }.first
            let base = snapshot?.version ?? 0
            let records = try selectRecords.rows(.integer(key), .integer(base)) { row throws(DatabaseError) in
                row.blob(0)
            }
            // Versions have no gaps, so the number of records shows whether all of them are there.
            guard UInt64(clamping: base) &+ UInt64(records.count) == version else {
                throw DatabaseError(
                    code: SQLITE_CORRUPT, message: "records of stream \(listing.stream) are missing")
            }
            result.append(
                StoredStream(
                    listing: listing, version: version, snapshot: snapshot?.bytes, records: records))
        }
        return result
    }

    mutating func list(_ query: StreamQuery, from database: borrowing Database) throws(DatabaseError)
        -> [StreamListing]
    {
        // Statements have a fixed number of parameters, so states become literals; quotes in them are doubled.
        let states = query.states.map { "'" + $0.replacing("'", with: "''") + "'" }
        let condition = states.isEmpty ? "" : "AND state IN (\(states.joined(separator: ", ")))"
        // The row comparison continues after the last element of the previous page.
        var select = Statement(
            """
            SELECT \(Self.columns) FROM streams
            WHERE (?1 IS NULL OR host = ?1) AND (?2 IS NULL OR (created_at, id) < (?2, ?3)) \(condition)
            ORDER BY created_at DESC, id DESC LIMIT ?4
            """, in: database)
        let limit = min(max(query.limit, 0), 1_000)
        return try select.rows(
            DatabaseValue(query.host), DatabaseValue(query.after?.createdAt),
            DatabaseValue(query.after?.stream.description), .integer(Int64(limit))
        ) { row throws(DatabaseError) in try Self.listing(row) }
    }

    mutating func answer(to key: IdempotencyKey, at now: Int64) throws(DatabaseError) -> IdempotentAnswer? {
        try findAnswer.rows(.text(key.scope), .text(key.key), .integer(now)) { row throws(DatabaseError) in
            IdempotentAnswer(request: row.blob(0), answer: row.blob(1), expiresAt: row.integer(2))
        }.first
    }

    /// - Throws: SQLITE_CORRUPT if the name is none that a stream can have.
    private static func listing(_ row: Row) throws(DatabaseError) -> StreamListing {
        guard let stream = StreamID(row.text(2)) else {
            throw DatabaseError(code: SQLITE_CORRUPT, message: "\(row.text(2)) is not a stream's name")
        }
        return StreamListing(
            stream: stream, state: row.text(3), host: row.text(4), title: row.optionalText(5),
            createdAt: row.integer(6), startsAt: row.optionalInteger(7), endedAt: row.optionalInteger(8))
    }
}

extension DatabaseValue {
    /// A version, clamped to SQLite's signed integers; no stream reaches that many.
    init(_ version: UInt64) {
        self = .integer(Int64(clamping: version))
    }
}
