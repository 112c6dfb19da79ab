/// Tells how long packets wait in the queue of the path, and how much of that our own bursts explain.
///
/// The shortest delay of the last 10 to 20 s counts as that of an empty queue. Against it stands a model of the queue
/// that our own groups make on a link of the estimated rate: a key frame of 30 kB that stands in the queue for 200 ms
/// and drains is what was to be expected, and is no sign that the link has become slower.
package struct QueueDelay: Sendable {
    /// A change from one group to the next that no queue makes: the receiver's clock was set, or the path stood still.
    private static let jump = 5_000.0
    /// Milliseconds after which the shortest delay is looked for anew.
    private static let baseWindow = 10_000.0
    /// Weights of one head in the means.
    private static let noiseGain = 0.03
    private static let usualGain = 0.005
    /// Milliseconds; what waits longer as a rule is a queue and no jitter.
    private static let mostUsual = 20.0

    /// Delay since the first head in milliseconds: of the last one, and the shortest ones.
    private var delay = 0.0
    private var shortest = 0.0
    private var shortestBefore = 0.0
    private var windowStart = 0.0
    /// Milliseconds of queue that our own groups make.
    private var own = 0.0

    /// Milliseconds that the last head waited.
    package private(set) var total = 0.0
    /// Milliseconds of it that our own groups do not explain.
    package private(set) var unexplained = 0.0
    /// Milliseconds that heads wait unexplained as a rule, for jitter only adds to the shortest delay.
    package private(set) var usual = 0.0
    /// Mean change from one head to the next in milliseconds, bounded against what is no jitter.
    package private(set) var noise = 2.0

    /// Milliseconds that the last head waited unexplained, beyond the usual.
    package var excess: Double { unexplained - usual }

    /// Whether the last head met a queue for certain.
    package var isBusy: Bool { total > usual + 1.5 * noise + 4 }

    package init() {}

    /// Takes in a head; `rate` is the bits a second of the link whose queue our own groups are thought to make.
    /// - Returns: false where the clock has jumped and everything begins anew.
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
