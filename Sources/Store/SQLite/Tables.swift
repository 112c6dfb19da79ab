import CSQLite

/// The open file with all its statements; used by the store's thread only.
struct Tables: ~Copyable {
    /// Before the statements: SQLite closes it when the last of them is finalized.
    let database: Database
    var streams: StreamTables
    var ledger: LedgerTable
    var archive: ArchiveTable
    var outbox: OutboxTables

    /// Opens the file, and brings it to this program's version.
    init(path: String, settings: SQLiteSettings, receivers: [String]) throws(OpeningError) {
        let database = try Self.open(path, settings)
        do throws(Schema.MigrationError) {
            try Schema.migrate(database)
        } catch {
            throw .migration(error)
        }
        var outbox = OutboxTables(database, limits: settings.outbox, receivers: receivers)
        do throws(DatabaseError) {
            try outbox.recount()
        } catch {
            throw .database(error)
        }
        streams = StreamTables(database)
        ledger = LedgerTable(database)
        archive = ArchiveTable(database)
        self.outbox = outbox
        self.database = database
    }

    private static func open(_ path: String, _ settings: SQLiteSettings) throws(OpeningError) -> Database {
        do throws(DatabaseError) {
            let database = try Database(path: path, patience: settings.patience)
            // FULL: a commit is on the disk, not only with the kernel, before anyone is told (sqlite.org/pragma.html).
            try database.execute(
                """
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = FULL;
                PRAGMA journal_size_limit = 16777216;
                PRAGMA temp_store = MEMORY;
                PRAGMA trusted_schema = OFF;
                """)
            if let pages = settings.pageLimit { try database.execute("PRAGMA max_page_count = \(pages)") }
            return database
        } catch {
            throw .database(error)
        }
    }

    /// Takes room for a moment, as an answer that has expired.
    func occupy(_ bytes: Int) throws(DatabaseError) {
        try database.execute(
            "INSERT OR REPLACE INTO answers (scope, key, request, answer, expires_at) "
                + "VALUES ('probe', '', zeroblob(\(bytes)), x'', 0)")
    }

    /// Gives it back.
    func vacate() throws(DatabaseError) {
        try database.execute("DELETE FROM answers WHERE scope = 'probe' AND key = ''")
    }

    /// Writes a transaction without any consequence over one that was refused and stands in the log all the same.
    ///
    /// While the connection lasts, the next transaction begins where the refused one did, and what is left of that one
    /// does not fit the checksum of what is before it any more (sqlite.org/fileformat2.html, "The Write-Ahead Log").
    func overwriteLog() throws(DatabaseError) {
        do throws(DatabaseError) {
            try database.execute("BEGIN IMMEDIATE")
            try occupy(0)
            try vacate()
            try database.execute("COMMIT")
        } catch {
            if database.isInTransaction { try database.execute("ROLLBACK") }
            // It stands there, too, in place of the other: that is what it is for.
            guard error.leavesTransactionInLog else { throw error }
        }
    }

    /// Looks through the whole file for damage.
    func verify() throws(OpeningError) { try database.verify("quick_check") }

    enum OpeningError: Error {
        case database(DatabaseError)
        case migration(Schema.MigrationError)
    }
}

extension Database {
    /// Looks through the whole file for damage.
    /// - Parameter check: `quick_check`, or `integrity_check`, which compares indices with their tables too
    ///   (sqlite.org/pragma.html).
    func verify(_ check: String) throws(Tables.OpeningError) {
        let findings: [String]
        do throws(DatabaseError) {
            var check = Statement("PRAGMA \(check)(1)", in: self)
            findings = try check.rows { row throws(DatabaseError) in row.text(0) }
        } catch {
            throw .database(error)
        }
        guard findings == ["ok"] else {
            let message = findings.first ?? "the check of the file came to nothing"
            throw .database(DatabaseError(code: SQLITE_CORRUPT, message: message))
        }
    }
}
