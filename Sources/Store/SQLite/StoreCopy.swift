import Glibc

/// Copies of a store's file: taken while a server writes to it, and looked at before a server has them.
///
/// Waits for the disk: to be called where that holds up nobody.
package enum StoreCopy {
    /// What the file is called in its directory.
    package static let fileName = "rostrum.db"
    /// What this program knows.
    package static var schema: Int { Schema.version }
    /// Milliseconds to wait for another process that has the file locked for a moment.
    private static let patience = 5_000

    /// Makes a file that needs no others beside it: all that was durable when this began, and nothing half.
    /// - Parameters:
    ///   - directory: the server's data; a server may be writing there.
    ///   - path: of a file that is not there yet; nobody else may read it.
    /// - Returns: its schema.
    package static func make(of directory: String, at path: String) throws(StoreOpenError) -> Int {
        let source = directory + "/" + fileName
        guard unsafe access(source, F_OK) == 0 else {
            throw StoreOpenError("there is no data in \(directory): \(fileName): \(reason)")
        }
        let descriptor = unsafe open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StoreOpenError("cannot make \(path): \(reason)") }
        close(descriptor)
        do throws(Tables.OpeningError) {
            let original = try database(source)
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

    /// Looks through all of a copy, and sees to it that it is one file.
    /// - Returns: its schema.
    package static func check(_ path: String) throws(StoreOpenError) -> Int {
        do throws(Tables.OpeningError) {
            let copy = try database(path)
            let version = try version(of: copy)
            do throws(DatabaseError) {
                // The original's header says that there is a log beside it.
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

    private static var reason: String { unsafe String(cString: strerror(errno)) }
}
