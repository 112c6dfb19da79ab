/// Measures the rate at which the bottleneck serves us while its queue is never empty.
///
/// If a group met a queue, the link was busy since the previous group and served what arrived in between: over a
/// run of such groups that is exactly our share of the link. The acknowledged rate over a window would be lower
/// wherever the link was idle for a while, and a decrease based on it would go too far.
package struct ServiceRate: Sendable {
    // Groups kept.
    private static let window = 24
    /// Milliseconds of arrivals that are enough, and fewest that are used; jitter raises the latter.
    private static let enough = 300.0
    private static let least = 50.0
    private static let leastPerNoise = 10.0

    /// Share of the run above which one gap between arrivals is left out.
    private static let pause = 0.75

    private var spans = InlineArray<24, Float>(repeating: 0)
    private var bytes = InlineArray<24, Int32>(repeating: 0)
    private var count = 0
    private var fewest = Self.least

    package init() {}

    /// Processes a head; `isBusy` is whether it met a queue, `noise` the jitter in milliseconds.
    package mutating func receive(_ head: PacketGroups.Head, isBusy: Bool, noise: Double) {
        fewest = min(Self.least + Self.leastPerNoise * noise, Self.enough)
        guard isBusy, head.arrivalGap >= 0 else {
            count = 0
            return
        }
        spans[count % Self.window] = Float(head.arrivalGap)
        bytes[count % Self.window] = Int32(clamping: head.served)
        count += 1
        if count >= 3 * Self.window { count -= Self.window }
    }

    /// Bits per second over the last 300 ms of the run, or over all of a shorter run; nil if it is too short.
    package var bitrate: Double? {
        var span = 0.0
        var sum = 0.0
        var back = 0
        var longest = (span: 0.0, bytes: 0.0)
        while back < min(count, Self.window), span < Self.enough {
            back += 1
            let index = (count - back) % Self.window
            span += Double(spans[index])
            sum += Double(bytes[index])
            if Double(spans[index]) > longest.span { longest = (Double(spans[index]), Double(bytes[index])) }
        }
        // A path that stalled for a moment, as radio links do, is not slower for it.
        if longest.span > Self.pause * span {
            span -= longest.span
            sum -= longest.bytes
        }
        guard back >= 2, span >= fewest else { return nil }
        return sum * 8_000 / span
    }
}
