import Base

/// What a stream's state no longer holds, kept beside it to be read a page at a time.
package struct ArchiveEntry: Sendable, Equatable {
    /// From 1 on; no two of a stream's archive have the same.
    package let number: Int
    /// In milliseconds since 1970.
    package let writtenAt: Int64
    /// Who alone may read it, in the words of whoever writes it; nil for everybody.
    package let reader: String?
    /// Whatever its writer makes of it.
    package let bytes: [UInt8]

    package init(number: Int, writtenAt: Int64, reader: String? = nil, bytes: [UInt8]) {
        self.number = number
        self.writtenAt = writtenAt
        self.reader = reader
        self.bytes = bytes
    }
}

/// What a commit does to its stream's archive, in this order.
package struct ArchiveChange: Sendable, Equatable {
    /// Of one stream; where there are more, those with the lowest numbers go.
    package static let limit = 100_000

    /// What comes into it, by rising numbers.
    package var entries: [ArchiveEntry] = []
    /// Numbers of those that go; others are no matter.
    package var removed: [Int] = []
    /// All that were written before this time go, in milliseconds since 1970; nil for none.
    package var expiry: Int64?

    package init() {}
}

/// Which part of an archive to read.
package struct ArchiveQuery: Sendable, Equatable {
    /// Whose entries to read.
    package enum Readers: Sendable, Equatable {
        /// Those that everybody may read, and those that this one alone may.
        case everybody(or: String?)
        /// All there are.
        case all
    }

    /// Only entries with a higher number.
    package var after = 0
    /// Only entries with a lower number.
    package var before = Int.max
    /// Only entries that were written then, in milliseconds since 1970.
    package var written = Int64.min..<Int64.max
    package var readers = Readers.everybody(or: nil)
    /// Whether the entries are the last of those chosen, and the newest comes first.
    package var isNewestFirst = false
    /// At most so many.
    package var limit: Int

    package init(limit: Int) {
        self.limit = limit
    }
}
