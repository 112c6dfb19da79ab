import Base

/// A part of a stream's history that its state no longer contains, such as an old comment, to be read a page at a time.
package struct ArchiveEntry: Sendable, Equatable {
    /// At least 1, and unique within the stream's archive.
    package let number: Int
    /// In milliseconds since 1970.
    package let writtenAt: Int64
    /// The only identity that may read the entry, in the writer's words; nil for everyone.
    package let reader: String?
    /// Opaque to the store.
    package let bytes: [UInt8]

    package init(number: Int, writtenAt: Int64, reader: String? = nil, bytes: [UInt8]) {
        self.number = number
        self.writtenAt = writtenAt
        self.reader = reader
        self.bytes = bytes
    }
}

/// What a commit does to its stream's archive; its properties are applied in this order.
package struct ArchiveChange: Sendable, Equatable {
    /// Entries of one stream; beyond that, those with the lowest numbers are deleted.
    package static let limit = 100_000

    /// Entries to add, in ascending order of their numbers.
    package var entries: [ArchiveEntry] = []
    /// Numbers of entries to delete; numbers without an entry are ignored.
    package var removed: [Int] = []
    /// All entries written before this time are deleted; in milliseconds since 1970, nil to delete none.
    package var expiry: Int64?

    package init() {}
}

/// Selects a page of an archive.
package struct ArchiveQuery: Sendable, Equatable {
    /// Whose entries to include.
    package enum Readers: Sendable, Equatable {
        /// Entries for everyone, and those for this identity alone.
        case everybody(or: String?)
        /// All entries, whoever may read them.
        case all
    }

    /// Only entries with a higher number.
    package var after = 0
    /// Only entries with a lower number.
    package var before = Int.max
    /// Only entries written in this range; in milliseconds since 1970.
    package var written = Int64.min..<Int64.max
    package var readers = Readers.everybody(or: nil)
    /// Whether the page is the end of the selection, newest entry first.
    package var isNewestFirst = false
    /// At most this many entries.
    package var limit: Int

    package init(limit: Int) {
        self.limit = limit
    }
}
