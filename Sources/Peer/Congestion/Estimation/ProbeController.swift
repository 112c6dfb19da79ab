import Base

/// Decides when to probe and for how much.
///
/// Only while more could be used than is thought possible; again at once after a success, and after failures later
/// each time, until what is wanted or the network changes. After a sudden fall it tries once for most of what was lost.
/// - Source: pauses and factors are our own; the idea is that of the probe controller of browsers.
package struct ProbeController: Sendable {
    private static let packet = 1_200
    private static let fewestPackets = 5
    /// Seconds at least, and so many times the jitter.
    private static let duration = 0.02
    private static let lengthPerSpread = 5.0
    private static let minimumPause = Duration.seconds(1)
    private static let maximumPause = Duration.seconds(30)
    /// While nothing comes back a probe is all that shows the end of it, and disturbs nobody.
    private static let silentPause = Duration.seconds(3)
    /// What is wanted is probed for with some room.
    private static let room = 1.15
    private static let highestFactor = 3.0
    /// A few packets cost no link more than this for a moment.
    private static let lowestTarget = 250_000.0
    /// A rate that fell again within was not really there.
    private static let trial = Duration.seconds(4)

    private let maximum: Double
    private var wanted: Double?
    private var pause = Self.minimumPause
    private var next = MonotonicTime.zero
    private var number: UInt8 = 0
    private var pending: ProbeMeasurement?
    /// The estimate when it was sent: what comes through at no more tells nothing.
    private var baseline = 0.0
    private var timeout = MonotonicTime.zero
    /// A rate that was possible before a sudden fall, to be tried once.
    private var lostRate: Double?
    private var lastSuccess: MonotonicTime?

    package init(maximum: Double) {
        self.maximum = maximum
    }

    /// A result that came with some feedback.
    package private(set) var result: ProbeMeasurement.Result?

    package mutating func want(_ bitrate: Double?, at now: MonotonicTime) {
        let isOther =
            switch (wanted, bitrate) {
            case (let before?, let after?): after > 1.25 * before || after < 0.8 * before
            case (nil, .some): true
            default: false
            }
        wanted = bitrate
        if isOther { startAfresh(at: now) }
    }

    /// Begins with short pauses again: something has changed.
    package mutating func startAfresh(at now: MonotonicTime) {
        pause = Self.minimumPause
        next = min(next, now)
    }

    /// Notes that the estimate has fallen from one rate to another for what the network does.
    package mutating func fell(from before: Double, to after: Double, at now: MonotonicTime) {
        let isRevoked = lastSuccess.map { now < $0 + Self.trial } ?? false
        if isRevoked {
            pause = min(pause * 2, Self.maximumPause)
            lastSuccess = nil
            next = max(next, now + pause)
        } else {
            if after < 0.66 * before { lostRate = max(lostRate ?? 0, 0.85 * before) }
            next = max(next, now + Self.minimumPause)
        }
    }

    /// The probe to send now, if it is time; `spread` is the usual jitter in seconds.
    package mutating func due(
        estimate: Double, spread: Double, roundTrip: Duration, isSilent: Bool, at now: MonotonicTime
    ) -> Probe? {
        if let pending, now >= timeout { conclude(pending, at: now) }
        if isSilent { next = min(next, now + Self.silentPause) }
        if let lastSuccess, now >= lastSuccess + Self.trial {
            pause = Self.minimumPause
            self.lastSuccess = nil
        }
        guard pending == nil, now >= next, let wanted, estimate < wanted, estimate < maximum else {
            return nil
        }
        var target = min(wanted * Self.room, maximum)
        if let lostRate, lostRate > estimate { target = min(target, lostRate) }
        lostRate = nil
        target = min(target, max(Self.highestFactor * estimate, Self.lowestTarget))
        let length = min(max(Self.duration, Self.lengthPerSpread * spread), 0.08)
        let bytes = max(Int(target * length / 8), Self.packet * Self.fewestPackets)
        number &+= 1
        baseline = estimate
        let probe = Probe(number: number, bitrate: Int(target), bytes: bytes)
        pending = ProbeMeasurement(probe)
        let sending = Duration.nanoseconds(Int64(Double(bytes) * 8e9 / target))
        timeout = now + sending + min(max(roundTrip, .zero), .seconds(2)) + .seconds(1)
        return probe
    }

    /// When a probe is due, or one that waits for its end is given up.
    package func deadline(estimate: Double) -> MonotonicTime? {
        if pending != nil { return timeout }
        guard let wanted, estimate < wanted, estimate < maximum else { return nil }
        return next
    }

    package mutating func receive(_ outcome: PacketOutcome, size: Int, at now: MonotonicTime) {
        guard var measurement = pending else { return }
        if outcome.probe != measurement.probe.number, measurement.isOver(at: outcome.sent) {
            return conclude(measurement, at: now)
        }
        measurement.receive(outcome, size: size)
        pending = measurement
        if measurement.isComplete { conclude(measurement, at: now) }
    }

    /// What has become of the probe since the last call.
    package mutating func takeResult() -> ProbeMeasurement.Result? {
        defer { result = nil }
        return result
    }

    private mutating func conclude(_ measurement: ProbeMeasurement, at now: MonotonicTime) {
        pending = nil
        result = measurement.result
        if case .passed(let rate) = measurement.result, rate > 1.02 * baseline {
            lastSuccess = now
            next = now
        } else {
            next = now + pause
            pause = min(pause * 2, Self.maximumPause)
        }
    }

    /// Puts off what was due, while the path is full or loses too much.
    package mutating func postpone(until time: MonotonicTime) {
        next = max(next, time)
    }
}
