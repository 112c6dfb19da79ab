import Base

/// Says how much it can take in, as receivers do that measure by when packets left (REMB).
///
/// It lowers it while a queue grows, and raises it by 8 % a second, to no more than half beyond what comes.
package struct EstimatingReceiver {
    /// Milliseconds of queue that count as too much.
    private static let queue = 80.0
    private var arrivals: [(bytes: Int, time: MonotonicTime)] = []
    private var bytes = 0
    private var began: MonotonicTime?
    private var first: (sent: Double, time: MonotonicTime)?
    private var leastDelay = Double.infinity
    private var last: MonotonicTime?
    private var estimate: Double?

    package init() {}

    /// - Parameters:
    ///   - size: bytes of payload.
    ///   - sent: what the packet says of when it left (abs-send-time): 24 bits, of which 18 are a fraction of a second.
    /// - Returns: what is to be said now, in bits a second.
    package mutating func receive(_ size: Int, sent: UInt32, at now: MonotonicTime) -> UInt64? {
        began = began ?? now
        arrivals.append((size, now))
        bytes += size
        while let oldest = arrivals.first, oldest.time + .seconds(1) <= now {
            bytes -= oldest.bytes
            arrivals.removeFirst()
        }
        let stamp = Double(sent) / Double(1 << 18) * 1_000
        let start = first ?? (stamp, now)
        first = start
        var passed = (stamp - start.sent).truncatingRemainder(dividingBy: 64_000)
        let elapsed = Double(now.nanoseconds(since: start.time)) / 1e6
        while passed < elapsed - 32_000 { passed += 64_000 }
        let delay = elapsed - passed
        leastDelay = min(leastDelay, delay)
        return say(isOverused: delay - leastDelay > Self.queue, at: now)
    }

    private mutating func say(isOverused: Bool, at now: MonotonicTime) -> UInt64? {
        let pause = Duration.milliseconds(isOverused ? 50 : 500)
        guard let began, now >= (last ?? now) + pause || last == nil else { return nil }
        guard isOverused || estimate != nil || now >= began + .seconds(3) else { return nil }
        defer { last = now }
        let known = min(max(Double(now.nanoseconds(since: began)) / 1e9, 0.1), 1)
        let throughput = Double(bytes) * 8 / known
        var next = estimate ?? throughput
        if isOverused {
            next = 0.85 * throughput
        } else if let last {
            let seconds = min(Double(now.nanoseconds(since: last)) / 1e9, 1)
            next = min(next + 0.08 * seconds * next, max(1.5 * throughput + 10_000, next))
        }
        estimate = next
        return UInt64(next)
    }
}
