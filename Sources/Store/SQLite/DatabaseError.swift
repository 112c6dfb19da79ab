import CSQLite

/// What SQLite refused, in its own words.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
    /// An extended result code (sqlite.org/rescode.html).
    let code: CInt
    let message: String

    /// The kind of failure without its details.
    private var primary: CInt { code & 0xFF }

    var description: String { "\(message) (SQLite \(code))" }

    /// The file is damaged, or is none of SQLite's.
    var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB }

    /// The connection itself is as good as before: only this transaction could not be.
    var leavesConnectionUsable: Bool { primary == SQLITE_FULL || primary == SQLITE_BUSY }

    /// What was wanted may be too much, while less can be done.
    var mayConcernOneJob: Bool {
        primary == SQLITE_FULL || primary == SQLITE_TOOBIG || primary == SQLITE_CONSTRAINT
    }

    /// For those who asked for something.
    var storeError: StoreError {
        switch primary {
        case SQLITE_FULL: .unavailable("the disk is full")
        case SQLITE_READONLY: .unavailable("the data is read-only: \(description)")
        case SQLITE_BUSY, SQLITE_LOCKED: .unavailable("another program holds the data: \(description)")
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
}
