import Base

/// The mean deviation of packet spacing at the receiver from that at the sender.
/// - Source: RFC 3550 §6.4.1, A.8.
package struct JitterEstimator: Sendable {
    private let clockRate: UInt32
    /// In sixteenths of a tick.
    private var scaled: Int64 = 0
    private var lastTransit: UInt32?

    package init(clockRate: UInt32) {
        self.clockRate = clockRate
    }

    /// In ticks of the media clock.
    package var jitter: UInt32 { UInt32(clamping: scaled >> 4) }

    /// - Parameter timestamp: of the RTP header, in ticks of the codec's clock.
    package mutating func add(timestamp: UInt32, at now: MonotonicTime) {
        let arrival = MediaTicks.ticks(nanoseconds: now.nanoseconds, clockRate: clockRate)
        let transit = UInt32(truncatingIfNeeded: arrival) &- timestamp
        defer { lastTransit = transit }
        guard let lastTransit else { return }
        let difference = Int64(Int32(bitPattern: transit &- lastTransit).magnitude)
        // A step of more than five seconds is another time line, not jitter; it would take minutes to fade.
        guard difference <= Int64(clockRate) * 5 else { return }
        scaled += difference - ((scaled + 8) >> 4)
    }

    /// The sender started anew; its time stamps need not continue.
    package mutating func restart() {
        lastTransit = nil
    }
}
