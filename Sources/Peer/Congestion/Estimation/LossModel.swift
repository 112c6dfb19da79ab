/// Explains loss by a share that the path loses at any rate and by what is beyond a rate that it takes.
///
/// With the observations of some seconds at different rates the two can be told from each other: a radio link loses as
/// much at half the rate, a policer nothing. The likelihood of a limit is that of all observations, with the inherent
/// loss that fits best to it by steps of Newton's method. As long as rates differ too little to tell, a small
/// inherent loss is thought more probable than a large one.
/// - Source: the second loss-based estimator of libwebrtc, which has no document; its idea, with priors of our own.
package struct LossModel: Sendable {
    /// What became of the packets of a quarter of a second.
    package struct Observation: Equatable, Sendable {
        /// Bits a second that were sent.
        package var rate: Double
        package var packets: Double
        package var lost: Double

        package init(rate: Double = 0, packets: Double = 0, lost: Double = 0) {
            self.rate = rate
            self.packets = packets
            self.lost = lost
        }
    }

    /// What a limit would mean.
    package struct Fit: Equatable, Sendable {
        package var likelihood: Double
        package var inherentLoss: Double
    }

    private static let window = 15
    private static let ageing = 0.9
    private static let inherentRange = 0.001...0.3
    /// Against inherent loss beyond what is known of the path: 0.04 for each per cent.
    private static let prior = 30.0

    private var observations = InlineArray<15, Observation>(repeating: Observation())
    private var count = 0
    /// Share that the path is known to lose at low rates.
    package var knownLoss = 0.01

    package init() {}

    /// Takes in what became of some packets; the oldest observation of the window goes for it.
    package mutating func add(_ observation: Observation) {
        observations[count % Self.window] = observation
        count += 1
        if count >= 3 * Self.window { count -= Self.window }
    }

    /// Takes one off the newest loss: a packet that was told as lost has come.
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

    /// Packets that were lost in the newest observations.
    package func lost(newest: Int) -> Double {
        var sum = 0.0
        for back in 0..<max(newest, 0) { sum += observation(back: back)?.lost ?? 0 }
        return sum
    }

    /// How well a limit in bits a second explains the newest observations; higher is better.
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

    /// One step of Newton's method towards the inherent loss that fits best.
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

    private func excess(_ rate: Double, _ limit: Double) -> Double {
        rate > limit ? (rate - limit) / rate : 0
    }

    private func probability(_ loss: Double, excess: Double) -> Double {
        min(max(loss + (1 - loss) * excess, 1e-6), 1 - 1e-6)
    }

    /// Natural logarithm to about ten digits, of what is above zero; pure targets have no library for it.
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
