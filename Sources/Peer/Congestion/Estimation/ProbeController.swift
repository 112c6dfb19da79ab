import Base

/// Decides when to probe and for which rate.
///
/// It probes only while more could be used than the estimate allows: again immediately after a success, and after
/// failures at about the same rate later each time, until the network changes. The wanted rate changes with the
/// estimate where layers are chosen by it, so a wish for more than what failed does not reset the pauses. After a
/// sudden fall of the estimate it probes once for most of the lost rate.
///
/// A short probe fits between the frames of other traffic, or into the bucket of a policer. If a rate that had come
/// through fell again, a short probe is followed by a long one, and only the long one counts.
/// - Source: pauses and factors are our own; the idea is that of the probe controller of browsers.
package struct ProbeController: Sendable {
    // Bytes of a packet, and packets in a probe at least.
    private static let packet = 1_200
    private static let fewestPackets = 5
    /// Shortest duration of a probe in seconds; longer on a path with jitter, up to `longestSpread`.
    private static let duration = 0.02
    private static let lengthPerSpread = 5.0
    private static let longestSpread = 0.05
    /// Seconds of a long probe, which sees other traffic as well.
    private static let proofDuration = 0.15
    // A long probe asks for at most this multiple of the estimate.
    private static let proofFactor = 2.0
    // Pause after a failed probe: at first, and at most.
    private static let minimumPause = Duration.seconds(1)
    private static let maximumPause = Duration.seconds(30)
    /// Longest pause where a probe ends as soon as data has to wait, and so disturbs little.
    private static let maximumShortPause = Duration.seconds(15)
    /// A probe for so little disturbs hardly anyone, and may be all that a viewer lacks for video.
    private static let littleTarget = 700_000.0
    private static let maximumLittlePause = Duration.seconds(4)
    /// Pause while feedback is missing: only a probe shows the end of that, and it disturbs nothing.
    private static let silentPause = Duration.seconds(3)
    /// Factor of headroom above the wanted rate.
    private static let room = 1.15
    // A probe asks for at most this multiple of the estimate, or for `lowestTarget`.
    private static let highestFactor = 3.0
    /// Bits per second that a few packets may take of any link for a moment.
    private static let lowestTarget = 250_000.0
    /// A rate whose estimate falls again within this time was not really available.
    private static let trial = Duration.seconds(4)
    /// Share of a failed rate below which a target counts as a different rate.
    private static let otherRate = 0.8

    /// A rate that did not come through, and when about that rate may be tried again.
    private struct Failure {
        var rate: Double
        var pause: Duration
        var until: MonotonicTime
        /// Whether it first seemed to come through, so that short probes for it are not believed.
        var isDeceptive: Bool
    }

    /// The probe under way.
    private struct Pending {
        var measurement: ProbeMeasurement
        var target: Double
        /// The estimate when it was sent; a result of no more shows nothing.
        var baseline: Double
        var isProof: Bool
        var timeout: MonotonicTime
    }

    private let maximum: Double
    /// Seconds of each probe, which is sent in addition to other traffic; nil to choose a length that suits the
    /// path.
    private let length: Double?
    private var wanted: Double?
    private var next = MonotonicTime.zero
    private var number: UInt8 = 0
    private var pending: Pending?
    private var failure: Failure?
    /// Whether a short probe came through that a long one has to confirm.
    private var needsProof = false
    /// A rate that was possible before a sudden fall, to be tried once.
    private var lostRate: Double?
    private var success: (target: Double, time: MonotonicTime)?
    private var result: ProbeMeasurement.Result?

    /// - Parameters:
    ///   - maximum: bits per second above which nothing is probed.
    ///   - length: seconds of a probe where probes are not measured by their packets; then a probe is always sent in
    ///     addition to other traffic.
    package init(maximum: Double, length: Double? = nil) {
        self.maximum = maximum
        self.length = length
    }

    /// Sets the bits per second that could be used; nil for no probes.
    package mutating func want(_ bitrate: Double?) {
        wanted = bitrate
    }

    /// Resets the pauses, because the network has changed.
    package mutating func startAfresh(at now: MonotonicTime) {
        failure = nil
        needsProof = false
        next = min(next, now)
    }

    /// Notes that the estimate fell from one rate to another because of the network.
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

    /// Returns the probe to send now, if it is time; it counts as sent.
    /// - Parameters:
    ///   - estimate: bits per second considered possible.
    ///   - sending: bits per second being sent.
    ///   - spread: usual jitter in seconds.
    ///   - isSilent: whether feedback is missing.
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

    /// When a probe is due, or when the one under way times out.
    package func deadline(estimate: Double) -> MonotonicTime? {
        if let pending { return pending.timeout }
        return target(estimate: estimate).map(earliest)
    }

    /// The rate to probe for; nil while nothing more is wanted.
    private func target(estimate: Double) -> Double? {
        guard let wanted, estimate < wanted, estimate < maximum else { return nil }
        var target = min(wanted * Self.room, maximum)
        if let lostRate, lostRate > estimate { target = min(target, lostRate) }
        return min(target, max(Self.highestFactor * estimate, Self.lowestTarget))
    }

    /// When a probe for this rate may leave: later, if about that rate has failed.
    private func earliest(_ target: Double) -> MonotonicTime {
        guard let failure, target >= Self.otherRate * failure.rate else { return next }
        return max(next, failure.until)
    }

    /// Forgets the failure of a rate that has since come through and lasted.
    private mutating func confirm(at now: MonotonicTime) {
        guard let success, now >= success.time + Self.trial else { return }
        if let failure, success.target >= Self.otherRate * failure.rate { self.failure = nil }
        self.success = nil
    }

    /// Processes the outcome of a packet, of a probe or not.
    /// - Parameter size: in bytes, with headers.
    package mutating func receive(_ outcome: PacketOutcome, size: Int, at now: MonotonicTime) {
        guard var current = pending else { return }
        let isOther = outcome.probe != current.measurement.probe.number
        if isOther, current.measurement.isOver(at: outcome.sent) { return conclude(current, at: now) }
        current.measurement.receive(outcome, size: size)
        pending = current
        if current.measurement.isComplete { conclude(current, at: now) }
    }

    /// Removes and returns the result of a probe, if there is one that shows something about the path.
    package mutating func takeResult() -> ProbeMeasurement.Result? {
        defer { result = nil }
        return result
    }

    /// Ends the probe under way with a result measured by other means than its packets.
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

    /// Whether about this rate came through before and then fell again.
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

    /// Postpones the next probe, while the path is full or loses too much.
    package mutating func postpone(until time: MonotonicTime) {
        next = max(next, time)
    }
}
