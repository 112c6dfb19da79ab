import Base
import Synchronization

/// A command, and what its change looks like in the followers' messages.
struct SyncCommand: Sendable {
    /// Counted from 1.
    let number: Int
    /// A complete HTTP request.
    let request: [UInt8]
    /// Bytes that a message with the change contains.
    let marker: [UInt8]
    /// Bytes that a snapshot with the change contains; slow followers get a snapshot instead of changes.
    let snapshotMarker: [UInt8]
}

/// What all threads of a run have seen.
struct SyncTally: Sendable {
    /// Nanoseconds from the command's first byte until the change was read, for all followers.
    ///
    /// `sample` has the followers on a separate thread.
    var seen = LogHistogram()
    var sample = LogHistogram()
    /// Nanoseconds from the command's first byte until the kernel had the change for the follower.
    var arrived = LogHistogram()
    /// Nanoseconds that the change then waited to be read, which is this tool's own time.
    var waited = LogHistogram()
    var sockets = SocketNews()
    /// Followers that have seen the current command's change.
    var seenNow = 0
    /// Of the current command, in nanoseconds after its first byte.
    var firstSeen: Int64?
    var lastSeen: Int64?
    var answer: (status: Int, after: Int64)?
}

/// What one thread has seen since its last report.
struct SyncNews {
    /// Changes of the current command: nanoseconds after its first byte, and how long they had waited to be read.
    var seen: [(after: Int64, waited: Int64?)] = []
    var sockets = SocketNews()
    var answer: (status: Int, after: Int64)?

    var isEmpty: Bool { seen.isEmpty && sockets.isEmpty && answer == nil }

    mutating func clear() {
        seen.removeAll(keepingCapacity: true)
        sockets = SocketNews()
        answer = nil
    }
}

extension SyncTally {
    /// Adds the report of one thread.
    mutating func merge(_ news: SyncNews, isSample: Bool) {
        for (after, waited) in news.seen {
            seen.add(after)
            if isSample { sample.add(after) }
            firstSeen = min(firstSeen ?? after, after)
            lastSeen = max(lastSeen ?? after, after)
            guard let waited else { continue }
            arrived.add(after - waited)
            self.waited.add(waited)
        }
        seenNow += news.seen.count
        sockets.merge(news.sockets)
        if let answer = news.answer { self.answer = answer }
    }
}

/// State that the threads of a run share with the task that controls it.
final class SyncShared: Sendable {
    let tally = Mutex(SyncTally())
    private let present = Mutex<(command: SyncCommand, began: MonotonicTime)?>(nil)
    let isStopped = Atomic(false)

    /// The current command, and when its first byte was sent; nil before the first command.
    var command: (command: SyncCommand, began: MonotonicTime)? { present.withLock { $0 } }

    /// Notes that a command is sent now, and resets what is counted for each command.
    func begin(_ command: SyncCommand, at now: MonotonicTime) {
        // The counters first: once the command is visible, other threads may count its changes.
        tally.withLock { tally in
            (tally.seenNow, tally.firstSeen, tally.lastSeen, tally.answer) = (0, nil, nil, nil)
        }
        present.withLock { $0 = (command, now) }
    }
}
