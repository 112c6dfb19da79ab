/// Measures how far the path spreads the packets of our own bursts, to notice that it has become faster.
///
/// A frame that leaves in one burst arrives at the rate of the slowest link. That rate is biased by jitter and
/// other traffic and is no estimate, but when it rises clearly above its value at the time a probe failed, it is
/// time to probe again.
package struct TrainRate: Sendable {
    // Weight of earlier trains; the factor that counts as a rise; and the trains that it needs.
    private static let ageing = 0.92
    private static let rise = 1.5
    private static let fewest = 8

    private var bytes = 0.0
    private var milliseconds = 0.0
    private var count = 0
    // The rate at the mark; nil without a mark.
    private var reference: Double?

    package init() {}

    /// Bits per second over the latest trains; nil without any.
    package var bitrate: Double? {
        milliseconds > 0 ? bytes * 8_000 / milliseconds : nil
    }

    /// Adds a burst; one spread over seconds shows nothing about the path.
    package mutating func receive(_ train: PacketGroups.Train) {
        guard train.spread >= 0, train.spread < 5_000 else { return }
        bytes = Self.ageing * bytes + Double(train.bytes)
        milliseconds = Self.ageing * milliseconds + max(train.spread, 0.1)
        count = min(count + 1, 1_000)
    }

    /// Marks the present rate as that at which a probe failed.
    package mutating func mark() {
        reference = bitrate
        count = 0
    }

    /// Whether bursts arrive clearly faster than at the mark; true once.
    package mutating func hasRisen() -> Bool {
        guard let reference, let bitrate, count >= Self.fewest, bitrate > Self.rise * reference else {
            return false
        }
        self.reference = nil
        return true
    }
}
