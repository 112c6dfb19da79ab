import Forwarding
import Net
import Synchronization

/// What one worker has done so far, as of the last second.
package struct WorkerReportCopy: Sendable {
    package let index: Int
    package let counters: WorkerCounters
    package let network: WorkerStatistics
}

extension Node {
    package func statistics() -> [WorkerReportCopy] {
        workers.enumerated().map { index, worker in
            WorkerReportCopy(
                index: index, counters: worker.report.counters.withLock { $0 }, network: worker.statistics)
        }
    }
}

extension Node {
    /// Whether new sessions are welcome.
    package var acceptsSessions: Bool { !isStopping }
}
