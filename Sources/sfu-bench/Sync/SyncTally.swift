import Base
import Synchronization

/// One command, and what its change looks like to a follower.
struct SyncCommand: Sendable {
    /// From 1.
    let number: Int
    /// An HTTP request, whole.
    let request: [UInt8]
    /// What a change message holds that tells of it.
    let marker: [UInt8]
    /// What a snapshot holds that does, for those who read too slowly for changes.
    let snapshotMarker: [UInt8]
}

/// What the threads of a run have seen.
struct SyncTally: Sendable {
    /// From the command's first byte to the change read: all followers, and those on a thread of their own.
    var seen = LogHistogram()
    var sample = LogHistogram()
    /// From the command's first byte until the kernel had the change for its follower.
    var arrived = LogHistogram()
    /// What the change then waited until it was read: the tool's own part.
    var waited = LogHistogram()
    var sockets = SocketNews()
    /// Of the present command.
    var seenNow = 0
    var firstSeen: Int64?
    var lastSeen: Int64?
    var answer: (status: Int, after: Int64)?
}

/// What one thread has seen since it last told.
struct SyncNews {
    /// Changes of the present command: nanoseconds after its first byte, and for how long they had waited to be read.
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

/// What the threads of a run and the one who reports share.
final class SyncShared: Sendable {
    let tally = Mutex(SyncTally())
    private let present = Mutex<(command: SyncCommand, began: MonotonicTime)?>(nil)
    let isStopped = Atomic(false)

    /// The command that is under way, and when its first byte left.
    var command: (command: SyncCommand, began: MonotonicTime)? { present.withLock { $0 } }

    /// Notes that a command leaves now.
    func begin(_ command: SyncCommand, at now: MonotonicTime) {
        tally.withLock { tally in
            (tally.seenNow, tally.firstSeen, tally.lastSeen, tally.answer) = (0, nil, nil, nil)
        }
        present.withLock { $0 = (command, now) }
    }
}
