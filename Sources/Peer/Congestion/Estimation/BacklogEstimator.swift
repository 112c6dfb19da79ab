import Base

/// Estimates how much a TCP connection takes, from what waits to leave over it.
///
/// TCP loses nothing; what the path does not take waits, here and in the kernel. While something waits for longer than
/// the path itself explains, the connection is busy, and what the peer acknowledges meanwhile is just what the path
/// takes. While nothing does, only more than usual shows what more there is room for: so what is wanted is tried for a
/// moment, and given up as soon as it has to wait.
///
/// Holds no clock and does no I/O. What a peer acknowledges may come in any steps.
package struct BacklogEstimator: Sendable {
    /// What waits no longer is no queue: acknowledgements may be held back for 40 ms, and samples are 20 ms apart.
    private static let shortWait = Duration.milliseconds(70)
    /// What waits for so long shows that more is sent than the path takes.
    private static let longWait = Duration.milliseconds(150)
    /// What a probe may have to wait before it is given up.
    private static let probeWait = Duration.milliseconds(100)
    /// Seconds of a probe.
    private static let probeLength = 0.3
    /// A peer that acknowledged nothing for so long has stood still, which tells nothing of what the path takes.
    private static let standstill = Duration.seconds(1)
    /// Of what a busy path takes, what is thought possible at least.
    private static let sure = 0.85
    /// Before a probe that cannot be sent now is thought of again.
    private static let look = Duration.milliseconds(100)
    /// Acknowledged bytes that are taken for more are none of this connection.
    private static let largestStep: UInt64 = 1 << 30

    /// A probe under way.
    private struct Trial {
        let target: Double
        /// Bytes that the connection had been given.
        let given: UInt64
        let start: MonotonicTime
        /// When all of it has left.
        let end: MonotonicTime
        /// Bits a second that were sent meanwhile; nil until it has left.
        var sent: Double?
    }

    private let limits: BandwidthEstimator.Limits
    private var history = BacklogHistory()
    private var rate: DelayBasedRate
    private var probes: ProbeController
    private var trial: Trial?
    private var acknowledgedRate = RateMeter()
    /// Bits a second that are sent besides probes, over about a second.
    private var sending = 0.0
    private var lastSample: MonotonicTime?
    private var acknowledged: UInt64?
    private var given: UInt64 = 0
    private var roundTrip = Duration.milliseconds(50)
    /// Since when something has waited for longer than the path explains; nil while nothing does.
    private var busySince: MonotonicTime?
    /// When something was last acknowledged, or nothing waited.
    private var lastProgress = MonotonicTime.zero

    private var wanted: Double?
    private var trust = UnprovenTrust()

    /// How long what is acknowledged next has waited, beyond the round trip.
    package private(set) var wait = Duration.zero
    /// Bits a second that the path takes: all that is sent over it.
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

    /// Whether the probe that was due last may go on.
    package var isProbing: Bool { trial != nil }

    /// True while more is sent than the path takes.
    package var isOverused: Bool { wait >= Self.longWait }

    /// When `probeDue` wants to be called; nil for not before the next sample.
    package var deadline: MonotonicTime? { probes.deadline(estimate: Double(bitrate)) }

    /// Takes in how far the connection has come.
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
        // Until what left last would have begun to wait.
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

    /// Tells what could be used.
    /// - Parameter bitrate: bits a second of the next better choice; nil while the viewer has all there is.
    package mutating func want(_ bitrate: Int?) {
        wanted = bitrate.map { Double(min(max($0, 0), limits.maximum)) }
        probes.want(wanted)
    }

    /// The probe to send now, if it is time; counts as sent.
    ///
    /// It goes on top of what is sent anyway.
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

    /// The probe that is due could not be sent: there is nothing but what is wanted to try the path with, and what is
    /// wrongly thought possible will have to wait.
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
