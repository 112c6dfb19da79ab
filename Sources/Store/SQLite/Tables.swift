import CSQLite

/// The open file with all its statements; used by the store's thread only.
struct Tables: ~Copyable {
    /// Declared before the statements; SQLite closes it once the last of them is finalized.
    let database: Database
    var streams: StreamTables
    var ledger: LedgerTable
    var archive: ArchiveTable
    var outbox: OutboxTables

    /// Opens the file, and brings its tables up to this program's version.
    /// - Parameter receivers: of webhooks, as the previous connection left them; empty at the start.
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
            // WAL: readers, such as a backup, do not block writes. FULL: a commit is on the disk, not only in the
            // kernel's cache, before it is reported. The log shrinks back to 16 MB after a burst.
            // - Source: sqlite.org/pragma.html.
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

    /// Takes up space until `vacate`, by an answer that has expired already.
    func occupy(_ bytes: Int) throws(DatabaseError) {
        try database.execute(
            "INSERT OR REPLACE INTO answers (scope, key, request, answer, expires_at) "
                + "VALUES ('probe', '', zeroblob(\(bytes)), x'', 0)")
    }

    /// Releases the space.
    func vacate() throws(DatabaseError) {
        try database.execute("DELETE FROM answers WHERE scope = 'probe' AND key = ''")
    }

    /// Overwrites a refused transaction that is complete in the log with one that has no effect.
    ///
    /// On the same connection the next transaction is written where the refused one began. The rest of the refused one
    /// then no longer matches the cumulative checksum, so a later reader of the log ignores it.
    /// - Source: sqlite.org/fileformat2.html, "The Write-Ahead Log".
    func overwriteLog() throws(DatabaseError) {
        do throws(DatabaseError) {
            try database.execute("BEGIN IMMEDIATE")
            try occupy(0)
            try vacate()
            try database.execute("COMMIT")
        } catch {
            if database.isInTransaction { try database.execute("ROLLBACK") }
            // If this flush fails as well, the log contains this transaction in place of the refused one, which is
            // enough.
            guard error.leavesTransactionInLog else { throw error }
        }
    }

    /// Checks the whole file for damage.
    func verify() throws(OpeningError) { try database.verify("quick_check") }

    /// Why a file could not be opened.
    enum OpeningError: Error {
        case database(DatabaseError)
        case migration(Schema.MigrationError)
    }
}

extension Database {
    /// Checks the whole file for damage.
    /// - Parameter check: `quick_check`, or `integrity_check`, which also compares indices with their tables.
    /// - Throws: SQLITE_CORRUPT with the first finding.
    /// - Source: sqlite.org/pragma.html.
    func verify(_ check: String) throws(Tables.OpeningError) {
        let findings: [String]
        do throws(DatabaseError) {
            // The argument 1 stops the check after the first finding.
            var check = Statement("PRAGMA \(check)(1)", in: self)
            findings = try check.rows { row throws(DatabaseError) in row.text(0) }
        } catch {
            throw .database(error)
        }
        guard findings == ["ok"] else {
            let message = findings.first ?? "the check of the file gave no result"
            throw .database(DatabaseError(code: SQLITE_CORRUPT, message: message))
        }
    }
}
