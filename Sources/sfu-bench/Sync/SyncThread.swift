import Net
import Synchronization

/// A thread with the followers that it reads.
final class SyncThread: Sendable {
    private let waker: Waker
    /// Far more than needed: the next command follows when all have seen the previous one.
    private let commands = Mailbox<SyncCommand>(capacity: 16)
    private let shared: SyncShared
    private let thread: NativeThread

    init(name: String, cpu: Int?, _ setup: SyncReader.Setup, shared: SyncShared) throws(NetError) {
        let waker = try Waker()
        let commands = commands
        self.waker = waker
        self.shared = shared
        thread = try NativeThread(name: name, cpu: cpu) {
            guard let reader = try? SyncReader(setup, shared: shared, waker: waker) else {
                return shared.tally.withLock { $0.sockets.failed += setup.followers }
            }
            var batch: [SyncCommand] = []
            while !shared.isStopped.load(ordering: .acquiring) {
                waker.clear()
                _ = commands.swap(into: &batch)
                for command in batch { reader.send(command) }
                batch.removeAll(keepingCapacity: true)
                reader.turn()
            }
        }
    }

    func send(_ command: SyncCommand) {
        _ = commands.post(command)
        waker.wake()
    }

    /// Stops the readers of all threads, and waits for this one, which closes its connections.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }
}
