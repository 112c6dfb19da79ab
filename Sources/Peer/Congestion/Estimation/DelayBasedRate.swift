import Base

/// The estimate based on delay: it grows additively near the known capacity, and by a factor far from it.
///
/// Unlike an encoder, a server that chooses among layers cannot follow an estimate closely. So a decrease starts
/// from the rate at which the full link served us, and once the queue has drained the estimate returns to just
/// below that rate.
/// - Source: draft-ietf-rmcat-gcc-02 §5.5, with constants of browsers. Deviates from it in the rate that a decrease
///   starts from, in the smaller decrease for a short queue, and in a growth bound of 1.2 instead of 1.5 times the
///   acknowledged rate, because probes find what is above.
package struct DelayBasedRate: Sendable {
    private static let decrease = 0.85
    /// Factor against a short queue, at a rate not far above what the link serves.
    private static let mildDecrease = 0.92
    /// Factor for the estimate after the queue has drained.
    private static let returning = 0.96
    /// Factor per second, far from the known capacity.
    private static let multiplicativeGrowth = 1.08
    /// Growth per second near the known capacity: at most this share of the rate, at least so many bits per second.
    private static let nearGrowth = 0.03
    private static let slowestGrowth = 4_000.0
    /// Bits; near the capacity the rate grows by this much per response time.
    private static let packet = 9_600.0
    /// The estimate grows at most to this multiple of the acknowledged rate.
    private static let proven = 1.2

    private let minimum: Double
    private let maximum: Double
    /// The rate at which the full link served us: its mean, and its deviation relative to the mean.
    private var capacity: Double?
    private var deviation = 0.1
    private var lastGrowth: MonotonicTime?
    // What the estimate returns to once the queue has drained; nil if it need not.
    private var returnRate: Double?

    /// Bits per second.
    package private(set) var rate: Double
    /// Whether the estimate was lowered for delay and has not grown beyond the capacity seen then.
    package var isLimited: Bool {
        guard let capacity else { return false }
        return rate < capacity * (1 + 3 * deviation)
    }

    /// All three in bits per second.
    package init(start: Double, minimum: Double, maximum: Double) {
        self.minimum = minimum
        self.maximum = maximum
        rate = min(max(start, minimum), maximum)
    }

    /// Lowers the estimate on over-use; repeated calls with the same measurement lower it no further.
    /// - Parameters:
    ///   - served: bits per second at which the busy link served us.
    ///   - queue: milliseconds that each of the last packets waited at least.
    package mutating func decrease(served: Double, queue: Double, at now: MonotonicTime) {
        lastGrowth = now
        learn(served)
        let isMild = queue < 60 && served > 0.8 * rate
        let target = served * (isMild ? Self.mildDecrease : Self.decrease)
        returnRate = max(served * Self.returning, target)
        rate = max(min(rate, target), minimum)
    }

    /// Updates the known capacity; a measurement far from it replaces it.
    private mutating func learn(_ measured: Double) {
        guard let mean = capacity, abs(measured - mean) < max(3 * deviation, 0.2) * mean else {
            capacity = measured
            deviation = 0.1
            return
        }
        let error = measured - mean
        capacity = mean + 0.2 * error
        deviation = min(max(0.95 * deviation + 0.05 * abs(error) / mean, 0.02), 0.15)
    }

    /// Lets the estimate grow as far as the acknowledged rate proves it.
    /// - Parameters:
    ///   - acknowledged: bits per second that arrived lately.
    ///   - isDrained: whether the queue has drained after a decrease.
    ///   - isEmpty: whether there is no queue at all.
    package mutating func grow(
        acknowledged: Double, isDrained: Bool, isEmpty: Bool, roundTrip: Duration, at now: MonotonicTime
    ) {
        let elapsed = min(max(Double(now.nanoseconds(since: lastGrowth ?? now)) / 1e9, 0), 1)
        lastGrowth = now
        if let returnRate, isDrained {
            rate = min(max(rate, returnRate), maximum)
            self.returnRate = nil
        }
        // Traffic above the estimate that causes no queue proves its own rate.
        if isEmpty { rate = min(max(rate, Self.returning * acknowledged), maximum) }
        if let capacity, rate > capacity * (1 + 3 * deviation) { self.capacity = nil }
        var grown = rate
        if let capacity, rate > capacity * (1 - 3 * deviation) {
            let response = max(Double(roundTrip.wholeNanoseconds) / 1e9, 0) + 0.1
            grown += max(min(Self.packet / response, Self.nearGrowth * rate), Self.slowestGrowth) * elapsed
        } else {
            // The first-order value of the power, for steps far below a second.
            grown *= 1 + (Self.multiplicativeGrowth - 1) * elapsed
        }
        rate = min(max(rate, min(grown, acknowledged * Self.proven)), maximum)
    }

    /// Raises the estimate to a rate at which a probe came through.
    package mutating func raise(to proven: Double) {
        guard proven > rate else { return }
        rate = min(proven, maximum)
        if let capacity, rate > capacity * (1 + 3 * deviation) { self.capacity = nil }
    }

    /// Lowers the estimate to a rate found by other signs than delay.
    package mutating func lower(to found: Double) {
        rate = max(min(rate, found), minimum)
        returnRate = nil
    }
}
