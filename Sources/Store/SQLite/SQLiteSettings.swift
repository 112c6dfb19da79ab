/// Location and limits of a `SQLiteStore`.
package struct SQLiteSettings: Sendable {
    /// Created if it is missing.
    package var directory: String
    /// Limits on undelivered webhooks.
    package var outbox = OutboxLimits()
    /// Commits and queries that may wait; further ones are refused with `busy`.
    package var queueLimit = 4_096
    /// Bytes that waiting commits may bring in total.
    package var queueBytes = 64 << 20
    /// Milliseconds to wait while another process, such as a tool of an operator, has the file locked.
    package var patience = 2_000
    /// Pages of 4,096 bytes that the file may have; nil for no limit but the disk's.
    package var pageLimit: Int?

    package init(directory: String) {
        self.directory = directory
    }
}
