/// Measures at which rate the bottleneck serves us while its queue is never empty.
///
/// Where a group met a queue, the link was busy since the group before, and served what came in between: over a run of
/// such groups that is exactly our share of the link. What was acknowledged in a window would be less wherever the link
/// was idle for a while, and a decrease by it would go too far.
package struct ServiceRate: Sendable {
    private static let window = 24
    /// Milliseconds of arrivals that are enough, and that are too few.
    private static let enough = 300.0
    private static let least = 50.0
    private static let leastPerNoise = 10.0

    /// Share of the run that one arrival may take.
    private static let pause = 0.75

    private var spans = InlineArray<24, Float>(repeating: 0)
    private var bytes = InlineArray<24, Int32>(repeating: 0)
    private var count = 0
    private var fewest = Self.least

    package init() {}

    /// Takes in a head; `isBusy` tells that it met a queue, `noise` the jitter in milliseconds.
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

    /// Bits a second over the last 300 ms of the run, or over all of a shorter one; nil if it is too short to tell.
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
        // A path that stood still for a moment, as radio links do, is no slower for it.
        if longest.span > Self.pause * span {
            span -= longest.span
            sum -= longest.bytes
        }
        guard back >= 2, span >= fewest else { return nil }
        return sum * 8_000 / span
    }
}
