/// The tables, and the steps that turn older ones into them.
///
/// A file's version (`PRAGMA user_version`) is the number of steps that were applied to it. A released step is never
/// changed; each change of the tables is a new step.
enum Schema {
    /// `PRAGMA application_id` of our files ("RSTR"), so that another program's database is not modified.
    static let application: Int64 = 0x5253_5452

    /// In order; step *n* turns version *n* - 1 into version *n*.
    static let steps = [streams, outbox, ledger, archive]

    /// The version that this program reads and writes.
    static var version: Int { steps.count }

    /// Records and snapshots have tables of their own, so that a commit rewrites only what it changes.
    private static let streams = """
        CREATE TABLE streams (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            version INTEGER NOT NULL,
            state TEXT NOT NULL,
            host TEXT NOT NULL,
            title TEXT,
            created_at INTEGER NOT NULL,
            starts_at INTEGER,
            ended_at INTEGER
        );
        CREATE INDEX streams_by_creation ON streams (created_at, id);
        CREATE INDEX streams_by_end ON streams (ended_at) WHERE ended_at IS NOT NULL;
        CREATE TABLE snapshots (
            stream INTEGER PRIMARY KEY,
            version INTEGER NOT NULL,
            bytes BLOB NOT NULL
        );
        CREATE TABLE records (
            stream INTEGER NOT NULL,
            version INTEGER NOT NULL,
            bytes BLOB NOT NULL,
            PRIMARY KEY (stream, version)
        ) WITHOUT ROWID;
        CREATE TABLE answers (
            scope TEXT NOT NULL,
            key TEXT NOT NULL,
            request BLOB NOT NULL,
            answer BLOB NOT NULL,
            expires_at INTEGER NOT NULL,
            PRIMARY KEY (scope, key)
        ) WITHOUT ROWID;
        CREATE INDEX answers_by_expiry ON answers (expires_at);
        """

    /// A lane's row exists while the lane has events.
    ///
    /// AUTOINCREMENT prevents the reuse of numbers, which deliveries under way refer to.
    private static let outbox = """
        CREATE TABLE events (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            receiver TEXT NOT NULL,
            stream TEXT NOT NULL,
            id TEXT NOT NULL,
            type TEXT NOT NULL,
            committed_at INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX events_by_lane ON events (receiver, stream, number);
        CREATE INDEX events_by_age ON events (committed_at);
        CREATE TABLE lanes (
            receiver TEXT NOT NULL,
            stream TEXT NOT NULL,
            attempts INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            PRIMARY KEY (receiver, stream)
        ) WITHOUT ROWID;
        CREATE INDEX lanes_by_due ON lanes (receiver, due_at);
        """

    /// The unique index finds an entry by its key, and refuses a second entry with the same key.
    private static let ledger = """
        CREATE TABLE ledger (
            stream INTEGER NOT NULL,
            number INTEGER NOT NULL,
            key TEXT NOT NULL,
            bytes BLOB NOT NULL,
            PRIMARY KEY (stream, number)
        ) WITHOUT ROWID;
        CREATE UNIQUE INDEX ledger_by_key ON ledger (stream, key);
        """

    /// Pages are read by number; expired entries are found by time.
    private static let archive = """
        CREATE TABLE archive (
            stream INTEGER NOT NULL,
            number INTEGER NOT NULL,
            written_at INTEGER NOT NULL,
            reader TEXT,
            bytes BLOB NOT NULL,
            PRIMARY KEY (stream, number)
        ) WITHOUT ROWID;
        CREATE INDEX archive_by_age ON archive (stream, written_at);
        """

    /// The version of the tables in a file; 0 for an empty file.
    /// - Parameter known: the newest version that is accepted; another one is for tests.
    static func version(
        of database: borrowing Database, known: Int = version
    ) throws(MigrationError) -> Int {
        let owner: Int64
        let tables: Int64
        let found: Int
        do throws(DatabaseError) {
            owner = try integer("PRAGMA application_id", in: database)
            found = Int(clamping: try integer("PRAGMA user_version", in: database))
            tables = try integer("SELECT COUNT(*) FROM sqlite_schema", in: database)
        } catch {
            throw .database(error)
        }
        // An empty database is accepted: a new file has neither an ID nor tables. No step makes a version below 0.
        guard found >= 0, owner == application || (owner == 0 && found == 0 && tables == 0) else {
            throw .foreign
        }
        guard found <= known else { throw .newer(found) }
        return found
    }

    /// Brings the tables up to date; each step is one transaction with its new version number.
    static func migrate(_ database: borrowing Database, steps: [String] = steps) throws(MigrationError) {
        let found = try version(of: database, known: steps.count)
        do throws(DatabaseError) {
            for (index, step) in steps.enumerated().dropFirst(found) {
                try database.execute(
                    """
                    BEGIN IMMEDIATE;
                    \(step)
                    PRAGMA application_id = \(application);
                    PRAGMA user_version = \(index + 1);
                    COMMIT;
                    """)
            }
        } catch {
            throw .database(error)
        }
    }

    /// The first column of the first row.
    private static func integer(
        _ sql: String, in database: borrowing Database
    ) throws(DatabaseError) -> Int64 {
        var statement = Statement(sql, in: database)
        return try statement.rows { row throws(DatabaseError) in row.integer(0) }.first ?? 0
    }

    enum MigrationError: Error {
        /// The file belongs to another program.
        case foreign
        /// The file was written by a newer version of this program.
        case newer(Int)
        case database(DatabaseError)
    }
}
