import Synchronization

/// The post office between workers: each has an inbox that the others write to.
///
/// A lock is taken once per batch and pair of workers, never per packet. A worker that does not empty its inbox loses
/// packets, not notices: its viewers see a gap and ask for a key frame, and nobody else notices.
package final class RelayExchange: Sendable {
    private struct Inbox {
        var batches: [(sender: Int, batch: RelayBatch)] = []
        var bytes = 0
        var droppedPackets: UInt64 = 0
        var wake: (@Sendable () -> Void)?
    }

    /// Bytes of media that may wait for one worker: a third of a second at 100 Mbit/s.
    package static let capacity = 4 << 20

    private let inboxes: [Mutex<Inbox>.Box]

    package init(workers: Int) {
        inboxes = (0..<workers).map { _ in Mutex<Inbox>.Box(Inbox()) }
    }

    /// Each has one inbox.
    package var workerCount: Int { inboxes.count }

    /// Says how a worker is made to look into its inbox.
    package func setWaker(of worker: Int, _ wake: @escaping @Sendable () -> Void) {
        inboxes[worker].mutex.withLock { $0.wake = wake }
    }

    /// Packets that were not delivered to `worker`, because it did not keep up.
    package func droppedPackets(of worker: Int) -> UInt64 {
        inboxes[worker].mutex.withLock { $0.droppedPackets }
    }

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
    /// Gives a mutex, which cannot be copied, a place in an array.
    fileprivate final class Box: Sendable where Value: Sendable {
        let mutex: Mutex<Value>

        init(_ value: sending Value) {
            mutex = Mutex(value)
        }
    }
}
