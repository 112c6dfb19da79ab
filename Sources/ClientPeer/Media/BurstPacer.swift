import Base

/// Lets the packets of a frame leave in bursts, as browsers do.
///
/// Every `interval` as many packets leave as the pacing rate gives bytes for; a packet that exceeds the rest of them
/// still leaves and is paid for by the next burst. Late calls catch up.
/// - Source: libwebrtc's `PacingController`: bursts of 5 ms at 2.5 times the target rate.
package struct BurstPacer<Packet> {
    /// How much faster than the media's rate packets may leave.
    package static var rateFactor: Double { 2.5 }
    /// More than this may not wait: the rate rises until it does not.
    private static var longestQueue: Double { 0.5 }
    /// Bursts that may be made up for at once.
    private static var catchUp: Int { 20 }

    private let interval: Int64
    /// In bytes a second.
    private let rate: Double
    private var queue: [(packet: Packet, size: Int)] = []
    private var head = 0
    private var queuedBytes = 0
    private var budget = 0
    private var nextBurst = MonotonicTime.zero
    /// When the burst under way was due.
    private var due = MonotonicTime.zero

    /// - Parameters:
    ///   - bitrate: of the media, in bits a second.
    ///   - interval: zero lets everything leave at once.
    package init(bitrate: Int, interval: Duration = .milliseconds(5)) {
        self.interval = max(interval.wholeNanoseconds, 0)
        rate = Double(max(bitrate, 1)) / 8 * Self.rateFactor
    }

    /// Whether nothing waits.
    package var isEmpty: Bool { head == queue.count }

    /// When `next` has to be called; nil if nothing waits.
    package var deadline: MonotonicTime? { isEmpty ? nil : nextBurst }

    /// - Parameter size: in bytes, as it counts against the burst.
    package mutating func enqueue(_ packet: Packet, size: Int, at now: MonotonicTime) {
        if isEmpty {
            queue.removeAll(keepingCapacity: true)
            head = 0
            nextBurst = max(nextBurst, now)
            // What the last burst left over is gone; what it overdrew is not.
            budget = min(budget, 0)
        }
        queue.append((packet, size))
        queuedBytes += size
    }

    /// Takes out the next packet, if its burst has come.
    ///
    /// - Returns: the packet and when it was due.
    package mutating func next(at now: MonotonicTime) -> (packet: Packet, due: MonotonicTime)? {
        guard !isEmpty else { return nil }
        guard interval > 0 else { return (take(), now) }
        if budget <= 0 {
            guard now >= nextBurst else { return nil }
            let missed = Int(min(now.nanoseconds(since: nextBurst) / interval, Int64(Self.catchUp)))
            let needed = Double(queuedBytes) / Self.longestQueue
            let quantum = max(rate, needed) * Double(interval) / 1e9
            budget += Int(quantum) * (missed + 1)
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
