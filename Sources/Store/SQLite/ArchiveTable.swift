import Base
import CSQLite

/// The archives of streams, in SQLite.
struct ArchiveTable: ~Copyable {
    private var insert: Statement
    private var remove: Statement
    private var removeOld: Statement
    private var removeFirst: Statement
    private var clear: Statement
    private var selectFirst: Statement
    private var selectLast: Statement
    private var countOld: Statement
    private var delete: Statement

    init(_ database: borrowing Database) {
        let stream = "(SELECT key FROM streams WHERE id = ?1)"
        insert = Statement(
            """
            INSERT OR REPLACE INTO archive (stream, number, written_at, reader, bytes)
            VALUES (\(stream), ?2, ?3, ?4, ?5)
            """, in: database)
        remove = Statement("DELETE FROM archive WHERE stream = \(stream) AND number = ?2", in: database)
        removeOld = Statement(
            "DELETE FROM archive WHERE stream = \(stream) AND written_at < ?2", in: database)
        removeFirst = Statement("DELETE FROM archive WHERE stream = \(stream) AND number <= ?2", in: database)
        clear = Statement("DELETE FROM archive WHERE stream = \(stream)", in: database)
        // `+` keeps the index by time out of the query plan: a page is found and ordered by number.
        // - Source: sqlite.org/optoverview.html.
        let select = """
            SELECT bytes FROM archive WHERE stream = \(stream) AND number > ?2 AND number < ?3
            AND +written_at >= ?4 AND +written_at < ?5 AND (reader IS NULL OR reader = ?6 OR ?7) ORDER BY number
            """
        selectFirst = Statement(select + " LIMIT ?8", in: database)
        selectLast = Statement(select + " DESC LIMIT ?8", in: database)
        countOld = Statement(
            "SELECT COUNT(*) FROM archive WHERE stream = \(stream) AND written_at < ?2", in: database)
        delete = Statement("DELETE FROM archive WHERE stream = ?1", in: database)
    }

    /// Applies a commit's change, in the order that `ArchiveChange` defines.
    ///
    /// The stream itself must be written first, because entries refer to its key.
    mutating func apply(_ commit: StreamCommit) throws(DatabaseError) {
        let stream = DatabaseValue.text(commit.stream.description)
        let change = commit.archive
        if commit.clearsLedger { try clear.run(stream) }
        for entry in change.entries {
            try insert.run(
                stream, .integer(Int64(entry.number)), .integer(entry.writtenAt), DatabaseValue(entry.reader),
                .blob(entry.bytes))
        }
        for number in change.removed { try remove.run(stream, .integer(Int64(number))) }
        if let time = change.expiry { try removeOld.run(stream, .integer(time)) }
        // Numbers ascend, so the newest one tells which entries exceed the limit.
        guard let last = change.entries.last?.number, last > ArchiveChange.limit else { return }
        try removeFirst.run(stream, .integer(Int64(last - ArchiveChange.limit)))
    }

    mutating func entries(of stream: StreamID, _ query: ArchiveQuery) throws(DatabaseError) -> [[UInt8]] {
        query.isNewestFirst
            ? try Self.entries(of: stream, query, by: &selectLast)
            : try Self.entries(of: stream, query, by: &selectFirst)
    }

    /// - Parameter select: the statement with the wanted order.
    private static func entries(
        of stream: StreamID, _ query: ArchiveQuery, by select: inout Statement
    ) throws(DatabaseError) -> [[UInt8]] {
        let (reader, isForAll): (String?, Bool) =
            switch query.readers {
            case .everybody(let reader): (reader, false)
            case .all: (nil, true)
            }
        return try select.rows(
            .text(stream.description), .integer(Int64(query.after)), .integer(Int64(query.before)),
            .integer(query.written.lowerBound), .integer(query.written.upperBound), DatabaseValue(reader),
            .integer(isForAll ? 1 : 0), .integer(Int64(max(query.limit, 0)))
        ) { row throws(DatabaseError) in row.blob(0) }
    }

    mutating func count(of stream: StreamID, writtenBefore time: Int64) throws(DatabaseError) -> Int {
        let count = try countOld.rows(.text(stream.description), .integer(time)) {
            row throws(DatabaseError) in
            row.integer(0)
        }
        return Int(clamping: count.first ?? 0)
    }

    /// Deletes the archive of a stream that was deleted.
    /// - Parameter key: the stream's key in its table.
    mutating func remove(ofKey key: Int64) throws(DatabaseError) {
        try delete.run(.integer(key))
    }
}
