import Base
import Forwarding
import Net
import Recordings
import StoryFeed
import Synchronization

/// The counters of one worker, at most a second old.
package struct WorkerReportCopy: Sendable {
    /// The worker's number in the node.
    package let index: Int
    /// Of sessions and media.
    package let counters: WorkerCounters
    /// Of its sockets and its thread.
    package let network: WorkerStatistics
    /// Packets that other workers relayed to it and that it did not accept in time.
    package let relayOverflow: UInt64
    /// Datagrams that other workers on the same port handed to it and that it did not accept in time.
    package let handoverOverflow: UInt64
}

extension Node {
    /// Totals since the start, and current numbers.
    package func feedStatistics() -> FeedCounters { live.feed.counters }

    /// How much waits for the node in each queue and how much was dropped, by queue name.
    package nonisolated var inboxCounters: [String: InboxCounters] {
        var counters = inboxes.counters
        counters["previews"] = previews?.inboxCounters
        counters["recordings"] = recordings?.inboxCounters
        counters["clips"] = clips?.inboxCounters
        counters["packagings"] = packagings?.inboxCounters
        counters["restreams"] = restreams?.inboxCounters
        return counters
    }

    /// Connections by RTMP and RTMPS; nil if the node accepts neither them nor SRT.
    package nonisolated var ingestCounters: StreamServerCounters? { entrance?.counters }
    /// Connections by SRT; nil if the node accepts none.
    package nonisolated var srtCounters: SRTServerCounters? { entrance?.srtCounters }

    /// One report for each worker, in order.
    package func statistics() -> [WorkerReportCopy] { workers.reports }
}

/// The number of current sessions, by purpose.
package struct SessionCounts: Equatable, Sendable {
    /// Publishers by WHIP, RTMP and SRT.
    package internal(set) var publishing = 0
    /// Hosts and speakers who use the stage's endpoint.
    package internal(set) var onStage = 0
    /// Players by WHEP.
    package internal(set) var playing = 0
    /// Viewers who use the stage's endpoint.
    package internal(set) var inAudience = 0
    /// Viewers of the feed.
    package internal(set) var inFeed = 0

    package init() {}

    /// The number of sessions of all purposes.
    package var total: Int { publishing + onStage + playing + inAudience + inFeed }
}

extension Node {
    /// As of now.
    package var sessionCounts: SessionCounts { live.sessions.counts }

    /// The node's time.
    package var moment: Moment { now() }
}

extension Node {
    /// Whether new sessions may begin; false from the beginning of `stop`.
    package var acceptsSessions: Bool { !isStopping }

    /// Wakes the loop of every worker; a loop that is not stuck turns within a second, whether idle or busy.
    package nonisolated func wakeWorkers() { workers.wake() }

    /// Workers whose loop has not turned since `wakeWorkers`; if that was seconds ago, their threads are stuck.
    package nonisolated var sleepingWorkers: [Int] { workers.asleep }
}
