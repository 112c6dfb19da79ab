/// Measures how long packets wait in the path's queue, and how much of that our own bursts explain.
///
/// The shortest delay of the last 10 to 20 s counts as that of an empty queue. The rest is compared with a model of
/// the queue that our own groups make on a link of the estimated rate: a key frame of 30 kB that fills the queue
/// for 200 ms and drains is to be expected, and no sign that the link has become slower.
package struct QueueDelay: Sendable {
    /// Milliseconds; a larger change between two groups is no queue: the receiver's clock was set, or the path
    /// stalled.
    private static let jump = 5_000.0
    /// Milliseconds after which the search for the shortest delay starts again.
    private static let baseWindow = 10_000.0
    /// Weights of one head in the averages.
    private static let noiseGain = 0.03
    private static let usualGain = 0.005
    /// Milliseconds; a longer usual wait is a queue and not jitter.
    private static let mostUsual = 20.0

    /// Delays in milliseconds relative to the first head: of the last head, and the shortest of this window and the
    /// one before.
    private var delay = 0.0
    private var shortest = 0.0
    private var shortestBefore = 0.0
    private var windowStart = 0.0
    /// Milliseconds of queue that our own groups make, by the model.
    private var own = 0.0

    /// Milliseconds that the last head waited.
    package private(set) var total = 0.0
    /// Milliseconds of that which our own groups do not explain.
    package private(set) var unexplained = 0.0
    /// Milliseconds of unexplained delay that are usual, because jitter only adds to the shortest delay.
    package private(set) var usual = 0.0
    /// Mean change from one head to the next in milliseconds, with outliers bounded.
    package private(set) var noise = 2.0

    /// Unexplained milliseconds of the last head beyond the usual.
    package var excess: Double { unexplained - usual }

    /// Whether the last head certainly met a queue.
    package var isBusy: Bool { total > usual + 1.5 * noise + 4 }

    package init() {}

    /// Processes a head.
    /// - Parameter rate: bits per second of the link in the model of our own queue.
    /// - Returns: false if the receiver's clock has jumped, and the caller must start again.
    package mutating func receive(_ head: PacketGroups.Head, rate: Double) -> Bool {
        let change = head.arrivalGap - head.sentGap
        guard abs(change) < Self.jump else { return false }
        delay += change
        if head.sent - windowStart > Self.baseWindow {
            let isRecent = head.sent - windowStart < 2 * Self.baseWindow
            shortestBefore = isRecent ? shortest : delay
            shortest = delay
            windowStart = head.sent
        }
        shortest = min(shortest, delay)
        total = delay - min(shortest, shortestBefore)
        own = max(own + Double(head.load) * 8_000 / max(rate, 1) - head.sentGap, 0)
        own = min(own, total)
        let before = unexplained
        unexplained = total - own
        let step = min(abs(unexplained - before), 3 * noise + 2)
        noise += Self.noiseGain * (step - noise)
        let waited = min(unexplained, usual + 3 * noise + 2)
        usual = min(usual + Self.usualGain * (waited - usual), Self.mostUsual)
        return true
    }
}
