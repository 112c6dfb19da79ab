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
    /// Of the certificate that all its clients show in their DTLS handshakes.
    let fingerprint: SDPFingerprint
    static let threadPrefix = "bench-"

    init(_ options: Options) throws {
        let identity = try DTLSIdentity()
        let shared = GeneratorShared(threads: options.machine.threads)
        let clock = WallClock(
            unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9), at: MonotonicClock.now())
        let profiles = options.audience.srtp.profiles
        // Made here too, where errors can be thrown.
        _ = try DTLSContext(identity: identity, profiles: profiles)
        fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        self.shared = shared
        threads = try (0..<options.machine.threads).map { index in
            let cpus = options.machine.cpus
            let seed = UInt64.random(in: .min ... .max)
            return try ClientThread<ClientHost>(
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

    var isPinned: Bool { threads.allSatisfy(\.isPinned) }

    func add(_ setup: ClientSetup) {
        threads[setup.id % threads.count].post(.add(setup))
    }

    /// Lets a client say goodbye, and waits until it has: nothing comes from it any more.
    func remove(id: Int) async {
        await withCheckedContinuation { done in
            // Refused by a thread that is about to end, which says goodbye for all its clients.
            if !threads[id % threads.count].post(.remove(id: id, done)) { done.resume() }
        }
    }

    /// What all threads saw until now, give or take 100 ms.
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

    /// Says goodbye to all servers, and waits for the threads.
    func stop() {
        for thread in threads { thread.stop() }
    }
}
