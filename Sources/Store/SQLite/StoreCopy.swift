import Glibc

/// Copies of a store's file: made while a server writes to it, and checked before a server uses them.
///
/// Every function waits for the disk: call them where nothing else has to wait.
package enum StoreCopy {
    /// The file's name in the data directory.
    package static let fileName = "rostrum.db"
    /// The newest version of the tables that this program understands.
    package static var schema: Int { Schema.version }
    /// Milliseconds to wait for another process that has the file locked for a moment.
    private static let patience = 5_000

    /// Makes a copy that consists of a single file.
    ///
    /// It contains every transaction that was durable when the copy began, and no partial one.
    /// - Parameters:
    ///   - directory: the server's data; a server may be writing there.
    ///   - path: must not exist yet; the file is for its owner alone.
    /// - Returns: the version of its tables.
    package static func make(of directory: String, at path: String) throws(StoreOpenError) -> Int {
        let source = directory + "/" + fileName
        guard unsafe access(source, F_OK) == 0 else {
            throw StoreOpenError(
                "there is no data in \(directory): \(fileName): \(reason); "
                    + "name the server's directory with --data")
        }
        // SQLite itself would create it readable for others, as far as the umask allows.
        let descriptor = unsafe open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StoreOpenError("cannot create \(path): \(reason)") }
        close(descriptor)
        do throws(Tables.OpeningError) {
            let original = try database(source)
            // A foreign or newer file is refused before anything is copied.
            _ = try version(of: original)
            try copy(original, to: path)
        } catch {
            throw StoreOpenError(error, path: source)
        }
        return try check(path)
    }

    private static func copy(
        _ original: borrowing Database, to path: String
    ) throws(Tables.OpeningError) {
        do throws(DatabaseError) {
            let copy = try Database(path: path, patience: patience, mayCreate: false)
            try original.copy(into: copy)
        } catch {
            throw .database(error)
        }
    }

    /// Checks a whole copy, and makes sure that it needs no log file next to it.
    /// - Returns: the version of its tables.
    /// - Throws: if the file is damaged, foreign or newer than this program.
    package static func check(_ path: String) throws(StoreOpenError) -> Int {
        do throws(Tables.OpeningError) {
            let copy = try database(path)
            let version = try version(of: copy)
            do throws(DatabaseError) {
                // The header, copied from the original, requires a write-ahead log next to the file.
                try copy.execute("PRAGMA journal_mode = DELETE")
            } catch {
                throw .database(error)
            }
            try copy.verify("integrity_check")
            return version
        } catch {
            throw StoreOpenError(error, path: path)
        }
    }

    /// Opens a file that must exist.
    private static func database(_ path: String) throws(Tables.OpeningError) -> Database {
        do throws(DatabaseError) {
            return try Database(path: path, patience: patience, mayCreate: false)
        } catch {
            throw .database(error)
        }
    }

    private static func version(of database: borrowing Database) throws(Tables.OpeningError) -> Int {
        do throws(Schema.MigrationError) {
            return try Schema.version(of: database)
        } catch {
            throw .migration(error)
        }
    }

    /// The system's reason for the last failure.
    private static var reason: String { unsafe String(cString: strerror(errno)) }
}
