import Base
import Crypto
import Foundation
import Net
import Peer
import Wire

/// The threads that send and receive for all clients of a run.
final class Generator: Sendable {
    private let threads: [ClientThread<ClientHost>]
    let shared: GeneratorShared
    /// Of the certificate that all clients use in their DTLS handshakes.
    let fingerprint: SDPFingerprint
    /// By which `OwnLoad` finds these threads in `/proc`.
    static let threadPrefix = "bench-"

    init(_ options: Options) throws {
        let identity = try DTLSIdentity()
        let shared = GeneratorShared(threads: options.machine.threads)
        let clock = WallClock(
            unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9), at: MonotonicClock.now())
        let profiles = options.audience.srtp.profiles
        // Created here once as well, because the closure below cannot throw.
        _ = try DTLSContext(identity: identity, profiles: profiles)
        fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        self.shared = shared
        // A context for each thread: it is used only there.
        threads = try (0..<options.machine.threads).map { index in
            let cpus = options.machine.cpus
            let seed = UInt64.random(in: .min ... .max)
            return try ClientThread<ClientHost>(
                // With fewer CPUs than threads, CPUs are shared in turn.
                name: Self.threadPrefix + String(index), cpu: cpus.isEmpty ? nil : cpus[index % cpus.count],
                coalesces: options.audience.coalesces
            ) { start in
                guard let dtls = try? DTLSContext(identity: identity, profiles: profiles) else {
                    preconditionFailure("a DTLS context that could be made a moment ago")
                }
                return ClientHost(
                    start, thread: index, shared: shared, dtls: dtls, clock: clock, seed: seed)
            }
        }
    }

    /// Whether the kernel accepted all CPUs that were requested.
    var isPinned: Bool { threads.allSatisfy(\.isPinned) }

    /// Connects a client, on the thread that its id selects.
    func add(_ setup: ClientSetup) {
        threads[setup.id % threads.count].post(.add(setup))
    }

    /// Disconnects a client, and waits until that is done: it sends nothing afterwards.
    func remove(id: Int) async {
        await withCheckedContinuation { done in
            // A thread that is about to end refuses the command, and disconnects all its clients itself.
            if !threads[id % threads.count].post(.remove(id: id, done), isEssential: true) { done.resume() }
        }
    }

    /// The sum of all threads' snapshots, each of which is at most 100 ms old.
    func snapshot() -> Snapshot {
        var sum = Snapshot()
        for snapshot in shared.all {
            sum.tally = sum.tally + snapshot.tally
            sum.earlier = sum.earlier + snapshot.earlier
            sum.time = max(sum.time, snapshot.time)
            sum.viewers += snapshot.viewers
            sum.stalled += snapshot.stalled
            sum.publishers += snapshot.publishers
        }
        return sum
    }

    /// Disconnects all clients, and waits for the threads to end.
    func stop() {
        for thread in threads { thread.stop() }
    }
}
