/// The tables, and how older ones become them.
///
/// The file tells its version (`PRAGMA user_version`), the number of steps that made it. A step is never changed once
/// it was released: what is new is a new step.
enum Schema {
    /// "RSTR", so that a file of somebody else's is not taken for ours.
    static let application: Int64 = 0x5253_5452

    static let steps = [streams, outbox, ledger, archive]

    static var version: Int { steps.count }

    /// Records and snapshots have tables of their own: a commit must not rewrite what it does not change.
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

    /// A lane is there as long as it has events; numbers are never used twice (AUTOINCREMENT).
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

    /// Keys are looked for with each new entry.
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

    /// Pages are read by number, and what is too old goes by time.
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

    /// The version of the tables in a file; 0 for one that is empty.
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
        guard owner == application || (owner == 0 && found == 0 && tables == 0) else { throw .foreign }
        guard found <= known else { throw .newer(found) }
        return found
    }

    /// Brings the tables up to this version, each step at once or not at all.
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

    private static func integer(
        _ sql: String, in database: borrowing Database
    ) throws(DatabaseError) -> Int64 {
        var statement = Statement(sql, in: database)
        return try statement.rows { row throws(DatabaseError) in row.integer(0) }.first ?? 0
    }

    enum MigrationError: Error {
        /// Not a file of ours.
        case foreign
        /// Made by a version of this program that knows more.
        case newer(Int)
        case database(DatabaseError)
    }
}
