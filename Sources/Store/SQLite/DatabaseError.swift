import CSQLite

/// What SQLite refused, in its own words.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
    /// An extended result code (sqlite.org/rescode.html).
    let code: CInt
    let message: String
    /// Why the system did not do what SQLite asked of it last, as `errno` has it; 0 where it did all.
    var cause: CInt = 0

    /// The kind of failure without its details.
    private var primary: CInt { code & 0xFF }

    /// In words for whoever runs the server, then in SQLite's.
    var description: String {
        let reason: String? =
            switch primary {
            case SQLITE_FULL: "the disk is full"
            case SQLITE_READONLY: "the data is read-only"
            case SQLITE_BUSY, SQLITE_LOCKED: "another program holds the data"
            case SQLITE_IOERR where cause != 0, SQLITE_CANTOPEN where cause != 0: FileError(code: cause).text
            default: nil
            }
        return reason.map { "\($0) (\(message), SQLite \(code))" } ?? "\(message) (SQLite \(code))"
    }

    /// The file is damaged, or is none of SQLite's.
    var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB }

    /// The connection itself is as good as before: only this transaction could not be.
    var leavesConnectionUsable: Bool {
        primary == SQLITE_FULL || primary == SQLITE_BUSY || leavesTransactionInLog
    }

    /// What was refused stands in the log (WAL) to its end, though the disk did not say that it has it: whoever opens
    /// the file next would take it for done.
    var leavesTransactionInLog: Bool { code == Self.unsynced }

    /// SQLITE_IOERR_FSYNC: what was written is not known to be on the disk.
    private static let unsynced = SQLITE_IOERR | 4 << 8

    /// What was wanted may be too much, while less can be done.
    var mayConcernOneJob: Bool {
        primary == SQLITE_FULL || primary == SQLITE_TOOBIG || primary == SQLITE_CONSTRAINT
    }

    /// For those who asked for something.
    var storeError: StoreError {
        switch primary {
        case SQLITE_FULL: .unavailable("the disk is full")
        default: .unavailable(description)
        }
    }
}

/// Why a store could not be opened, in words for an operator.
package struct StoreOpenError: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }

    /// In words that say what to do about a file of data.
    init(_ error: Tables.OpeningError, path: String) {
        switch error {
        case .migration(.foreign):
            self.init("\(path) is a database, but none of Rostrum's; name another directory with --data")
        case .migration(.newer(let version)):
            self.init(
                "\(path) was written by a newer Rostrum (its schema is \(version), this one knows \(Schema.version)); "
                    + "run that one, or name another directory with --data")
        case .database(let error) where error.isDamage, .migration(.database(let error)) where error.isDamage:
            self.init(
                "\(path) is damaged: \(error); put back a copy, or move the file away (with its -wal and -shm) to begin "
                    + "without what it held")
        case .database(let error), .migration(.database(let error)):
            self.init("cannot open \(path): \(error); see to the disk, or name another directory with --data")
        }
    }
}
