import Base

/// Estimates how much a path can carry from its receiver's own estimate (REMB) and from reported loss.
///
/// A receiver that measures delay lowers its estimate when a queue grows, and only then: a value below what is sent
/// is believed immediately. Upwards it knows only what it was sent, and often reports little more than that: so
/// REMB raises the estimate to at most one and a half times what arrived, and a wanted rate beyond that is probed
/// for. A probe has passed if the receiver lowers nothing until a while after it. Sending little never lowers the
/// estimate. Loss counts once it is far beyond what radio links lose anyway.
///
/// For a receiver without REMB this goes by loss alone, from the time it has lost too much. There are no probes
/// then, because a report shows too little of a short probe: the wanted rate is sent after a while instead, and
/// later each time that too much of it is lost.
///
/// Holds no clock and does no I/O. The input is untrusted: a receiver may report anything, at any rate.
/// - Source: draft-alvestrand-rmcat-remb-03; the factors are those of draft-ietf-rmcat-gcc-02 §5.5, pauses our own.
package struct ReportEstimator: Sendable {
    /// Shortest interval between two REMBs that are read; receivers send one a second, and many while a queue
    /// grows.
    private static let interval = Duration.milliseconds(20)
    /// Age at which a REMB no longer counts: its stream may be gone.
    private static let memory = Duration.seconds(10)
    /// Factor below the previous value that counts as a fall; a smaller change is rounding.
    private static let fall = 0.97
    /// Share of what is sent that a receiver counts: not headers and retransmissions.
    private static let counted = 0.9
    /// How long the path's queue needs to drain after a fall.
    private static let draining = Duration.seconds(1)
    /// How long a value below what is sent may stay: if it rises by `growth` each time, the receiver is still
    /// catching up.
    private static let patience = Duration.seconds(5)
    private static let growth = 1.02
    /// Largest multiple of what arrived that is believed.
    private static let proven = 1.5
    /// Length of a probe in seconds; receivers count what arrives within a second.
    private static let probeLength = 0.4
    /// How long after a probe and a round trip a receiver has reported a queue, if one grew.
    private static let verdict = Duration.milliseconds(800)
    /// What was sent before a probe went well: until the verdict the estimate stays at least this factor above it.
    private static let room = 1.1
    /// Delay before a probe that cannot be sent now is considered again.
    private static let look = Duration.milliseconds(100)
    /// Share of packets above which loss is too much; in at least so many packets and over so long, twice in a row.
    private static let tolerated = 0.15
    private static let fewest = 60
    private static let shortest = Duration.seconds(1)
    /// Trial by loss alone: time for two reports after a burst that is excused.
    private static let longTrial = Duration.seconds(15)
    /// Factor of headroom when a wanted rate is believed: the rate of video varies.
    private static let trusted = 1.1

    /// A probe under way.
    private struct Trial {
        let target: Double
        let verdict: MonotonicTime
        /// Whether the receiver has sent anything since.
        var isHeard = false
    }

    private let limits: BandwidthEstimator.Limits
    private var probes: ProbeController
    private var trial: Trial?
    /// Until then, a REMB that reacts to a probe lowers the estimate no further than this.
    private var floor: (rate: Double, until: MonotonicTime)?
    private var sending = SentSamples()
    private var rate: Double
    private var isLimited = false
    /// The latest REMB of each stream; `stream` is its place in the session.
    private var said: [(stream: Int, bitrate: Double, time: MonotonicTime)] = []
    private var lastSaid: MonotonicTime?
    /// Whether a REMB was ever compared with what is sent.
    private var isJudged = false
    private var overusedUntil = MonotonicTime.zero
    private var latest = MonotonicTime.zero
    /// Since when the REMB has been below what is sent, and its value then.
    private var shortfall: (since: MonotonicTime, said: Double)?
    private var roundTrip = Duration.milliseconds(100)

    private var reports = LossResponse.Interval()
    private var reportsSince: MonotonicTime?
    private var isLossy = false
    /// Whether the last report showed too much loss.
    private var losesMuch = false
    /// Share of the packets sent lately that did not arrive.
    private var loss = 0.0

    private var wanted: Double?
    private var trust = UnprovenTrust()
    /// Whether the receiver has sent no REMB yet, so that only reported loss counts.
    package private(set) var goesByLossAlone = false

    /// Bits per second that the path can carry for video.
    package private(set) var bitrate: Int
    /// What keeps `bitrate` from being higher.
    package private(set) var cause = BandwidthEstimator.Cause.application

    /// Most streams whose REMB is remembered.
    package static let maximumStreams = 16

    package init(limits: BandwidthEstimator.Limits = .init()) {
        self.limits = limits
        rate = Double(limits.start)
        probes = ProbeController(maximum: Double(limits.maximum), length: Self.probeLength)
        bitrate = limits.start
    }

    /// Starts for a receiver without REMB that has lost too much.
    /// - Parameter bitrate: bits per second that arrived.
    package init(arrived bitrate: Int, limits: BandwidthEstimator.Limits = .init(), at now: MonotonicTime) {
        self.init(limits: limits)
        goesByLossAlone = true
        isLimited = true
        trust = UnprovenTrust(trial: Self.longTrial)
        trust.rest(at: now)
        rate = Double(min(max(bitrate, limits.minimum), limits.maximum))
        self.bitrate = Int(rate)
        cause = .loss
    }

    /// Whether the probe that `probeDue` last returned may continue.
    package var isProbing: Bool { trial != nil }

    /// Whether the receiver has just lowered its estimate.
    package var isOverused: Bool { latest < overusedUntil }

    /// When `advance` and `probeDue` must be called next; nil for not before the next report.
    package var deadline: MonotonicTime? {
        guard !goesByLossAlone else { return wanted.flatMap { rate < $0 ? trust.next : nil } }
        let probing = probes.deadline(estimate: Double(bitrate))
        guard let trial else { return probing }
        return min(trial.verdict, probing ?? trial.verdict)
    }

    /// Processes a REMB.
    /// - Parameters:
    ///   - estimate: bits per second.
    ///   - stream: the place of the stream it is about; receivers may send one per stream, or one for all.
    ///   - total: bytes sent of all such streams since they began, probes included.
    /// - Returns: whether it was read; one that comes too soon is not.
    package mutating func receive(
        _ estimate: UInt64, of stream: Int, sent total: UInt64, roundTrip: Duration?, at now: MonotonicTime
    ) -> Bool {
        guard (0..<Self.maximumStreams).contains(stream) else { return false }
        if let lastSaid, now < lastSaid + Self.interval { return false }
        lastSaid = now
        latest = now
        goesByLossAlone = false
        trial?.isHeard = true
        if let roundTrip { self.roundTrip = min(max(roundTrip, .zero), .seconds(3)) }
        let before = rate
        sending.add(total, at: now)
        let value = Double(min(estimate, UInt64(clamping: limits.maximum)))
        let previous = said.first { $0.stream == stream }?.bitrate
        said.removeAll { $0.stream == stream || now >= $0.time + Self.memory }
        said.append((stream, value, now))
        let sum = min(said.reduce(0) { $0 + $1.bitrate }, Double(limits.maximum))
        judge(sum, hasFallen: previous.map { value < Self.fall * $0 } ?? false, at: now)
        settle(from: before, at: now)
        return true
    }

    /// Compares the sum of all REMBs with what is sent.
    private mutating func judge(_ sum: Double, hasFallen: Bool, at now: MonotonicTime) {
        guard let sent = sending.bitrate else { return }
        let isShort = sum < Self.counted * sent
        // A receiver whose first value is below what it gets saw the queue grow before.
        let isFirst = !isJudged
        isJudged = true
        if isFirst { rate = max(rate, min(sum, sent)) }
        if isShort, hasFallen || isFirst {
            shortfall = nil
            overusedUntil = now + Self.draining
            return lower(to: sum, at: now)
        }
        guard isShort else {
            shortfall = nil
            let proven = min(sum, Self.proven * sent * (1 - loss))
            if !hasFallen, !isOverused, !isLossy, proven > rate { raise(to: proven) }
            return
        }
        guard let known = shortfall, sum < Self.growth * known.said else { return shortfall = (now, sum) }
        if now >= known.since + Self.patience { lower(to: sum, at: now) }
    }

    /// Processes the loss in receiver reports.
    /// - Parameter total: as for a REMB.
    package mutating func receive(
        _ interval: LossResponse.Interval, sent total: UInt64, at now: MonotonicTime
    ) {
        latest = now
        trial?.isHeard = true
        sending.add(total, at: now)
        let start = reportsSince ?? now
        reportsSince = start
        reports.add(interval)
        guard reports.expected >= Self.fewest, now >= start + Self.shortest else { return }
        loss = Double(min(max(reports.lost, 0), reports.expected)) / Double(reports.expected)
        let isMuch = loss > Self.tolerated && !reports.hasBurst
        (reports, reportsSince) = (LossResponse.Interval(), now)
        // A rate that is only on trial has failed immediately.
        let isRepeated = isMuch && (isLossy || goesByLossAlone && trust.isOnTrial(at: now))
        // By loss alone each step down needs two reports: the next one still describes what was sent before.
        isLossy = isMuch && !(isRepeated && goesByLossAlone)
        losesMuch = isMuch
        guard isRepeated, let sent = sending.bitrate else { return }
        let before = rate
        lower(to: sent * (1 - loss), at: now)
        settle(from: before, at: now)
    }

    /// Lowers the estimate and ends a probe under way.
    private mutating func lower(to other: Double, at now: MonotonicTime) {
        if trial != nil {
            trial = nil
            probes.conclude(with: .invalid, at: now)
            _ = probes.takeResult()
        }
        isLimited = true
        let least = floor.map { now < $0.until ? $0.rate : 0 } ?? 0
        rate = min(rate, max(other, least))
    }

    private mutating func raise(to other: Double) {
        rate = max(rate, other)
        isLimited = false
    }

    /// Advances the time: a probe after which the receiver lowered nothing has passed.
    /// - Returns: whether the estimate may have changed.
    package mutating func advance(to now: MonotonicTime) -> Bool {
        latest = max(latest, now)
        guard !goesByLossAlone else { return trustWanted(at: now) }
        guard let trial, now >= trial.verdict else { return false }
        self.trial = nil
        let before = rate
        let hasPassed = trial.isHeard && !isLossy
        probes.conclude(with: hasPassed ? .passed(trial.target) : .invalid, at: now)
        if case .passed(let proven) = probes.takeResult() { raise(to: proven) }
        settle(from: before, at: now)
        return true
    }

    /// By loss alone: believes the wanted rate, if it is time.
    private mutating func trustWanted(at now: MonotonicTime) -> Bool {
        guard let wanted, rate < wanted, trust.isDue(at: now) else { return false }
        guard !losesMuch else {
            trust.rest(at: now)
            return false
        }
        trust.begin(at: now)
        let before = rate
        raise(to: Self.trusted * wanted)
        settle(from: before, at: now)
        return true
    }

    private mutating func settle(from before: Double, at now: MonotonicTime) {
        rate = min(max(rate, Double(limits.minimum)), Double(limits.maximum))
        bitrate = Int(rate)
        if rate < 0.97 * before {
            probes.fell(from: before, to: rate, at: now)
            trust.noteFall(at: now)
            if goesByLossAlone { trust.rest(at: now) }
        }
        cause = !isLimited ? .application : isLossy || goesByLossAlone ? .loss : .delay
    }

    /// Notes which bitrate could be used.
    /// - Parameter bitrate: bits per second of the next better choice; nil while the viewer has the best there is.
    package mutating func want(_ bitrate: Int?) {
        wanted = bitrate.map { Double(min(max($0, 0), limits.maximum)) }
        probes.want(wanted)
    }

    /// Returns the probe to send now, if it is time; it counts as sent.
    ///
    /// Probe packets are sent in addition to everything else.
    package mutating func probeDue(at now: MonotonicTime) -> Probe? {
        latest = max(latest, now)
        guard !goesByLossAlone else { return nil }
        if isOverused || isLossy { probes.postpone(until: now + Self.look) }
        let sent = sending.bitrate ?? 0
        guard
            let probe = probes.due(
                estimate: rate, sending: sent, spread: 0, roundTrip: roundTrip, isSilent: false, at: now)
        else { return nil }
        let end = now + .nanoseconds(Int64(Self.probeLength * 1e9))
        let verdict = end + min(roundTrip, .seconds(1)) + Self.verdict
        trial = Trial(target: sent + Double(probe.bitrate), verdict: verdict)
        floor = (Self.room * sent, verdict)
        return probe
    }

    /// Handles a due probe that could not be sent, because no slot has packets for it.
    ///
    /// Believes the wanted rate without proof, if it is time: sending it is the only way to try the path. If the
    /// path does not take it, the estimate falls again.
    package mutating func trustProbe(at now: MonotonicTime) {
        guard trial != nil else { return }
        trial = nil
        probes.conclude(with: .invalid, at: now)
        _ = probes.takeResult()
        guard trust.isDue(at: now), let wanted else { return }
        trust.begin(at: now)
        let before = rate
        raise(to: wanted)
        settle(from: before, at: now)
    }
}

/// The sending rate, from occasional readings of a byte counter.
private struct SentSamples {
    /// A measurement covers at least `window`, or `shortest` while the history is that short; readings are
    /// `spacing` apart.
    private static let window = Duration.milliseconds(900)
    private static let shortest = Duration.milliseconds(200)
    private static let spacing = Duration.milliseconds(50)

    private var samples: [(total: UInt64, time: MonotonicTime)] = []
    /// Bits per second over about the last second; nil until it is known.
    private(set) var bitrate: Double?

    mutating func add(_ total: UInt64, at now: MonotonicTime) {
        if let last = samples.last, now < last.time + Self.spacing { return }
        // The streams restarted, so their counter is lower.
        if let last = samples.last, total < last.total { samples.removeAll() }
        samples.append((total, now))
        // Keep the newest reading that is at least a window old as the first one.
        while samples.count > 2, samples[1].time + Self.window <= now { samples.removeFirst() }
        guard let first = samples.first, now >= first.time + Self.shortest else { return }
        bitrate = Double(total - first.total) * 8e9 / Double(now.nanoseconds(since: first.time))
    }
}
