import Base
import CSQLite

/// The ledgers of streams, in SQLite.
struct LedgerTable: ~Copyable {
    private var insert: Statement
    private var clear: Statement
    private var find: Statement
    private var select: Statement
    private var delete: Statement

    init(_ database: borrowing Database) {
        let stream = "(SELECT key FROM streams WHERE id = ?1)"
        insert = Statement(
            "INSERT INTO ledger (stream, number, key, bytes) VALUES (\(stream), ?2, ?3, ?4)", in: database)
        clear = Statement("DELETE FROM ledger WHERE stream = \(stream)", in: database)
        find = Statement("SELECT bytes FROM ledger WHERE stream = \(stream) AND key = ?2", in: database)
        select = Statement(
            "SELECT bytes FROM ledger WHERE stream = \(stream) AND number > ?2 ORDER BY number LIMIT ?3",
            in: database)
        delete = Statement("DELETE FROM ledger WHERE stream = ?1", in: database)
    }

    /// Applies a commit's change.
    ///
    /// The stream itself must be written first, because entries refer to its key.
    mutating func apply(_ commit: StreamCommit) throws(DatabaseError) {
        let stream = DatabaseValue.text(commit.stream.description)
        if commit.clearsLedger { try clear.run(stream) }
        for entry in commit.ledger {
            try insert.run(stream, .integer(Int64(entry.number)), .text(entry.key), .blob(entry.bytes))
        }
    }

    mutating func entry(_ key: String, of stream: StreamID) throws(DatabaseError) -> [UInt8]? {
        try find.rows(.text(stream.description), .text(key)) { row throws(DatabaseError) in row.blob(0) }
            .first
    }

    mutating func entries(
        of stream: StreamID, after number: Int, limit: Int
    ) throws(DatabaseError) -> [[UInt8]] {
        // SQLite takes a negative limit for none.
        try select.rows(.text(stream.description), .integer(Int64(number)), .integer(Int64(max(limit, 0)))) {
            row throws(DatabaseError) in row.blob(0)
        }
    }

    /// Deletes the ledger of a stream that was deleted.
    /// - Parameter key: the stream's key in its table.
    mutating func remove(ofKey key: Int64) throws(DatabaseError) {
        try delete.run(.integer(key))
    }
}
