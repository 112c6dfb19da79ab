/// The slope of the queueing delay over the last groups, by least squares over smoothed delays.
/// - Source: the trendline filter of GCC as browsers have it, which took the place of the Kalman filter of
///   draft-ietf-rmcat-gcc-02 §5.3.
package struct Trendline: Sendable {
    // Groups in the line, the weight of earlier delays in the smoothed one, and the factors of `value`.
    private static let window = 20
    private static let smoothing = 0.9
    private static let gain = 4.0
    private static let maximumCount = 60

    private var times = InlineArray<20, Double>(repeating: 0)
    private var delays = InlineArray<20, Double>(repeating: 0)
    private var count = 0
    private var smoothed = 0.0

    package init() {}

    /// Slope times number of groups (at most 60) times 4, to be compared with a threshold in milliseconds.
    package private(set) var value = 0.0

    /// Adds a delay; both in milliseconds.
    package mutating func add(delay: Double, at time: Double) {
        smoothed = count == 0 ? delay : Self.smoothing * smoothed + (1 - Self.smoothing) * delay
        times[count % Self.window] = time
        delays[count % Self.window] = smoothed
        count += 1
        // Keep only the remainder that matters.
        if count >= 3 * Self.window + Self.maximumCount { count -= Self.window }
        value = slope() * Double(min(count, Self.maximumCount)) * Self.gain
    }

    private func slope() -> Double {
        let filled = min(count, Self.window)
        guard filled > 1 else { return 0 }
        // One pass, relative to a value near all of them: with absolute values, differences of large squares would
        // lose precision.
        let (origin, level) = (times[0], delays[0])
        var (sumTime, sumDelay, sumProduct, sumSquare) = (0.0, 0.0, 0.0, 0.0)
        for index in 0..<filled {
            let time = times[index] - origin
            let delay = delays[index] - level
            sumTime += time
            sumDelay += delay
            sumProduct += time * delay
            sumSquare += time * time
        }
        let share = 1 / Double(filled)
        let covariance = sumProduct - sumTime * sumDelay * share
        let variance = sumSquare - sumTime * sumTime * share
        return variance > 0 ? covariance / variance : 0
    }
}
