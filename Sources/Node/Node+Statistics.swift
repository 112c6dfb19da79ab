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
    /// Datagrams that came to other workers, which share its port, and that it did not take in time.
    package let handoverOverflow: UInt64
}

extension Node {
    /// Totals since the start, and how many there are now.
    package func feedStatistics() -> FeedCounters { live.feed.counters }

    /// What waits for control, by the names of the queues, and what was left out of them.
    package nonisolated var inboxCounters: [String: InboxCounters] {
        var counters = inboxes.counters
        counters["previews"] = previews?.inboxCounters
        counters["recordings"] = recordings?.inboxCounters
        counters["clips"] = clips?.inboxCounters
        counters["packagings"] = packagings?.inboxCounters
        counters["restreams"] = restreams?.inboxCounters
        return counters
    }

    /// Of connections by RTMP; nil where nobody is taken by it.
    package nonisolated var ingestCounters: StreamServerCounters? { entrance?.counters }
    /// The same by SRT.
    package nonisolated var srtCounters: SRTServerCounters? { entrance?.srtCounters }

    /// One for each worker, in order.
    package func statistics() -> [WorkerReportCopy] { workers.reports }
}

/// Sessions that live now, by what they are for.
package struct SessionCounts: Equatable, Sendable {
    /// By WHIP.
    package internal(set) var publishing = 0
    /// Hosts and speakers by the stage's endpoint.
    package internal(set) var onStage = 0
    /// By WHEP.
    package internal(set) var playing = 0
    /// Viewers by the stage's endpoint.
    package internal(set) var inAudience = 0
    /// Viewers of the feed.
    package internal(set) var inFeed = 0

    package init() {}

    /// Of all kinds.
    package var total: Int { publishing + onStage + playing + inAudience + inFeed }
}

extension Node {
    /// As of now.
    package var sessionCounts: SessionCounts { live.sessions.counts }

    /// The node's time.
    package var moment: Moment { now() }
}

extension Node {
    /// Whether new sessions are welcome.
    package var acceptsSessions: Bool { !isStopping }

    /// Asks every worker's loop for a turn, which an idle or a busy one makes within a second.
    package nonisolated func wakeWorkers() { workers.wake() }

    /// Those that have not turned since then: their threads are stuck.
    package nonisolated var sleepingWorkers: [Int] { workers.asleep }
}
