import Base

/// Estimates how much a TCP connection can carry from the data that waits to leave over it.
///
/// TCP loses nothing; what exceeds the path's capacity waits, here and in the kernel. While data waits for longer
/// than the path itself explains, the connection is busy, and the rate of acknowledgements is the rate of the path.
/// While it is not busy, only sending more can show that there is room for more: so the wanted rate is tried for a
/// moment, and the trial ends as soon as data has to wait.
///
/// Holds no clock and does no I/O. Acknowledgements may come in steps of any size.
package struct BacklogEstimator: Sendable {
    /// Shorter waits are no queue: acknowledgements may be delayed by 40 ms, and samples are 20 ms apart.
    private static let shortWait = Duration.milliseconds(70)
    /// A wait from which on more is being sent than the path takes.
    private static let longWait = Duration.milliseconds(150)
    /// The wait at which a probe is given up.
    private static let probeWait = Duration.milliseconds(100)
    /// Length of a probe in seconds.
    private static let probeLength = 0.3
    /// A peer that acknowledges nothing for this long has stalled, which shows nothing about the path's rate.
    private static let standstill = Duration.seconds(1)
    /// Share of a busy path's measured rate that the estimate is raised to at least.
    private static let sure = 0.85
    /// Delay before a probe that cannot be sent now is considered again.
    private static let look = Duration.milliseconds(100)
    /// Larger steps of acknowledged bytes cannot belong to this connection and are ignored.
    private static let largestStep: UInt64 = 1 << 30

    /// A probe under way.
    private struct Trial {
        let target: Double
        /// Bytes given to the connection before the probe.
        let given: UInt64
        let start: MonotonicTime
        /// When the last of the probe has been handed over.
        let end: MonotonicTime
        /// Bits per second sent during the probe; nil until its end.
        var sent: Double?
    }

    private let limits: BandwidthEstimator.Limits
    private var history = BacklogHistory()
    private var rate: DelayBasedRate
    private var probes: ProbeController
    private var trial: Trial?
    private var acknowledgedRate = RateMeter()
    /// Bits per second sent apart from probes, averaged over about a second.
    private var sending = 0.0
    private var lastSample: MonotonicTime?
    private var acknowledged: UInt64?
    private var given: UInt64 = 0
    private var roundTrip = Duration.milliseconds(50)
    /// Since when data has waited for longer than the path explains; nil while it does not.
    private var busySince: MonotonicTime?
    /// When bytes were last acknowledged, or nothing was waiting.
    private var lastProgress = MonotonicTime.zero

    private var wanted: Double?
    private var trust = UnprovenTrust()

    /// How long the bytes acknowledged next have waited, beyond the round trip.
    package private(set) var wait = Duration.zero
    /// Bits per second that the path takes, over everything sent on it.
    package private(set) var bitrate: Int
    /// Why `bitrate` is not higher: `delay` or `application`.
    package private(set) var cause = BandwidthEstimator.Cause.application

    package init(limits: BandwidthEstimator.Limits = .init()) {
        let rate = DelayBasedRate(
            start: Double(limits.start), minimum: Double(limits.minimum), maximum: Double(limits.maximum))
        self.limits = limits
        self.rate = rate
        probes = ProbeController(maximum: Double(limits.maximum), length: Self.probeLength)
        bitrate = limits.start
    }

    /// Whether the probe that `probeDue` last returned may continue.
    package var isProbing: Bool { trial != nil }

    /// Whether more is being sent than the path takes.
    package var isOverused: Bool { wait >= Self.longWait }

    /// When `probeDue` must be called next; nil for not before the next sample.
    package var deadline: MonotonicTime? { probes.deadline(estimate: Double(bitrate)) }

    /// Processes a sample of the connection's progress.
    package mutating func receive(_ backlog: StreamBacklog, at now: MonotonicTime) {
        if let measured = backlog.roundTrip { roundTrip = min(max(measured, .zero), .seconds(3)) }
        let before = acknowledged ?? backlog.acknowledged
        let sum = backlog.acknowledged.addingReportingOverflow(UInt64(max(backlog.waiting, 0)))
        guard backlog.acknowledged >= before, backlog.acknowledged - before < Self.largestStep, !sum.overflow
        else { return }
        let taken = Int(backlog.acknowledged - before)
        noteSending(sum.partialValue, at: now)
        acknowledged = backlog.acknowledged
        given = sum.partialValue
        history.add(acknowledged: backlog.acknowledged, given: given, at: now)
        wait = max(history.age(at: now) - roundTrip, .zero)
        acknowledgedRate.add(taken, at: now)
        if taken > 0 || backlog.waiting <= 0 {
            if now - lastProgress > Self.standstill { busySince = nil }
            lastProgress = now
        }
        let estimate = Double(bitrate)
        judgeTrial(at: now)
        judgeWait(at: now)
        settle(from: estimate, at: now)
    }

    /// Lowers the estimate while data waits, or lets it grow while nothing does.
    private mutating func judgeWait(at now: MonotonicTime) {
        guard wait >= Self.shortWait else {
            busySince = nil
            return rate.grow(
                acknowledged: Double(acknowledgedRate.bitrate(at: now)), isDrained: true, isEmpty: true,
                roundTrip: roundTrip, at: now)
        }
        let start = busySince ?? now
        busySince = start
        guard isOverused, let served = history.served(since: start) else { return }
        rate.raise(to: Self.sure * served)
        rate.decrease(served: served, queue: Double(wait.wholeNanoseconds) / 1e6, at: now)
    }

    private mutating func noteSending(_ total: UInt64, at now: MonotonicTime) {
        defer { lastSample = now }
        guard trial == nil, let lastSample, now > lastSample else { return }
        let elapsed = Double(now.nanoseconds(since: lastSample)) / 1e9
        let bits = Double(total - min(given, total)) * 8
        sending += min(elapsed, 1) * (bits / elapsed - sending)
    }

    /// Ends the probe under way: as saturated when data waits, as passed once it is clear that none does.
    private mutating func judgeTrial(at now: MonotonicTime) {
        guard var trial else { return }
        if trial.sent == nil, now >= trial.end {
            let seconds = Double(now.nanoseconds(since: trial.start)) / 1e9
            trial.sent = Double(given - min(trial.given, given)) * 8 / seconds
        }
        self.trial = trial
        if wait >= Self.probeWait {
            self.trial = nil
            let served = history.served(since: busySince ?? trial.start)
            return conclude(served.map { .saturated(0.95 * $0) } ?? .invalid, at: now)
        }
        // Wait until the last data of the probe would have shown up in the queue.
        guard let sent = trial.sent, now >= trial.end + roundTrip + Self.probeWait else { return }
        self.trial = nil
        conclude(.passed(min(trial.target, sent)), at: now)
    }

    private mutating func conclude(_ result: ProbeMeasurement.Result, at now: MonotonicTime) {
        probes.conclude(with: result, at: now)
        switch probes.takeResult() {
        case .passed(let proven), .saturated(let proven): rate.raise(to: proven)
        case .invalid, nil: break
        }
    }

    private mutating func settle(from before: Double, at now: MonotonicTime) {
        bitrate = min(max(Int(rate.rate), limits.minimum), limits.maximum)
        if rate.rate < 0.97 * before {
            probes.fell(from: before, to: rate.rate, at: now)
            trust.noteFall(at: now)
        }
        cause = rate.isLimited ? .delay : .application
    }

    /// Notes which bitrate could be used.
    /// - Parameter bitrate: bits per second of the next better choice; nil while the viewer has the best there is.
    package mutating func want(_ bitrate: Int?) {
        wanted = bitrate.map { Double(min(max($0, 0), limits.maximum)) }
        probes.want(wanted)
    }

    /// Returns the probe to send now, if it is time; it counts as sent.
    ///
    /// Probe data is sent in addition to everything else.
    package mutating func probeDue(at now: MonotonicTime) -> Probe? {
        if wait >= Self.shortWait { probes.postpone(until: now + Self.look) }
        guard
            let probe = probes.due(
                estimate: Double(bitrate), sending: sending, spread: 0, roundTrip: roundTrip, isSilent: false,
                at: now)
        else { return nil }
        trial = Trial(
            target: sending + Double(probe.bitrate), given: given, start: now,
            end: now + .nanoseconds(Int64(Self.probeLength * 1e9)))
        return probe
    }

    /// Handles a due probe that could not be sent, because no slot has packets for it.
    ///
    /// Believes the wanted rate without proof, if it is time: sending it is the only way to try the path. If the
    /// path does not take it, data waits and the estimate falls again.
    package mutating func trustProbe(at now: MonotonicTime) {
        guard trial != nil else { return }
        trial = nil
        conclude(.invalid, at: now)
        guard trust.isDue(at: now), let wanted else { return }
        trust.begin(at: now)
        rate.raise(to: wanted)
        settle(from: Double(bitrate), at: now)
    }
}
