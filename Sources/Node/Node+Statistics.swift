import Base
import Forwarding
import Net
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
    package func feedStatistics() -> FeedCounters {
        var counters = feedDesk.counters
        counters.sessions = feedDesk.places.count
        counters.followers = feedFollowers.count
        counters.streams = feedDesk.feed.count
        return counters
    }

    /// What waits for control, by the names of the queues, and what was left out of them.
    package nonisolated var inboxCounters: [String: InboxCounters] {
        var counters = inboxes.counters
        counters["previews"] = previews?.inboxCounters
        counters["recordings"] = recordings?.inboxCounters
        return counters
    }

    /// Says in the log what was dropped since the last time.
    func tellDrops() {
        for (name, counters) in inboxCounters.sorted(by: { $0.key < $1.key }) {
            let told = droppedTold.updateValue(counters.dropped, forKey: name) ?? 0
            guard counters.dropped > told else { continue }
            log.warning("events.dropped", ["queue": name, "events": counters.dropped - told])
        }
    }

    /// One for each worker, in order.
    package func statistics() -> [WorkerReportCopy] {
        workers.enumerated().map { index, worker in
            WorkerReportCopy(
                index: index, counters: worker.report.counters.withLock { $0 }, network: worker.statistics,
                relayOverflow: exchange?.droppedPackets(of: index) ?? 0)
        }
    }
}

extension Node {
    /// Whether new sessions are welcome.
    package var acceptsSessions: Bool { !isStopping }
}
