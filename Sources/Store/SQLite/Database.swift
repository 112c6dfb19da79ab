import CSQLite

/// One connection to an SQLite file.
///
/// Not copyable, so exactly one owner closes it; used by one thread at a time.
@safe struct Database: ~Copyable {
    // Closed in `deinit`. Statements use it, and must not run after that.
    fileprivate let handle: OpaquePointer

    /// - Parameters:
    ///   - patience: milliseconds to wait while another process, such as a tool of an operator, has the file locked.
    ///   - mayCreate: whether a missing file is created.
    init(path: String, patience: Int = 0, mayCreate: Bool = true) throws(DatabaseError) {
        var handle: OpaquePointer?
        // One thread at a time uses the connection, so SQLite needs no mutex of its own.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (mayCreate ? SQLITE_OPEN_CREATE : 0)
        let status = unsafe sqlite3_open_v2(path, &handle, flags, nil)
        // SQLite returns no handle only if it cannot allocate one; on other errors the handle carries the message.
        guard let handle = unsafe handle else {
            throw DatabaseError(code: SQLITE_NOMEM, message: "out of memory")
        }
        guard status == SQLITE_OK else {
            let error = unsafe DatabaseError(
                code: status, message: String(cString: sqlite3_errmsg(handle)),
                cause: csqlite_errno(handle))
            unsafe sqlite3_close_v2(handle)
            throw error
        }
        unsafe self.handle = unsafe handle
        unsafe sqlite3_extended_result_codes(handle, 1)
        unsafe sqlite3_busy_timeout(handle, CInt(clamping: patience))
    }

    deinit {
        // With statements that are not finalized yet, SQLite defers the closing until they are.
        unsafe sqlite3_close_v2(handle)
    }

    /// Whether a transaction is open; SQLite rolls one back automatically on some errors, such as a full disk.
    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Runs statements without parameters and results.
    func execute(_ sql: String) throws(DatabaseError) {
        try unsafe check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    /// Copies the content as of one moment over that of `target`, while other connections may write.
    ///
    /// All pages are copied in one step, which is one read transaction; with a write-ahead log it blocks no writer.
    /// - Source: sqlite.org/backup.html.
    func copy(into target: borrowing Database) throws(DatabaseError) {
        guard let backup = unsafe sqlite3_backup_init(target.handle, "main", handle, "main") else {
            throw unsafe DatabaseError(
                code: sqlite3_extended_errcode(target.handle),
                message: String(cString: sqlite3_errmsg(target.handle)))
        }
        let status = unsafe sqlite3_backup_step(backup, -1)
        // Its status repeats that of the step.
        unsafe sqlite3_backup_finish(backup)
        guard status == SQLITE_DONE else {
            throw unsafe DatabaseError(code: status, message: String(cString: sqlite3_errstr(status)))
        }
    }

    fileprivate func check(_ status: CInt) throws(DatabaseError) {
        guard status != SQLITE_OK else { return }
        throw unsafe DatabaseError(
            code: status, message: String(cString: sqlite3_errmsg(handle)),
            cause: csqlite_errno(handle))
    }
}

/// A value as SQLite stores it.
enum DatabaseValue: Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    /// Nil becomes NULL.
    init(_ integer: Int64?) {
        self = integer.map { .integer($0) } ?? .null
    }

    /// Nil becomes NULL.
    init(_ text: String?) {
        self = text.map { .text($0) } ?? .null
    }
}

/// A statement, compiled at its first use and run many times.
///
/// Must not run after its database is closed.
@safe struct Statement: ~Copyable {
    private let sql: String
    // `compiled` is finalized in `deinit`. SQLite copies bound values; results are copied out before the next step.
    private let database: OpaquePointer
    private var compiled: OpaquePointer?

    /// Stores the text only; it is compiled at the first run.
    init(_ sql: String, in database: borrowing Database) {
        self.sql = sql
        unsafe self.database = unsafe database.handle
    }

    deinit {
        // Does nothing if the statement was never compiled.
        unsafe sqlite3_finalize(compiled)
    }

    /// Runs the statement for its effect.
    /// - Returns: how many rows it changed.
    @discardableResult
    mutating func run(_ values: DatabaseValue...) throws(DatabaseError) -> Int {
        let handle = try unsafe compile()
        defer { unsafe reset(handle) }
        try unsafe bind(values, to: handle)
        // Also statements without results may return rows, such as pragmas.
        while try unsafe step(handle) {}
        return unsafe Int(sqlite3_changes(database))
    }

    /// Runs the statement for its results.
    /// - Parameter read: converts one row; the row is valid only within the call.
    mutating func rows<Value>(
        _ values: DatabaseValue..., read: (Row) throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> [Value] {
        let handle = try unsafe compile()
        defer { unsafe reset(handle) }
        try unsafe bind(values, to: handle)
        var result: [Value] = []
        while try unsafe step(handle) { unsafe result.append(try read(Row(handle: handle))) }
        return result
    }

    /// The compiled statement; marked as persistent, because it will be run often.
    private mutating func compile() throws(DatabaseError) -> OpaquePointer {
        if let compiled = unsafe compiled { return unsafe compiled }
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        try unsafe check(sqlite3_prepare_v3(database, sql, -1, flags, &compiled, nil))
        guard let compiled = unsafe compiled else {
            throw DatabaseError(code: SQLITE_MISUSE, message: "empty statement")
        }
        return unsafe compiled
    }

    /// Binds values to the parameters in order, starting with number 1.
    private func bind(_ values: [DatabaseValue], to handle: OpaquePointer) throws(DatabaseError) {
        for (index, value) in zip(CInt(1)..., values) {
            switch value {
            case .null: try unsafe check(sqlite3_bind_null(handle, index))
            case .integer(let integer): try unsafe check(sqlite3_bind_int64(handle, index, integer))
            case .text(let text):
                let count = CInt(clamping: text.utf8.count)
                try unsafe check(text.withCString { unsafe csqlite_bind_text(handle, index, $0, count) })
            case .blob(let bytes):
                let count = CInt(clamping: bytes.count)
                try unsafe check(
                    bytes.withUnsafeBytes { unsafe csqlite_bind_blob(handle, index, $0.baseAddress, count) })
            }
        }
    }

    /// - Returns: whether there is a row.
    private func step(_ handle: OpaquePointer) throws(DatabaseError) -> Bool {
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let status:
            throw unsafe DatabaseError(
                code: status, message: String(cString: sqlite3_errmsg(database)),
                cause: csqlite_errno(database))
        }
    }

    /// Makes the statement ready for its next run, and frees the bound values.
    private func reset(_ handle: OpaquePointer) {
        // Repeats the status of the last step, which was handled there.
        unsafe sqlite3_reset(handle)
        unsafe sqlite3_clear_bindings(handle)
    }

    private func check(_ status: CInt) throws(DatabaseError) {
        guard status != SQLITE_OK else { return }
        throw unsafe DatabaseError(code: status, message: String(cString: sqlite3_errmsg(database)))
    }
}

/// The row at which a statement stands; valid only within the closure that receives it.
@safe struct Row {
    fileprivate let handle: OpaquePointer

    func integer(_ column: CInt) -> Int64 { unsafe sqlite3_column_int64(handle, column) }

    func optionalInteger(_ column: CInt) -> Int64? { isNull(column) ? nil : integer(column) }

    func text(_ column: CInt) -> String { String(decoding: blob(column), as: UTF8.self) }

    func optionalText(_ column: CInt) -> String? { isNull(column) ? nil : text(column) }

    /// Empty for NULL as well.
    func blob(_ column: CInt) -> [UInt8] {
        // First the pointer, then the length: asking for the length may convert the value and move it.
        guard let pointer = unsafe sqlite3_column_blob(handle, column) else { return [] }
        let count = unsafe Int(sqlite3_column_bytes(handle, column))
        return unsafe Array(UnsafeRawBufferPointer(start: pointer, count: count))
    }

    private func isNull(_ column: CInt) -> Bool {
        unsafe sqlite3_column_type(handle, column) == SQLITE_NULL
    }
}
