import Base
import Forwarding
import Net
import Recordings
import StoryFeed
import Synchronization

/// What one worker has done so far, as of the last second.
package struct WorkerReportCopy: Sendable {
    /// Which of the node's workers.
    package let index: Int
    /// Of sessions and media.
    package let counters: WorkerCounters
    /// Of its sockets and its thread.
    package let network: WorkerStatistics
    /// Packets of other workers that it did not take in time.
    package let relayOverflow: UInt64
}

extension Node {
    /// Totals since the start, and how many there are now.
    package func feedStatistics() -> FeedCounters { live.feed.counters }

    /// What waits for control, by the names of the queues, and what was left out of them.
    package nonisolated var inboxCounters: [String: InboxCounters] {
        var counters = inboxes.counters
        counters["previews"] = previews?.inboxCounters
        counters["recordings"] = recordings?.inboxCounters
        return counters
    }

    /// One for each worker, in order.
    package func statistics() -> [WorkerReportCopy] { workers.reports }
}

extension Node {
    /// Whether new sessions are welcome.
    package var acceptsSessions: Bool { !isStopping }
}
