import CSQLite

/// One connection to a file of SQLite.
///
/// Not copyable: whoever holds it closes it, and one thread uses it.
struct Database: ~Copyable {
    fileprivate let handle: OpaquePointer

    /// - Parameter patience: milliseconds to wait for another process that has the file open with tools of its own.
    init(path: String, patience: Int = 0) throws(DatabaseError) {
        var handle: OpaquePointer?
        // One thread at a time uses a connection: SQLite needs no lock of its own.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let status = sqlite3_open_v2(path, &handle, flags, nil)
        guard let handle else { throw DatabaseError(code: SQLITE_NOMEM, message: "out of memory") }
        guard status == SQLITE_OK else {
            let error = DatabaseError(code: status, message: String(cString: sqlite3_errmsg(handle)))
            sqlite3_close_v2(handle)
            throw error
        }
        self.handle = handle
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, CInt(clamping: patience))
    }

    deinit {
        // Waits by itself for statements that are not finalized yet.
        sqlite3_close_v2(handle)
    }

    /// Whether a transaction is open; SQLite ends one by itself when it runs out of disk.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Runs statements that take and give no values.
    func execute(_ sql: String) throws(DatabaseError) {
        try check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    fileprivate func check(_ status: CInt) throws(DatabaseError) {
        guard status != SQLITE_OK else { return }
        throw DatabaseError(code: status, message: String(cString: sqlite3_errmsg(handle)))
    }
}

/// A value as SQLite keeps it.
enum DatabaseValue: Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    init(_ integer: Int64?) {
        self = integer.map { .integer($0) } ?? .null
    }

    init(_ text: String?) {
        self = text.map { .text($0) } ?? .null
    }
}

/// One statement, compiled when it is first run, and run many times.
///
/// Must not be run when its database is closed.
struct Statement: ~Copyable {
    private let sql: String
    private let database: OpaquePointer
    private var compiled: OpaquePointer?

    init(_ sql: String, in database: borrowing Database) {
        self.sql = sql
        self.database = database.handle
    }

    deinit {
        // Of one that was never compiled, it does nothing.
        sqlite3_finalize(compiled)
    }

    /// Runs it for what it does.
    /// - Returns: how many rows it changed.
    @discardableResult
    mutating func run(_ values: DatabaseValue...) throws(DatabaseError) -> Int {
        let handle = try compile()
        defer { reset(handle) }
        try bind(values, to: handle)
        while try step(handle) {}
        return Int(sqlite3_changes(database))
    }

    /// Runs it for the rows it gives.
    mutating func rows<Value>(
        _ values: DatabaseValue..., read: (Row) throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> [Value] {
        let handle = try compile()
        defer { reset(handle) }
        try bind(values, to: handle)
        var result: [Value] = []
        while try step(handle) { result.append(try read(Row(handle: handle))) }
        return result
    }

    private mutating func compile() throws(DatabaseError) -> OpaquePointer {
        if let compiled { return compiled }
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        try check(sqlite3_prepare_v3(database, sql, -1, flags, &compiled, nil))
        guard let compiled else { throw DatabaseError(code: SQLITE_MISUSE, message: "empty statement") }
        return compiled
    }

    private func bind(_ values: [DatabaseValue], to handle: OpaquePointer) throws(DatabaseError) {
        for (index, value) in zip(CInt(1)..., values) {
            switch value {
            case .null: try check(sqlite3_bind_null(handle, index))
            case .integer(let integer): try check(sqlite3_bind_int64(handle, index, integer))
            case .text(let text):
                let count = CInt(clamping: text.utf8.count)
                try check(text.withCString { csqlite_bind_text(handle, index, $0, count) })
            case .blob(let bytes):
                let count = CInt(clamping: bytes.count)
                try check(
                    bytes.withUnsafeBytes { csqlite_bind_blob(handle, index, $0.baseAddress, count) })
            }
        }
    }

    /// - Returns: whether there is a row.
    private func step(_ handle: OpaquePointer) throws(DatabaseError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let status: throw DatabaseError(code: status, message: String(cString: sqlite3_errmsg(database)))
        }
    }

    private func reset(_ handle: OpaquePointer) {
        // Repeats the status of the last step, which was looked at.
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    private func check(_ status: CInt) throws(DatabaseError) {
        guard status != SQLITE_OK else { return }
        throw DatabaseError(code: status, message: String(cString: sqlite3_errmsg(database)))
    }
}

/// The row a statement stands at; valid within the closure that is given it.
struct Row {
    fileprivate let handle: OpaquePointer

    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(handle, column) }

    func optionalInteger(_ column: CInt) -> Int64? { isNull(column) ? nil : integer(column) }

    func text(_ column: CInt) -> String { String(decoding: blob(column), as: UTF8.self) }

    func optionalText(_ column: CInt) -> String? { isNull(column) ? nil : text(column) }

    func blob(_ column: CInt) -> [UInt8] {
        // In this order: the pointer may move when the length is asked for in another encoding.
        guard let pointer = sqlite3_column_blob(handle, column) else { return [] }
        let count = Int(sqlite3_column_bytes(handle, column))
        return Array(UnsafeRawBufferPointer(start: pointer, count: count))
    }

    private func isNull(_ column: CInt) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }
}
