/// Measures at which rate the bottleneck serves us while its queue is never empty.
///
/// Where a group met a queue, the link was busy since the group before, and served what came in between: over a run of
/// such groups that is exactly our share of the link. What was acknowledged in a window would be less wherever the link
/// was idle for a while, and a decrease by it would go too far.
package struct ServiceRate: Sendable {
    private static let window = 24
    /// Milliseconds of arrivals that are enough, and that are too few.
    private static let enough = 300.0
    private static let fewest = 60.0

    private var spans = InlineArray<24, Float>(repeating: 0)
    private var bytes = InlineArray<24, Int32>(repeating: 0)
    private var count = 0

    package init() {}

    /// Takes in a head; `isBusy` tells that it met a queue.
    package mutating func receive(_ head: PacketGroups.Head, isBusy: Bool) {
        guard isBusy, head.arrivalGap >= 0 else {
            count = 0
            return
        }
        spans[count % Self.window] = Float(head.arrivalGap)
        bytes[count % Self.window] = Int32(clamping: head.served)
        count += 1
        if count >= 3 * Self.window { count -= Self.window }
    }

    /// Bits a second over the last 300 ms of the run, or over the run if that is shorter; nil for one too short to tell.
    package var bitrate: Double? {
        var span = 0.0
        var sum = 0.0
        var back = 0
        while back < min(count, Self.window), span < Self.enough {
            back += 1
            let index = (count - back) % Self.window
            span += Double(spans[index])
            sum += Double(bytes[index])
        }
        guard back >= 2, span >= Self.fewest else { return nil }
        return sum * 8_000 / span
    }
}
