import Base

/// Estimates how much a path takes by what its receiver says that it can take in (REMB), and by the loss it reports.
///
/// A receiver that measures delay lowers what it says when a queue grows, and only then: that is believed at once where
/// it is less than what is sent. Upwards it knows no more than what it was sent, and often says a little more of that:
/// so what it says raises the estimate to one and a half times what arrived at most, and what is wanted beyond is
/// probed for. A probe has passed if the receiver lowers nothing until a while after it. Sending little never lowers
/// the estimate. Loss counts once it is far beyond what radio links lose anyway.
///
/// A receiver that says nothing but reports loss is known by that alone, once it has lost too much. Nothing is probed
/// for then, because of a short probe too little shows in a report: what is wanted is sent after a while, and later
/// each time that too much of it is lost.
///
/// Holds no clock and does no I/O. Takes what strangers send: a receiver may say anything, as often as it wants.
/// - Source: draft-alvestrand-rmcat-remb-03; the factors are those of draft-ietf-rmcat-gcc-02 §5.5, pauses our own.
package struct ReportEstimator: Sendable {
    /// Receivers say it once a second or so, and with every packet while a queue grows.
    private static let interval = Duration.milliseconds(20)
    /// What was said so long ago of streams that are not there any more counts no more.
    private static let memory = Duration.seconds(10)
    /// So much less than before is a fall; anything else is rounding.
    private static let fall = 0.97
    /// Of what is sent: headers and what is sent again are not in what a receiver counts.
    private static let counted = 0.9
    /// After a fall the path's queue needs so long to drain.
    private static let draining = Duration.seconds(1)
    /// A receiver that says less than it gets, but more each time, has not caught up yet; one that stays means it.
    private static let patience = Duration.seconds(5)
    private static let growth = 1.02
    /// Most that is believed of what arrived.
    private static let proven = 1.5
    /// Seconds of a probe; receivers count what came within a second.
    private static let probeLength = 0.4
    /// A receiver that sees a queue grow has said so by then, a round trip later.
    private static let verdict = Duration.milliseconds(800)
    /// What was sent before a probe went well: until its verdict the estimate falls no lower, with so much room.
    private static let room = 1.1
    /// Before a probe that cannot be sent now is thought of again.
    private static let look = Duration.milliseconds(100)
    /// Share of packets that no radio link loses for long, in so many of them and for so long, twice in a row.
    private static let tolerated = 0.15
    private static let fewest = 60
    private static let shortest = Duration.seconds(1)
    /// By reports alone it takes two of them, after a burst that is excused, to see that something is too much.
    private static let longTrial = Duration.seconds(15)
    /// What is wanted is believed with so much room: what a picture takes varies.
    private static let trusted = 1.1

    /// A probe under way.
    private struct Trial {
        let target: Double
        let verdict: MonotonicTime
        /// Whether the receiver has said anything since.
        var isHeard = false
    }

    private let limits: BandwidthEstimator.Limits
    private var probes: ProbeController
    private var trial: Trial?
    /// What a receiver says for the sake of a probe lowers the estimate no further, until then.
    private var floor: (rate: Double, until: MonotonicTime)?
    private var sending = SentSamples()
    private var rate: Double
    private var isLimited = false
    /// What was said last of each stream, by its place in the session.
    private var said: [(stream: Int, bitrate: Double, time: MonotonicTime)] = []
    private var lastSaid: MonotonicTime?
    /// Whether what was said was ever compared with what is sent.
    private var isJudged = false
    private var overusedUntil = MonotonicTime.zero
    private var latest = MonotonicTime.zero
    /// Since when the receiver says less than it gets, and what it said then.
    private var shortfall: (since: MonotonicTime, said: Double)?
    private var roundTrip = Duration.milliseconds(100)

    private var reports = LossResponse.Interval()
    private var reportsSince: MonotonicTime?
    private var isLossy = false
    /// Whether the last report told of too much.
    private var losesMuch = false
    /// Share of what was sent lately that did not arrive.
    private var loss = 0.0

    private var wanted: Double?
    private var trust = UnprovenTrust()
    /// Whether the receiver has said nothing yet, and is known by what it reports to be lost.
    package private(set) var goesByLossAlone = false

    /// Bits a second that the path takes for pictures.
    package private(set) var bitrate: Int
    /// Why `bitrate` is not higher.
    package private(set) var cause = BandwidthEstimator.Cause.application

    /// Most streams that something is remembered of.
    package static let maximumStreams = 16

    package init(limits: BandwidthEstimator.Limits = .init()) {
        self.limits = limits
        rate = Double(limits.start)
        probes = ProbeController(maximum: Double(limits.maximum), length: Self.probeLength)
        bitrate = limits.start
    }

    /// For a receiver that says nothing, and has lost too much of what it was sent.
    /// - Parameter bitrate: what arrived, in bits a second.
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

    /// Whether the probe that was due last may go on.
    package var isProbing: Bool { trial != nil }

    /// Whether the receiver has just lowered what it says.
    package var isOverused: Bool { latest < overusedUntil }

    /// When `advance` and `probeDue` want to be called; nil for not before the next report.
    package var deadline: MonotonicTime? {
        guard !goesByLossAlone else { return wanted.flatMap { rate < $0 ? trust.next : nil } }
        let probing = probes.deadline(estimate: Double(bitrate))
        guard let trial else { return probing }
        return min(trial.verdict, probing ?? trial.verdict)
    }

    /// Takes in what the receiver says of a stream.
    /// - Parameters:
    ///   - estimate: bits a second.
    ///   - stream: what it is of; receivers may say it of each stream, or once of all.
    ///   - total: bytes that were sent of all such streams since they began, probes included.
    /// - Returns: whether it was looked at; what comes too soon is not.
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

    private mutating func judge(_ sum: Double, hasFallen: Bool, at now: MonotonicTime) {
        guard let sent = sending.bitrate else { return }
        let isShort = sum < Self.counted * sent
        // A receiver whose first word is less than it gets saw the queue grow before.
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

    /// Takes in what reports tell of loss.
    /// - Parameter total: as of an estimate.
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
        // What is only tried has failed at once.
        let isRepeated = isMuch && (isLossy || goesByLossAlone && trust.isOnTrial(at: now))
        // By reports alone each step down takes two of them: the next one tells of what was sent before, too.
        isLossy = isMuch && !(isRepeated && goesByLossAlone)
        losesMuch = isMuch
        guard isRepeated, let sent = sending.bitrate else { return }
        let before = rate
        lower(to: sent * (1 - loss), at: now)
        settle(from: before, at: now)
    }

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

    /// Lets time pass: a probe that nobody complained of has passed.
    /// - Returns: whether the estimate may be another one now.
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

    /// Has what is wanted sent, if it is time.
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

    /// The probe that is due could not be sent: there is nothing but what is wanted to try the path with, and what is
    /// wrongly thought possible will have to wait.
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

/// How much is sent, by a count of bytes that is looked at now and then.
private struct SentSamples {
    /// What is measured covers so long at least, if it is known for so long.
    private static let window = Duration.milliseconds(900)
    private static let shortest = Duration.milliseconds(200)
    private static let spacing = Duration.milliseconds(50)

    private var samples: [(total: UInt64, time: MonotonicTime)] = []
    /// Bits a second, over the last second or so; nil where nothing is known yet.
    private(set) var bitrate: Double?

    mutating func add(_ total: UInt64, at now: MonotonicTime) {
        if let last = samples.last, now < last.time + Self.spacing { return }
        // Streams that began anew, or a clock that went back.
        if let last = samples.last, total < last.total { samples.removeAll() }
        samples.append((total, now))
        // The newest of those that are old enough stays first.
        while samples.count > 2, samples[1].time + Self.window <= now { samples.removeFirst() }
        guard let first = samples.first, now >= first.time + Self.shortest else { return }
        bitrate = Double(total - first.total) * 8e9 / Double(now.nanoseconds(since: first.time))
    }
}
