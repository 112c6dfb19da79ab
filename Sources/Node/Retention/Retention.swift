import Base
import Recordings
import Store

/// How far a node has come with deleting what is too old, and what it has deleted.
struct Retention {
    /// Since the start.
    private(set) var counts = RetentionCounts()
    /// When the next turn begins.
    private(set) var due = MonotonicTime.zero
    /// Whether the previous turn failed; the log reports only the first of a row.
    private var isFailureTold = false
    /// The ended stream at which the last turn stopped; nil to begin with the first.
    var lastStream: StreamListing?
    /// All streams that ended up to this one have had their old comments deleted.
    var lastCommented: StreamListing?

    // MARK: What was deleted

    mutating func noteStream() { counts.streams &+= 1 }

    mutating func noteComments(_ count: Int) { counts.comments &+= UInt64(clamping: count) }

    /// Counts what was deleted.
    ///
    /// The desk counts clips as recordings, so the kind says what they were.
    mutating func note(_ expiry: RecordingDesk.Expiry, of kind: RecordingEntry.Kind) {
        switch kind {
        case .recording: counts.recordings &+= UInt64(clamping: expiry.recordings)
        case .clip: counts.clips &+= UInt64(clamping: expiry.recordings)
        }
        counts.bytes &+= UInt64(clamping: expiry.bytes)
    }

    mutating func noteFailures(_ count: Int) { counts.failures &+= UInt64(clamping: count) }

    // MARK: Turns

    /// Ends a turn.
    /// - Parameters:
    ///   - failures: the reasons why something could not be deleted; the next turn tries again.
    ///   - next: when the next turn is due.
    /// - Returns: the reason to log; nil if nothing failed, or if the turn before failed, too.
    mutating func endTurn(failures: [String], next: MonotonicTime) -> String? {
        noteFailures(failures.count)
        defer {
            isFailureTold = !failures.isEmpty
            due = next
        }
        return isFailureTold ? nil : failures.first
    }
}

/// What was deleted because of its age, for monitoring.
package struct RetentionCounts: Equatable, Sendable {
    package internal(set) var streams: UInt64 = 0
    package internal(set) var recordings: UInt64 = 0
    package internal(set) var clips: UInt64 = 0
    package internal(set) var comments: UInt64 = 0
    /// Bytes of the deleted files of recordings and clips.
    package internal(set) var bytes: UInt64 = 0
    /// Failed attempts to delete something.
    package internal(set) var failures: UInt64 = 0
}
