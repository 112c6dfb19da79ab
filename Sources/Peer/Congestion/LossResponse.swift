import Base

/// Says what becomes of a viewer whose reports tell of loss: what may be repeated, and whether pictures are sent.
///
/// Goes by loss alone, so it acts late and estimates nothing. Where more than a tenth is lost again and again, nothing
/// of the past is shown and little is repeated: both would only add to what is lost. Where it is more than a third no
/// picture can be repaired, and sound is lost with them: they stop, and are tried again, later each time that it fails.
/// Where less could be sent before that it says how much is lost, and is asked no more: `ReportEstimator` goes on.
/// Only for clients by UDP that do no more than report: of those that tell of each packet `BandwidthEstimator` knows
/// more, and sooner, of those that say what they can take in `ReportEstimator`, of TCP connections `BacklogEstimator`.
package struct LossResponse: Sendable {
    /// What reports tell of some time.
    package struct Interval: Equatable, Sendable {
        package var expected = 0
        package var lost = 0
        /// Whether something began with a burst, which may lose more than a link that takes the stream.
        package var hasBurst = false

        package init(expected: Int = 0, lost: Int = 0, hasBurst: Bool = false) {
            self.expected = expected
            self.lost = lost
            self.hasBurst = hasBurst
        }

        /// Takes in what another report told of a later time.
        package mutating func add(_ other: Interval) {
            expected &+= other.expected
            lost &+= other.lost
            hasBurst = hasBurst || other.hasBurst
        }
    }

    package struct Limits: Equatable, Sendable {
        /// Percent that may be lost; radio links lose some by themselves.
        package var tolerated = 10
        /// Percent that no radio link loses for long: that is for the rate.
        package var excessive = 15
        /// Percent with which pictures cannot be repaired any more.
        package var hopeless = 33
        /// Of fewer packets nothing is concluded.
        package var minimumExpected = 30
        /// Loss that lasts less long, or is told only once, changes nothing.
        package var minimumDuration = Duration.milliseconds(800)
        /// After pictures stop reports speak of what was sent before for so long: a round trip with a full queue.
        package var settling = Duration.seconds(1)
        /// Before pictures are tried again, doubled each time that it fails.
        package var minimumHold = Duration.seconds(5)
        package var maximumHold = Duration.seconds(60)
        /// What is tried has succeeded once it was sent for so long.
        package var trial = Duration.seconds(4)
        /// Nobody waits longer for a key frame of what is tried.
        package var maximumWait = Duration.seconds(30)

        package init() {}
    }

    private enum Pictures: Equatable {
        case sent
        case stopped
        /// May be sent since then, and wait for a key frame.
        case announced(MonotonicTime)
        case tried
    }

    /// How often in a row too much was lost.
    private struct Streak {
        private var count = 0
        private var first = MonotonicTime.zero

        mutating func note(_ isTooMuch: Bool, at now: MonotonicTime) {
            if count == 0 { first = now }
            count = isTooMuch ? count + 1 : 0
        }

        var isEmpty: Bool { count == 0 }

        func lasts(_ duration: Duration, at now: MonotonicTime) -> Bool {
            count > 1 && now >= first + duration
        }
    }

    /// Between two looks at whether what is tried has begun.
    private static let look = Duration.milliseconds(500)
    private let limits: Limits
    private var pending = Interval()
    /// What reports say before is not counted.
    private var settled = MonotonicTime.zero
    private var intolerable = Streak()
    private var excess = Streak()
    private var hopeless = Streak()
    /// Percent; nil while no more than tolerated is lost.
    private var loss: Int?
    private var pictures = Pictures.sent
    private var hold: Duration
    /// When `advance` wants to be called.
    package private(set) var deadline: MonotonicTime?

    package init(limits: Limits = Limits()) {
        self.limits = limits
        hold = limits.minimumHold
    }

    /// Percent that is lost, where it is so much again and again that less should be sent; nil elsewhere.
    package private(set) var excessiveLoss: Int?

    package var sendsPictures: Bool { pictures != .stopped }

    /// Whether pictures have stopped, or are sent to see whether they get through.
    package var isTrying: Bool { pictures != .sent }

    /// Whether the past may be shown again: it takes more than what is live.
    package var mayReplay: Bool { loss == nil && !isTrying }

    /// Percent of the usual budget for packets that are sent again; falls with the square of the loss.
    package var repairShare: Int { loss.map { max(5_000 / max($0 * $0, 1), 1) } ?? 100 }

    /// Whether pictures were tried in vain since they last got through.
    package var hasFailed: Bool { hold > limits.minimumHold }

    /// Takes in what a report tells; nothing is decided before enough packets were expected.
    package mutating func receive(_ interval: Interval, at now: MonotonicTime) {
        pending.add(interval)
        guard pending.expected >= limits.minimumExpected else { return }
        let percent = min(max(pending.lost, 0), pending.expected) * 100 / pending.expected
        let hasBurst = pending.hasBurst
        pending = Interval()
        guard now >= settled, !hasBurst || percent <= limits.tolerated else { return }
        intolerable.note(percent > limits.tolerated, at: now)
        excess.note(percent > limits.excessive, at: now)
        excessiveLoss = excess.lasts(limits.minimumDuration, at: now) ? percent : nil
        hopeless.note(percent > limits.hopeless, at: now)
        if intolerable.isEmpty {
            loss = nil
        } else if intolerable.lasts(limits.minimumDuration, at: now) {
            loss = percent
        }
        if hopeless.lasts(limits.minimumDuration, at: now) || pictures == .tried && !hopeless.isEmpty {
            stop(at: now)
        }
    }

    private mutating func stop(at now: MonotonicTime) {
        guard pictures != .stopped else { return }
        if pictures != .sent { hold = min(hold * 2, limits.maximumHold) }
        pictures = .stopped
        hopeless = Streak()
        settled = now + limits.settling
        deadline = now + hold
    }

    /// Tries pictures when it is time.
    /// - Parameter isWaiting: whether a picture that may be sent waits for its key frame.
    package mutating func advance(to now: MonotonicTime, isWaiting: Bool) {
        guard let deadline, now >= deadline else { return }
        switch pictures {
        case .sent:
            self.deadline = nil
        case .stopped:
            // Of sound alone, too, as much is lost.
            guard hopeless.isEmpty else { return self.deadline = now + limits.settling }
            pictures = .announced(now)
            self.deadline = now + Self.look
        case .announced(let start):
            guard !isWaiting || now >= start + limits.maximumWait else {
                return self.deadline = now + Self.look
            }
            pictures = .tried
            self.deadline = now + limits.trial
        case .tried:
            pictures = .sent
            hold = limits.minimumHold
            self.deadline = nil
        }
    }
}
