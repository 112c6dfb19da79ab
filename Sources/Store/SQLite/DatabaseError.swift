import CSQLite

/// An error of SQLite, with its own message.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
    /// An extended result code.
    /// - Source: sqlite.org/rescode.html.
    let code: CInt
    let message: String
    /// The `errno` of the last system call that failed for SQLite; 0 if none did.
    var cause: CInt = 0

    /// The kind of error without its details, which are in the upper bits.
    private var primary: CInt { code & 0xFF }

    /// For an operator: a plain reason if there is one, then SQLite's message and code.
    var description: String {
        let reason: String? =
            switch primary {
            case SQLITE_FULL: "the disk is full"
            case SQLITE_READONLY: "the data is read-only"
            case SQLITE_BUSY, SQLITE_LOCKED: "another program has locked the data"
            case SQLITE_IOERR where cause != 0, SQLITE_CANTOPEN where cause != 0: FileError(code: cause).text
            default: nil
            }
        return reason.map { "\($0) (\(message), SQLite \(code))" } ?? "\(message) (SQLite \(code))"
    }

    /// Whether the file is damaged, or not an SQLite file.
    var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB }

    /// Whether the connection can go on, because only this transaction was impossible.
    ///
    /// After any other error the connection is closed and opened again, because its state is uncertain.
    var leavesConnectionUsable: Bool {
        primary == SQLITE_FULL || primary == SQLITE_BUSY || leavesTransactionInLog
    }

    /// Whether the refused transaction is complete in the write-ahead log.
    ///
    /// The disk did not confirm it, so the commit was refused. But after a crash, whoever opens the file next would
    /// read it as committed.
    var leavesTransactionInLog: Bool { code == Self.unsynced }

    /// SQLITE_IOERR_FSYNC: a flush failed, so it is unknown whether the data is on the disk.
    private static let unsynced = SQLITE_IOERR | 4 << 8

    /// Whether a transaction with less in it might succeed.
    var mayConcernOneJob: Bool {
        primary == SQLITE_FULL || primary == SQLITE_TOOBIG || primary == SQLITE_CONSTRAINT
    }

    /// The error for the store's callers.
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

    /// Describes what an operator can do about the file at `path`.
    init(_ error: Tables.OpeningError, path: String) {
        switch error {
        case .migration(.foreign):
            self.init("\(path) is a database, but not one of Rostrum's; name another directory with --data")
        case .migration(.newer(let version)):
            self.init(
                "\(path) was written by a newer version of Rostrum (schema \(version), this one reads up to "
                    + "\(Schema.version)); run that version, or name another directory with --data")
        case .database(let error) where error.isDamage, .migration(.database(let error)) where error.isDamage:
            self.init(
                "\(path) is damaged: \(error); restore a backup, or move the file away "
                    + "(with its -wal and -shm) to start without its data")
        case .database(let error), .migration(.database(let error)):
            self.init("cannot open \(path): \(error); check the disk, or name another directory with --data")
        }
    }
}
