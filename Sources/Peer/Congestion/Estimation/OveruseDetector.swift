/// Decides whether the path's queue grows or does not drain, from the delay that our own bursts do not explain.
///
/// There are three signs: a trend above a threshold that adapts to the path, as in GCC; a queue far beyond jitter
/// that several groups in a row met, which shows a sudden fall of the capacity within few groups; and a queue that
/// does not drain, whose growth is too slow for the trend.
/// - Source: draft-ietf-rmcat-gcc-02 §5.4; constants of browsers.
package struct OveruseDetector: Sendable {
    /// The state of the path's queue: stable, growing or standing, draining.
    package enum Usage: Equatable, Sendable {
        case normal, over, under
    }

    // The threshold adapts within its range, in milliseconds like the trend.
    private static let initialThreshold = 12.5
    private static let thresholdRange = 6.0...600.0
    // How fast the threshold follows a larger and a smaller trend, per millisecond.
    private static let growth = 0.0087
    private static let decay = 0.039
    /// A trend farther above the threshold than this does not move it.
    private static let outlier = 15.0
    /// Milliseconds for which the trend must be above the threshold.
    private static let duration = 10.0
    /// Milliseconds of sending that the last heads must cover to show a sudden fall.
    private static let suddenSpan = 25.0
    /// Milliseconds by which a queue must fall per millisecond of sending to count as draining, after a short
    /// stall.
    private static let drain = 0.4
    /// Milliseconds after which a queue that does not drain counts as over-use.
    private static let standingSpan = 300.0

    private var trend = Trendline()
    private var threshold = Self.initialThreshold
    private var lastTime: Double?
    private var aboveSince: Double?
    private var lastTrend = 0.0
    /// The last heads: when they left, and their unexplained delay, in milliseconds.
    private var times = InlineArray<4, Double>(repeating: 0)
    private var queues = InlineArray<4, Double>(repeating: 0)
    private var count = 0
    /// Whether the last head waited less than the first of them.
    private var isDraining = false
    /// When the queue was last too short to count as standing.
    private var lastShort: Double?

    /// The verdict after the last head.
    package private(set) var usage = Usage.normal
    /// Milliseconds that each of the last heads waited at least.
    package private(set) var standing = 0.0

    package init() {}

    /// Processes one head; all values are in milliseconds.
    /// - Parameters:
    ///   - sent: when it left.
    ///   - arrival: when it arrived, on the receiver's clock.
    ///   - queue: its delay beyond the usual.
    ///   - noise: the usual change from head to head.
    package mutating func receive(sent: Double, arrival: Double, queue: Double, noise: Double) {
        remember(queue, noise: noise, at: sent)
        trend.add(delay: queue, at: arrival)
        let isTrend = trendIsOver(at: sent)
        adapt(at: sent)
        if queue < max(2 * noise + 10, 25) { lastShort = sent }
        let isFalling = trend.value < -threshold
        let isSudden = standing > max(3 * noise + 10, 25) && !isDraining
        let isStanding = sent - (lastShort ?? sent) > Self.standingSpan
        let isGrowing = isTrend && standing > 6 + 1.5 * noise && !isDraining
        if isGrowing || !isFalling && (isSudden || isStanding) {
            usage = .over
        } else {
            usage = isFalling ? .under : .normal
        }
        if lastShort == nil { lastShort = sent }
    }

    /// Stores a head and compares the last three or four.
    private mutating func remember(_ queue: Double, noise: Double, at time: Double) {
        times[count % 4] = time
        queues[count % 4] = queue
        count = count < 7 ? count + 1 : 4
        standing = 0
        isDraining = false
        guard count >= 3 else { return }
        var least = queue
        for back in 2...min(count, 4) {
            let index = (count - back) % 4
            least = min(least, queues[index])
            guard back >= 3, time - times[index] >= Self.suddenSpan else { continue }
            standing = least
            isDraining = queue < queues[index] - min(noise, Self.drain * (time - times[index]))
            return
        }
    }

    /// Whether the trend has been above the threshold for long enough and does not fall.
    private mutating func trendIsOver(at time: Double) -> Bool {
        defer { lastTrend = trend.value }
        guard trend.value > threshold else {
            aboveSince = nil
            return false
        }
        let since = aboveSince ?? time
        aboveSince = since
        return time - since > Self.duration && trend.value >= lastTrend
    }

    /// Moves the threshold towards the trend.
    private mutating func adapt(at time: Double) {
        let elapsed = min(max(time - (lastTime ?? time), 0), 100)
        lastTime = time
        let size = abs(trend.value)
        guard size <= threshold + Self.outlier else { return }
        threshold += (size < threshold ? Self.decay : Self.growth) * (size - threshold) * elapsed
        threshold = min(max(threshold, Self.thresholdRange.lowerBound), Self.thresholdRange.upperBound)
    }
}
