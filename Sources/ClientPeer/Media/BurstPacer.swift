import Base

/// Sends the packets of a frame in bursts, as browsers do.
///
/// Every `interval` the pacing rate grants a budget of bytes. The packet that exceeds the budget is still sent, and the
/// next burst pays for it. Late calls catch up.
/// - Source: libwebrtc's `PacingController`: bursts of 5 ms at 2.5 times the target rate.
package struct BurstPacer<Packet> {
    /// How much faster than the media's bitrate packets may leave.
    package static var rateFactor: Double { 2.5 }
    /// In seconds: if the queue would take longer, the rate rises until it does not.
    private static var longestQueue: Double { 0.5 }
    /// Missed bursts that a late call makes up for at most.
    private static var catchUp: Int { 20 }

    /// Between two bursts, in nanoseconds; 0 for no pacing.
    private let interval: Int64
    /// In bytes per second.
    private let rate: Double
    private var queue: [(packet: Packet, size: Int)] = []
    /// Index of the next packet; the queue is emptied only as a whole.
    private var head = 0
    private var queuedBytes = 0
    /// Bytes that the present burst may still send; negative after a packet that exceeded it.
    private var budget = 0
    private var nextBurst = MonotonicTime.zero
    /// When the present burst was due.
    private var due = MonotonicTime.zero

    /// - Parameters:
    ///   - bitrate: of the media, in bits per second.
    ///   - interval: zero for no pacing.
    package init(bitrate: Int, interval: Duration = .milliseconds(5)) {
        self.interval = max(interval.wholeNanoseconds, 0)
        rate = Double(max(bitrate, 1)) / 8 * Self.rateFactor
    }

    /// Whether nothing waits.
    package var isEmpty: Bool { head == queue.count }

    /// When `next` must be called; nil if no packet waits.
    package var deadline: MonotonicTime? { isEmpty ? nil : nextBurst }

    /// - Parameter size: in bytes, as it counts against the budget.
    package mutating func enqueue(_ packet: Packet, size: Int, at now: MonotonicTime) {
        if isEmpty {
            queue.removeAll(keepingCapacity: true)
            head = 0
            nextBurst = max(nextBurst, now)
            // The rest of the last burst's budget expires; its excess does not.
            budget = min(budget, 0)
        }
        queue.append((packet, size))
        queuedBytes += size
    }

    /// Removes and returns the next packet, if its burst is due.
    ///
    /// - Returns: the packet, and when it was due.
    package mutating func next(at now: MonotonicTime) -> (packet: Packet, due: MonotonicTime)? {
        guard !isEmpty else { return nil }
        guard interval > 0 else { return (take(), now) }
        if budget <= 0 {
            guard now >= nextBurst else { return nil }
            let missed = Int(min(now.nanoseconds(since: nextBurst) / interval, Int64(Self.catchUp)))
            let needed = Double(queuedBytes) / Self.longestQueue
            let quantum = max(rate, needed) * Double(interval) / 1e9
            // At least a byte, or a packet at a very low rate would wait for ever.
            budget += max(Int(quantum), 1) * (missed + 1)
            due = nextBurst
            nextBurst = max(nextBurst, now.advanced(byNanoseconds: -interval * Int64(Self.catchUp)))
                .advanced(byNanoseconds: interval * Int64(missed + 1))
            guard budget > 0 else { return nil }
        }
        return (take(), due)
    }

    private mutating func take() -> Packet {
        let (packet, size) = queue[head]
        head += 1
        queuedBytes -= size
        budget -= size
        return packet
    }
}
