import Base
import Peer

/// One worker's connections to the other workers.
final class WorkerLinks {
    let index: Int
    private let exchange: RelayExchange
    private var outgoing: [RelayBatch]
    private var hasOutgoing = false
    /// Packets sent to other workers, counted once per receiving worker.
    private(set) var sent = MediaCounters.Volume()

    init(index: Int, exchange: RelayExchange) {
        self.index = index
        self.exchange = exchange
        outgoing = Array(repeating: RelayBatch(), count: exchange.workerCount)
    }

    var others: some Sequence<Int> { (0..<outgoing.count).lazy.filter { [index] in $0 != index } }

    func tell(_ item: RelayBatch.Item, to worker: Int) {
        outgoing[worker].append(item)
        hasOutgoing = true
    }

    func tellAll(_ item: RelayBatch.Item) {
        for worker in others { tell(item, to: worker) }
    }

    func relay(_ packet: RelayedPacket, _ bytes: Span<UInt8>, to worker: Int) {
        sent.add(bytes.count)
        outgoing[worker].append(packet, bytes)
        hasOutgoing = true
    }

    /// Sends everything that was collected since the last call; called once per batch.
    func flush() {
        guard hasOutgoing else { return }
        hasOutgoing = false
        for worker in others where !outgoing[worker].isEmpty {
            var batch = RelayBatch()
            swap(&batch, &outgoing[worker])
            exchange.post(batch, from: index, to: worker)
        }
    }

    func takeAll() -> [(sender: Int, batch: RelayBatch)] {
        exchange.takeAll(for: index)
    }
}
