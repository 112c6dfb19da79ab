/// Explains loss by a share that the path loses at any rate, and by packets above a rate limit.
///
/// Observations of a few seconds at different rates separate the two: a radio link loses as much at half the rate,
/// a policer loses nothing. The likelihood of a limit is that of all observations, with the inherent loss that fits
/// best, found by steps of Newton's method. While the rates differ too little to separate them, a small inherent
/// loss is considered more probable than a large one.
/// - Source: the second loss-based estimator of libwebrtc, which has no document; its idea, with priors of our own.
package struct LossModel: Sendable {
    /// Sent and lost packets of a quarter of a second.
    package struct Observation: Equatable, Sendable {
        /// Bits per second sent.
        package var rate: Double
        package var packets: Double
        /// Not always whole: weighted by bytes.
        package var lost: Double

        package init(rate: Double = 0, packets: Double = 0, lost: Double = 0) {
            self.rate = rate
            self.packets = packets
            self.lost = lost
        }
    }

    /// How well a limit explains the observations, and with which inherent loss.
    package struct Fit: Equatable, Sendable {
        /// Logarithmic; higher is better.
        package var likelihood: Double
        /// Share of packets, 0 to 1.
        package var inherentLoss: Double
    }

    // Observations kept.
    private static let window = 15
    // Weight of an observation relative to the next newer one.
    private static let ageing = 0.9
    private static let inherentRange = 0.001...0.3
    /// Taken off the log-likelihood for inherent loss beyond the known share: 0.3 for each percent.
    private static let prior = 30.0

    private var observations = InlineArray<15, Observation>(repeating: Observation())
    private var count = 0
    /// Share of packets that the path is known to lose at low rates.
    package var knownLoss = 0.01

    package init() {}

    /// Adds an observation; the oldest one of the window is dropped.
    package mutating func add(_ observation: Observation) {
        observations[count % Self.window] = observation
        count += 1
        if count >= 3 * Self.window { count -= Self.window }
    }

    /// Takes one off the newest loss, because a packet reported lost has arrived.
    package mutating func restoreOne() {
        for back in 1...max(min(count, 4), 1) where count > 0 {
            let index = (count - back) % Self.window
            guard observations[index].lost >= 1 else { continue }
            observations[index].lost -= 1
            return
        }
    }

    /// The observation `back` before the newest one.
    package func observation(back: Int) -> Observation? {
        guard back >= 0, back < min(count, Self.window) else { return nil }
        return observations[(count - 1 - back) % Self.window]
    }

    /// Packets lost in the newest observations.
    package func lost(newest: Int) -> Double {
        var sum = 0.0
        for back in 0..<max(newest, 0) { sum += observation(back: back)?.lost ?? 0 }
        return sum
    }

    /// How well a limit in bits per second explains the newest observations.
    package func fit(limit: Double, newest: Int) -> Fit {
        let number = min(max(newest, 0), count, Self.window)
        var loss = min(max(knownLoss, 0.02), 0.2)
        for _ in 0..<4 { loss = improved(loss, limit: limit, newest: number) }
        var sum = -Self.prior * max(loss - knownLoss, 0)
        var weight = 1.0
        for back in 0..<number {
            let observation = observations[(count - 1 - back) % Self.window]
            let lossRate = probability(loss, excess: excess(observation.rate, limit))
            let came = observation.packets - observation.lost
            sum += weight * (observation.lost * Self.log(lossRate) + came * Self.log(1 - lossRate))
            weight *= Self.ageing
        }
        return Fit(likelihood: sum, inherentLoss: loss)
    }

    /// Returns the inherent loss after one step of Newton's method towards the best fit.
    private func improved(_ loss: Double, limit: Double, newest number: Int) -> Double {
        var first = loss > knownLoss ? -Self.prior : 0
        var second = -1e-9
        var weight = 1.0
        for back in 0..<number {
            let observation = observations[(count - 1 - back) % Self.window]
            let excess = excess(observation.rate, limit)
            let lossRate = probability(loss, excess: excess)
            let came = observation.packets - observation.lost
            first += weight * (observation.lost / lossRate - came / (1 - lossRate)) * (1 - excess)
            second -=
                weight * (observation.lost / (lossRate * lossRate) + came / ((1 - lossRate) * (1 - lossRate)))
                * (1 - excess) * (1 - excess)
            weight *= Self.ageing
        }
        return min(max(loss - first / second, Self.inherentRange.lowerBound), Self.inherentRange.upperBound)
    }

    /// Share of packets above the limit.
    private func excess(_ rate: Double, _ limit: Double) -> Double {
        rate > limit ? (rate - limit) / rate : 0
    }

    /// Probability of loss, given inherent loss and the share above the limit; never exactly 0 or 1.
    private func probability(_ loss: Double, excess: Double) -> Double {
        min(max(loss + (1 - loss) * excess, 1e-6), 1 - 1e-6)
    }

    /// Natural logarithm of a positive value to about ten digits; pure targets have no library for it.
    private static func log(_ value: Double) -> Double {
        var mantissa = value.significand
        var exponent = Double(value.exponent)
        if mantissa > 1.414_213_562 {
            mantissa /= 2
            exponent += 1
        }
        let ratio = (mantissa - 1) / (mantissa + 1)
        let square = ratio * ratio
        let series =
            1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11)))))
        return exponent * 0.693_147_180_559_945_3 + 2 * ratio * series
    }
}
