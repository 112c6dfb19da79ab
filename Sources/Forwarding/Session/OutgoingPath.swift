import Base
import Peer

/// The path to a client that tells of each packet when it came: what was sent over it, and what it takes.
///
/// A class of its own, because every slot of the session reads and writes it with every packet.
final class OutgoingPath {
    var packets = SentPackets()
    var estimator = BandwidthEstimator()
    var allocator = LayerAllocator()
    /// What is being sent to find out whether the path takes more.
    var probe: ProbeRun?

    /// Whether the client has told of any packet; nothing is known before.
    var isKnown: Bool { packets.hasFeedback }

    /// When something is to be done next.
    var deadline: MonotonicTime {
        min(
            probe?.deadline ?? .distantFuture, isKnown ? estimator.deadline ?? .distantFuture : .distantFuture
        )
    }
}

/// A probe that is being sent: its packets leave in steps, at its bit rate.
struct ProbeRun {
    let probe: Probe
    /// Bytes that have left, and packets.
    private(set) var sent = 0
    private(set) var packets = 0
    private let began: MonotonicTime
    private(set) var deadline: MonotonicTime

    private static let step = Duration.milliseconds(2)
    /// However late a turn comes, no more leaves at once.
    private static let largestStep = 16 * 1_024

    init(_ probe: Probe, at now: MonotonicTime) {
        self.probe = probe
        began = now
        deadline = now
    }

    var isOver: Bool { sent >= probe.bytes }

    /// Bytes that may leave now; the next are due at `deadline`.
    mutating func bytesDue(at now: MonotonicTime) -> Int {
        guard now >= deadline else { return 0 }
        deadline = now + Self.step
        let elapsed = min(max(now.nanoseconds(since: began), 0), 1_000_000_000)
        let allowed = Int(elapsed / 1_000) * min(probe.bitrate, 1 << 30) / 8_000_000 + 1
        return min(allowed - sent, Self.largestStep, probe.bytes - sent)
    }

    mutating func note(_ bytes: Int) {
        sent += max(bytes, 1)
        packets += 1
    }
}
