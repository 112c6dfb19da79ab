/// Watches how far the path spreads the packets of our own bursts, to see that it has become faster.
///
/// A frame that leaves in one burst comes at the rate of the slowest link. What that tells is biased by jitter and by
/// other traffic and is no estimate, but when it rises clearly beyond what it was when a probe failed, it is time to
/// probe again.
package struct TrainRate: Sendable {
    private static let ageing = 0.92
    private static let rise = 1.5
    private static let fewest = 8

    private var bytes = 0.0
    private var milliseconds = 0.0
    private var count = 0
    private var reference: Double?

    package init() {}

    /// Bits a second, by the last trains; nil for none.
    package var bitrate: Double? {
        milliseconds > 0 ? bytes * 8_000 / milliseconds : nil
    }

    /// Takes in packets that left together; trains spread over seconds say nothing of the path.
    package mutating func receive(_ train: PacketGroups.Train) {
        guard train.spread >= 0, train.spread < 5_000 else { return }
        bytes = Self.ageing * bytes + Double(train.bytes)
        milliseconds = Self.ageing * milliseconds + max(train.spread, 0.1)
        count = min(count + 1, 1_000)
    }

    /// Remembers the present as that in which a probe failed.
    package mutating func mark() {
        reference = bitrate
        count = 0
    }

    /// Whether trains come clearly faster than at the mark; true once.
    package mutating func hasRisen() -> Bool {
        guard let reference, let bitrate, count >= Self.fewest, bitrate > Self.rise * reference else {
            return false
        }
        self.reference = nil
        return true
    }
}
