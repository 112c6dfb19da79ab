/// Says whether the queue of the path grows or stands, from what waits that our own bursts do not explain.
///
/// Three signs: a trend above a threshold that adapts to the path, as GCC has it; a queue that several groups in a
/// row met and that is far beyond jitter, which shows a sudden fall of the capacity within few groups; and one
/// that does not drain, which is too slow a growth for the trend.
/// - Source: draft-ietf-rmcat-gcc-02 §5.4; constants of browsers.
package struct OveruseDetector: Sendable {
    package enum Usage: Equatable, Sendable {
        case normal, over, under
    }

    private static let initialThreshold = 12.5
    private static let thresholdRange = 6.0...600.0
    private static let growth = 0.0087
    private static let decay = 0.039
    /// A trend farther above the threshold does not move it.
    private static let outlier = 15.0
    /// Milliseconds for which the trend is above the threshold.
    private static let duration = 10.0
    /// Milliseconds of sending that the last heads cover at least, to show a sudden fall.
    private static let suddenSpan = 25.0
    /// Milliseconds by which a queue falls at least in one of sending, after the path stood still for a moment.
    private static let drain = 0.4
    /// Milliseconds after which a queue that does not drain is too much.
    private static let standingSpan = 300.0

    private var trend = Trendline()
    private var threshold = Self.initialThreshold
    private var lastTime: Double?
    private var aboveSince: Double?
    private var lastTrend = 0.0
    /// The last heads: when they left and what they met unexplained, in milliseconds.
    private var times = InlineArray<4, Double>(repeating: 0)
    private var queues = InlineArray<4, Double>(repeating: 0)
    private var count = 0
    /// Whether the last of them waited less than the first.
    private var isDraining = false
    /// When the queue was last short enough not to be called standing.
    private var lastShort: Double?

    package private(set) var usage = Usage.normal
    /// Milliseconds that all of the last heads waited at least.
    package private(set) var standing = 0.0

    package init() {}

    /// Takes in one head: when it left and came, what it met beyond the usual, and the usual change from head to
    /// head, in milliseconds.
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

    /// Keeps a head, and sees what the last three or four of them have in common.
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

    private mutating func adapt(at time: Double) {
        let elapsed = min(max(time - (lastTime ?? time), 0), 100)
        lastTime = time
        let size = abs(trend.value)
        guard size <= threshold + Self.outlier else { return }
        threshold += (size < threshold ? Self.decay : Self.growth) * (size - threshold) * elapsed
        threshold = min(max(threshold, Self.thresholdRange.lowerBound), Self.thresholdRange.upperBound)
    }
}
