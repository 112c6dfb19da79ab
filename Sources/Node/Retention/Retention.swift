import Base
import Recordings
import Store

/// How far a node is with deleting what is old enough, and what it has deleted so far.
struct Retention {
    /// Since the start.
    private(set) var counts = RetentionCounts()
    /// When to look again.
    private(set) var due = MonotonicTime.zero
    /// Whether the log says already that something could not be deleted.
    private var isFailureTold = false
    /// Of the ended streams looked at, the last; nil to begin with the first.
    var lastStream: StreamListing?
    /// Streams that ended up to this one have no comments any more that are too old.
    var lastCommented: StreamListing?

    // MARK: What was deleted

    mutating func noteStream() { counts.streams &+= 1 }

    mutating func noteComments(_ count: Int) { counts.comments &+= UInt64(clamping: count) }

    mutating func note(_ expiry: RecordingDesk.Expiry, of kind: RecordingEntry.Kind) {
        switch kind {
        case .recording: counts.recordings &+= UInt64(clamping: expiry.recordings)
        case .clip: counts.clips &+= UInt64(clamping: expiry.recordings)
        }
        counts.bytes &+= UInt64(clamping: expiry.bytes)
    }

    mutating func noteFailures(_ count: Int) { counts.failures &+= UInt64(clamping: count) }

    // MARK: Turns

    /// Ends a turn, in which this could not be deleted; all of it is tried again.
    /// - Parameter next: when the next turn is due.
    /// - Returns: what the log is to say; nil where it has said of the turn before that something failed.
    mutating func endTurn(failures: [String], next: MonotonicTime) -> String? {
        noteFailures(failures.count)
        defer {
            isFailureTold = !failures.isEmpty
            due = next
        }
        return isFailureTold ? nil : failures.first
    }
}

/// What was deleted because it was old enough, for monitoring.
package struct RetentionCounts: Equatable, Sendable {
    package internal(set) var streams: UInt64 = 0
    package internal(set) var recordings: UInt64 = 0
    package internal(set) var clips: UInt64 = 0
    package internal(set) var comments: UInt64 = 0
    /// Of the files of recordings and clips.
    package internal(set) var bytes: UInt64 = 0
    /// Times that something could not be deleted.
    package internal(set) var failures: UInt64 = 0
}
