/// Where a `SQLiteStore` keeps its data, and how much.
package struct SQLiteSettings: Sendable {
    /// Made if it is not there.
    package var directory: String
    /// How many webhooks may wait.
    package var outbox = OutboxLimits()
    /// Commits and questions that may wait; beyond it they are refused with `busy`.
    package var queueLimit = 4_096
    /// Bytes of the commits that may wait.
    package var queueBytes = 64 << 20
    /// Milliseconds to wait for another process that has the file open with tools of its own.
    package var patience = 2_000
    /// Pages of 4,096 bytes that the file may have; nil for as many as the disk takes.
    package var pageLimit: Int?

    package init(directory: String) {
        self.directory = directory
    }
}
