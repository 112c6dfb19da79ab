import Base

/// Decides when to probe and for how much.
///
/// Only while more could be used than is thought possible; again at once after a success, and after failures at about
/// the same rate later each time, until the network changes. What is wanted changes with the estimate where layers are
/// chosen by it, so that a wish for more than what failed is no reason to begin afresh. After a sudden fall it tries
/// once for most of what was lost.
///
/// A short probe fits between the frames of other traffic, or into the bucket of a policer. Where a rate fell again
/// that had come through, a short probe is followed by a long one, and only that one counts.
/// - Source: pauses and factors are our own; the idea is that of the probe controller of browsers.
package struct ProbeController: Sendable {
    private static let packet = 1_200
    private static let fewestPackets = 5
    /// Seconds at least, and so many times the jitter.
    private static let duration = 0.02
    private static let lengthPerSpread = 5.0
    private static let longestSpread = 0.05
    /// Seconds of a probe that sees what other traffic there is.
    private static let proofDuration = 0.15
    private static let proofFactor = 2.0
    private static let minimumPause = Duration.seconds(1)
    private static let maximumPause = Duration.seconds(30)
    /// Where a probe is given up as soon as it has to wait, it disturbs little.
    private static let maximumShortPause = Duration.seconds(15)
    /// So little costs nobody much, and may be all that a viewer misses for a picture.
    private static let littleTarget = 700_000.0
    private static let maximumLittlePause = Duration.seconds(4)
    /// While nothing comes back a probe is all that shows the end of it, and disturbs nobody.
    private static let silentPause = Duration.seconds(3)
    /// What is wanted is probed for with some room.
    private static let room = 1.15
    private static let highestFactor = 3.0
    /// A few packets cost no link more than this for a moment.
    private static let lowestTarget = 250_000.0
    /// A rate that fell again within was not really there.
    private static let trial = Duration.seconds(4)
    /// Of the rate that failed: what is less may come through.
    private static let otherRate = 0.8

    /// A rate that did not come through, and when about that much may be tried again.
    private struct Failure {
        var rate: Double
        var pause: Duration
        var until: MonotonicTime
        /// It seemed to come through, so that short probes are not to be believed.
        var isDeceptive: Bool
    }

    private struct Pending {
        var measurement: ProbeMeasurement
        var target: Double
        /// The estimate when it was sent: what comes through at no more tells nothing.
        var baseline: Double
        var isProof: Bool
        var timeout: MonotonicTime
    }

    private let maximum: Double
    /// Seconds of each probe, which goes on top of what is sent; nil for what suits the path.
    private let length: Double?
    private var wanted: Double?
    private var next = MonotonicTime.zero
    private var number: UInt8 = 0
    private var pending: Pending?
    private var failure: Failure?
    /// A short probe came through, which a long one has to confirm.
    private var needsProof = false
    /// A rate that was possible before a sudden fall, to be tried once.
    private var lostRate: Double?
    private var success: (target: Double, time: MonotonicTime)?
    private var result: ProbeMeasurement.Result?

    /// - Parameter length: seconds of a probe where none is measured by its packets; then it always goes on top of
    ///   what is sent.
    package init(maximum: Double, length: Double? = nil) {
        self.maximum = maximum
        self.length = length
    }

    /// Bits a second that could be used; nil for no probes.
    package mutating func want(_ bitrate: Double?) {
        wanted = bitrate
    }

    /// Begins with short pauses again: the network has changed.
    package mutating func startAfresh(at now: MonotonicTime) {
        failure = nil
        needsProof = false
        next = min(next, now)
    }

    /// Notes that the estimate has fallen from one rate to another for what the network does.
    package mutating func fell(from before: Double, to after: Double, at now: MonotonicTime) {
        needsProof = false
        if let success, now < success.time + Self.trial {
            fail(success.target, isDeceptive: true, at: now)
            self.success = nil
        } else if after < 0.66 * before {
            lostRate = max(lostRate ?? 0, 0.85 * before)
        }
        next = max(next, now + Self.minimumPause)
    }

    /// The probe to send now, if it is time.
    /// - Parameters:
    ///   - estimate: bits a second that are thought possible.
    ///   - sending: bits a second that are sent.
    ///   - spread: seconds of usual jitter.
    package mutating func due(
        estimate: Double, sending: Double, spread: Double, roundTrip: Duration, isSilent: Bool,
        at now: MonotonicTime
    ) -> Probe? {
        if let pending, now >= pending.timeout { conclude(pending, at: now) }
        if isSilent {
            next = min(next, now + Self.silentPause)
            failure = nil
        }
        confirm(at: now)
        guard pending == nil, var target = target(estimate: estimate), now >= earliest(target) else {
            return nil
        }
        lostRate = nil
        let isProof = needsProof || self.length != nil
        if isProof { target = min(target, Self.proofFactor * estimate) }
        var bitrate = target
        var length = min(max(Self.duration, Self.lengthPerSpread * spread), Self.longestSpread)
        if isProof {
            bitrate = max(target - sending, 0.4 * target)
            length = self.length ?? Self.proofDuration
        }
        number &+= 1
        let probe = Probe(
            number: number, bitrate: Int(bitrate),
            bytes: max(Int(bitrate * length / 8), Self.packet * Self.fewestPackets))
        let duration = Duration.nanoseconds(Int64(Double(probe.bytes) * 8e9 / bitrate))
        pending = Pending(
            measurement: ProbeMeasurement(probe, target: target), target: target, baseline: estimate,
            isProof: isProof,
            timeout: now + duration + min(max(roundTrip, .zero), .seconds(2)) + .seconds(1))
        needsProof = false
        return probe
    }

    /// When a probe is due, or one that waits for its end is given up.
    package func deadline(estimate: Double) -> MonotonicTime? {
        if let pending { return pending.timeout }
        return target(estimate: estimate).map(earliest)
    }

    private func target(estimate: Double) -> Double? {
        guard let wanted, estimate < wanted, estimate < maximum else { return nil }
        var target = min(wanted * Self.room, maximum)
        if let lostRate, lostRate > estimate { target = min(target, lostRate) }
        return min(target, max(Self.highestFactor * estimate, Self.lowestTarget))
    }

    private func earliest(_ target: Double) -> MonotonicTime {
        guard let failure, target >= Self.otherRate * failure.rate else { return next }
        return max(next, failure.until)
    }

    /// A rate that lasts was there indeed.
    private mutating func confirm(at now: MonotonicTime) {
        guard let success, now >= success.time + Self.trial else { return }
        if let failure, success.target >= Self.otherRate * failure.rate { self.failure = nil }
        self.success = nil
    }

    /// Takes in what became of a packet, of a probe or not.
    /// - Parameter size: in bytes, with headers.
    package mutating func receive(_ outcome: PacketOutcome, size: Int, at now: MonotonicTime) {
        guard var current = pending else { return }
        let isOther = outcome.probe != current.measurement.probe.number
        if isOther, current.measurement.isOver(at: outcome.sent) { return conclude(current, at: now) }
        current.measurement.receive(outcome, size: size)
        pending = current
        if current.measurement.isComplete { conclude(current, at: now) }
    }

    /// What has become of a probe since the last call, where that says anything of the path.
    package mutating func takeResult() -> ProbeMeasurement.Result? {
        defer { result = nil }
        return result
    }

    /// Takes in what has become of the probe that is under way, where that is measured by other means than its packets.
    package mutating func conclude(with measured: ProbeMeasurement.Result, at now: MonotonicTime) {
        guard let pending else { return }
        conclude(pending, with: measured, at: now)
    }

    private mutating func conclude(_ probe: Pending, at now: MonotonicTime) {
        conclude(probe, with: probe.measurement.result, at: now)
    }

    private mutating func conclude(
        _ probe: Pending, with measured: ProbeMeasurement.Result, at now: MonotonicTime
    ) {
        pending = nil
        let isDeceptive = isDeceptive(probe.target)
        guard case .passed(let rate) = measured, rate > 1.02 * probe.baseline else {
            fail(probe.target, isDeceptive: isDeceptive, at: now)
            next = now + Self.minimumPause
            result = isDeceptive ? .invalid : measured
            return
        }
        next = now
        if isDeceptive, !probe.isProof {
            needsProof = true
        } else {
            success = (probe.target, now)
            result = measured
        }
    }

    private func isDeceptive(_ target: Double) -> Bool {
        guard let failure else { return false }
        return failure.isDeceptive && target >= Self.otherRate * failure.rate
    }

    private mutating func fail(_ target: Double, isDeceptive: Bool, at now: MonotonicTime) {
        var pause = Self.minimumPause
        var rate = target
        if let failure, target >= Self.otherRate * failure.rate {
            var longest = length == nil ? Self.maximumPause : Self.maximumShortPause
            if target <= Self.littleTarget { longest = min(longest, Self.maximumLittlePause) }
            pause = min(failure.pause * 2, longest)
            rate = min(rate, failure.rate)
        }
        failure = Failure(rate: rate, pause: pause, until: now + pause, isDeceptive: isDeceptive)
    }

    /// Puts off what was due, while the path is full or loses too much.
    package mutating func postpone(until time: MonotonicTime) {
        next = max(next, time)
    }
}
