import Synchronization

/// Passes batches between workers: each worker has an inbox that the others write to.
///
/// The lock is taken once per batch and pair of workers, never per packet. A worker that does not empty its inbox
/// loses packets but no notices: its viewers see a gap and request a key frame, and other workers are not affected.
package final class RelayExchange: Sendable {
    private struct Inbox {
        var batches: [(sender: Int, batch: RelayBatch)] = []
        var bytes = 0
        var droppedPackets: UInt64 = 0
        var wake: (@Sendable () -> Void)?
    }

    /// Maximum size of the media and messages that wait for one worker, in bytes: a third of a second at 100 Mbit/s.
    package static let capacity = 4 << 20

    private let inboxes: [Mutex<Inbox>.Box]

    package init(workers: Int) {
        inboxes = (0..<workers).map { _ in Mutex<Inbox>.Box(Inbox()) }
    }

    /// The number of workers, each of which has one inbox.
    package var workerCount: Int { inboxes.count }

    /// Sets the function that wakes a worker when its inbox is no longer empty; it runs on the sender's thread.
    package func setWaker(of worker: Int, _ wake: @escaping @Sendable () -> Void) {
        inboxes[worker].mutex.withLock { $0.wake = wake }
    }

    /// Number of packets, messages and repeated notices that were dropped, because `worker` did not keep up.
    package func droppedPackets(of worker: Int) -> UInt64 {
        inboxes[worker].mutex.withLock { $0.droppedPackets }
    }

    /// Puts a batch into the receiver's inbox, and wakes the receiver if the inbox was empty.
    ///
    /// A batch that does not fit is delivered without packets and messages.
    func post(_ batch: RelayBatch, from sender: Int, to receiver: Int) {
        let wake = inboxes[receiver].mutex.withLock { inbox -> (@Sendable () -> Void)? in
            let isFirst = inbox.batches.isEmpty
            let size = batch.bytes.count + batch.messageBytes
            if inbox.bytes + size <= Self.capacity {
                inbox.bytes += size
                inbox.batches.append((sender, batch))
            } else {
                let rest = batch.withoutPackets
                inbox.droppedPackets += UInt64(batch.items.count - rest.items.count)
                if !rest.isEmpty { inbox.batches.append((sender, rest)) }
            }
            return isFirst ? inbox.wake : nil
        }
        wake?()
    }

    /// Empties a worker's inbox; batches are in the order in which they were posted.
    func takeAll(for receiver: Int) -> [(sender: Int, batch: RelayBatch)] {
        inboxes[receiver].mutex.withLock { inbox in
            defer {
                inbox.batches = []
                inbox.bytes = 0
            }
            return inbox.batches
        }
    }
}

extension Mutex {
    /// Holds a mutex, which cannot be copied, so that it can be an array element.
    fileprivate final class Box: Sendable where Value: Sendable {
        let mutex: Mutex<Value>

        init(_ value: sending Value) {
            mutex = Mutex(value)
        }
    }
}
