import Base
import Store
import Synchronization

/// How long is kept what is over; what is nil is kept until somebody deletes it.
package struct RetentionSettings: Equatable, Sendable {
    /// In seconds after a stream's end, with all that is known of it; one that has recordings stays as long as they do.
    package var streams: Int?
    /// In seconds after a recording's end.
    package var recordings: Int?
    /// In seconds after a clip was made.
    package var clips: Int?
    /// In seconds after a comment was written; in a stream that has ended, after its end.
    package var comments: Int?

    package init() {}

    /// Between two looks: what is kept for a month may stay a minute longer.
    var interval: Duration {
        let shortest = [streams, recordings, clips, comments].compactMap(\.self).min() ?? 600
        return .seconds(min(max(shortest / 10, 1), 60))
    }
}

/// How far the node is with what is kept for so long and no longer.
struct RetentionProgress {
    /// When to look again.
    var due = MonotonicTime.zero
    /// Of the ended streams looked at, the last; nil to begin with the first.
    var lastStream: StreamListing?
    /// Streams that ended up to this one have no comments any more that are too old.
    var lastCommented: StreamListing?
    /// Whether that is said in the log already.
    var hasFailed = false
}

/// What was deleted because it was old enough, for monitoring.
package final class RetentionCounters: Sendable {
    package struct Counts: Equatable, Sendable {
        package var streams: UInt64 = 0
        package var recordings: UInt64 = 0
        package var clips: UInt64 = 0
        package var comments: UInt64 = 0
        /// Of the files of recordings and clips.
        package var bytes: UInt64 = 0
        /// Times that something could not be deleted.
        package var failures: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    package var copy: Counts { counts.withLock { $0 } }

    func change(_ body: (inout Counts) -> Void) { counts.withLock { body(&$0) } }
}
