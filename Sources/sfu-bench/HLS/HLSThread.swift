import Net
import Synchronization

/// A thread with its HLS viewers.
final class HLSThread: Sendable {
    private let shared: HLSShared
    private let thread: NativeThread

    init(name: String, cpu: Int?, _ setup: HLSCrowd.Setup, shared: HLSShared) throws {
        self.shared = shared
        thread = try NativeThread(name: name, cpu: cpu) {
            let crowd: HLSCrowd
            do {
                crowd = try HLSCrowd(setup, shared: shared)
            } catch {
                // Without libcurl no viewer of this thread can begin: all of them count as refused.
                var tally = HLSTally()
                tally.refuse("\(error)", count: setup.tickets.count)
                return shared.add(tally, standing: 0, of: setup.thread)
            }
            while !shared.isStopped.load(ordering: .acquiring) { crowd.turn() }
        }
    }

    /// Stops the viewers of all threads, and waits for this thread, which closes its connections.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        thread.join()
    }
}
