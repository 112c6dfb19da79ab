extension RecordingDesk {
    /// What is counted.
    package struct Counters: Equatable, Sendable {
        /// Under way now.
        package var active = 0
        /// Parts that follow in the same recording are not counted.
        package var started: UInt64 = 0
        /// Parts, by why they did.
        package var ended: [RecordingEntry.EndReason: UInt64] = [:]
        /// Of recordings that have ended.
        package var bytes: UInt64 = 0
    }

    /// What was removed because it was old enough.
    package struct Expiry: Equatable, Sendable {
        package var recordings = 0
        /// Of their files.
        package var bytes: Int64 = 0
        /// Why others could not be; nil if they could.
        package var failure: String?
        /// Whether there are more.
        package var isMore = false

        package init() {}
    }
}
