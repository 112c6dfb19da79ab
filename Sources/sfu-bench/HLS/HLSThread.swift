import Net
import Synchronization

/// A thread, and the viewers by HLS that it serves.
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
                var tally = HLSTally()
                tally.refuse("\(error)", count: setup.tickets.count)
                return shared.add(tally, standing: 0, of: setup.thread)
            }
            while !shared.isStopped.load(ordering: .acquiring) { crowd.turn() }
        }
    }

    /// Ends the thread, and with it its connections.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        thread.join()
    }
}
