import Base

/// Estimates jitter: the mean deviation of packet spacing at the receiver from that at the sender.
/// - Source: RFC 3550 §6.4.1, A.8.
package struct JitterEstimator: Sendable {
    private let clockRate: UInt32
    /// In sixteenths of a tick.
    private var scaled: Int64 = 0
    private var lastTransit: UInt32?

    package init(clockRate: UInt32) {
        self.clockRate = clockRate
    }

    /// In ticks of the media clock, as receiver reports contain it.
    package var jitter: UInt32 { UInt32(clamping: scaled >> 4) }

    /// Adds a packet.
    /// - Parameter timestamp: from the RTP header, in ticks of the codec's clock.
    package mutating func add(timestamp: UInt32, at now: MonotonicTime) {
        let arrival = MediaTicks.ticks(nanoseconds: now.nanoseconds, clockRate: clockRate)
        let transit = UInt32(truncatingIfNeeded: arrival) &- timestamp
        defer { lastTransit = transit }
        guard let lastTransit else { return }
        let difference = Int64(Int32(bitPattern: transit &- lastTransit).magnitude)
        // A step of more than five seconds is a new time line and not jitter; it would take minutes to fade.
        guard difference <= Int64(clockRate) * 5 else { return }
        scaled += difference - ((scaled + 8) >> 4)
    }

    /// Notes that the sender restarted; its timestamps need not continue.
    package mutating func restart() {
        lastTransit = nil
    }
}
