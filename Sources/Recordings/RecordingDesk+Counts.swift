extension RecordingDesk {
    /// Numbers for metrics.
    package struct Counters: Equatable, Sendable {
        /// Recordings under way now.
        package var active = 0
        /// Recordings since the start; later parts of the same recording are not counted.
        package var started: UInt64 = 0
        /// Parts since the start, by the reason of their end.
        package var ended: [RecordingEntry.EndReason: UInt64] = [:]
        /// Of parts that have ended.
        package var bytes: UInt64 = 0
    }

    /// The result of deleting recordings that are old enough.
    package struct Expiry: Equatable, Sendable {
        /// Files that were deleted.
        package var recordings = 0
        /// Size of the deleted files.
        package var bytes: Int64 = 0
        /// Why a file could not be deleted; nil if all could.
        package var failure: String?
        /// Whether more files are old enough.
        package var isMore = false

        package init() {}
    }
}
